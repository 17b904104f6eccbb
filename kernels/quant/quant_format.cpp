// SPDX-License-Identifier: Apache-2.0
#include "kernels/quant/quant_format.h"

#include <fmt/format.h>

#include <array>

namespace driftscope {
namespace {

constexpr std::array kFormats = {
    QuantFormatInfo{QuantFormat::int8_channel, "int8_channel", 8, ScaleExtent::row, false, false,
                    "scale = amax / 127 of the row; code = rint(w / scale) in [-127, 127]"},
    QuantFormatInfo{QuantFormat::int8_dynamic, "int8_dynamic", 8, ScaleExtent::row, false, true,
                    "weights as int8_channel; each input row likewise, when it is multiplied"},
    QuantFormatInfo{QuantFormat::fp8_tensor, "fp8_tensor", 8, ScaleExtent::matrix, false, false,
                    "scale = amax / 448 of the matrix; code = e4m3(w / scale), saturating"},
    QuantFormatInfo{QuantFormat::fp8_channel, "fp8_channel", 8, ScaleExtent::row, false, false,
                    "scale = amax / 448 of the row; code = e4m3(w / scale), saturating"},
    QuantFormatInfo{QuantFormat::int4_symmetric, "int4_symmetric", 4, ScaleExtent::group, false,
                    false,
                    "scale = amax / 7 of the group; code = rint(w / scale) in [-8, 7], stored + 8"},
    QuantFormatInfo{QuantFormat::int4_asymmetric, "int4_asymmetric", 4, ScaleExtent::group, true,
                    false,
                    "lo = min(0, w), hi = max(0, w) of the group; scale = (hi - lo) / 15; zero = "
                    "rint(-lo / scale); code = rint(w / scale) + zero in [0, 15]"},
};

}  // namespace

std::span<const QuantFormatInfo> quant_formats() { return kFormats; }

const QuantFormatInfo& quant_format_info(QuantFormat format) {
  return kFormats[static_cast<std::size_t>(format)];
}

std::string to_string(const QuantSpec& spec) {
  const QuantFormatInfo& info = quant_format_info(spec.format);
  if (info.extent != ScaleExtent::group) return std::string(info.name);
  return fmt::format("{} group={}", info.name, spec.group);
}

}  // namespace driftscope
