// SPDX-License-Identifier: Apache-2.0
// The weight formats: what a code is, what shares a scale, and the value that a code stands for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/quant/quantised_view.h"

namespace driftscope {

enum class ScaleExtent : std::uint8_t { matrix, row, group };

struct QuantFormatInfo {
  QuantFormat format;
  std::string_view name;  // "int4_symmetric"
  int bits;               // of a code
  ScaleExtent extent;     // what shares a scale
  bool zero_point;
  bool integer_activations;  // the matmul quantises its input too
  std::string_view definition;
};
// One row per format. In all of them scales are f32 and the weight is
//   value = (code - zero) · scale, one f32 product rounded to nearest; it is not rounded to the
// activation type.
[[nodiscard]] std::span<const QuantFormatInfo> quant_formats();
[[nodiscard]] const QuantFormatInfo& quant_format_info(QuantFormat format);

// A format with its group size.
struct QuantSpec {
  QuantFormat format = QuantFormat::int8_channel;
  std::int64_t group = 128;  // int4 only: a power of two from 16 on
  friend bool operator==(const QuantSpec&, const QuantSpec&) = default;
};
// "int4_symmetric group=128", "int8_channel"
[[nodiscard]] std::string to_string(const QuantSpec& spec);

}  // namespace driftscope
