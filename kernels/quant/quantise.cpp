// SPDX-License-Identifier: Apache-2.0
#include "kernels/quant/quantise.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/quant/fp8.h"

// Rows of activations are quantised in every matmul: these loops are worth vectors.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

namespace driftscope {
namespace {

constexpr std::int64_t kRowAlignment = 64;

std::int64_t ceil_divide(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step;
}

// To the nearest integer, ties to even, for |value| below 2^22: the sum has no fraction bits.
float round_even(float value) { return (value + 0x1.8p23F) - 0x1.8p23F; }

// NaN is greater than every number here, so one look at the result finds every bad element.
std::uint32_t largest_bits(const float* values, std::int64_t count) {
  std::int32_t largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::bit_cast<std::int32_t>(values[i]) & 0x7fffffff);
  }
  return static_cast<std::uint32_t>(largest);
}
constexpr std::uint32_t kInfinityBits = 0x7f800000U;

void int8_row(const float* row, std::int64_t count, float scale, std::uint8_t* codes) {
  for (std::int64_t k = 0; k < count; ++k) {
    const float code = std::clamp(round_even(row[k] / scale), -127.0F, 127.0F);
    codes[k] = static_cast<std::uint8_t>(static_cast<std::int8_t>(static_cast<int>(code)));
  }
}

void fp8_row(const float* row, std::int64_t count, float scale, std::uint8_t* codes) {
  for (std::int64_t k = 0; k < count; ++k) codes[k] = e4m3_from_float(row[k] / scale);
}

std::uint8_t int4_code(float quotient, float zero) {
  return static_cast<std::uint8_t>(
      static_cast<int>(std::clamp(round_even(quotient) + zero, 0.0F, 15.0F)));
}

struct GroupScale {
  float scale = 0.0F;
  float zero = 0.0F;  // the code that stands for 0
};

GroupScale symmetric_scale(const float* w, std::int64_t count) {
  return {.scale = std::bit_cast<float>(largest_bits(w, count)) / 7.0F, .zero = 8.0F};
}

GroupScale asymmetric_scale(const float* w, std::int64_t count) {
  float lowest = 0.0F;
  float highest = 0.0F;
  for (std::int64_t k = 0; k < count; ++k) {
    lowest = std::min(lowest, w[k]);
    highest = std::max(highest, w[k]);
  }
  const auto scale =
      static_cast<float>((static_cast<double>(highest) - static_cast<double>(lowest)) / 15.0);
  if (scale == 0.0F) return {};
  return {.scale = scale, .zero = std::clamp(round_even(-lowest / scale), 0.0F, 15.0F)};
}

// Where the code of term k of a row lies.
struct NibblePlace {
  std::int64_t byte;
  unsigned shift;
};
NibblePlace nibble_place(std::int64_t k) {
  const std::int64_t in_block = k % kInt4Block;
  const std::int64_t nibble = in_block / 16;
  return {.byte = k / kInt4Block * kInt4BlockBytes + in_block % 16 * 4 + nibble / 2,
          .shift = nibble % 2 == 0 ? 0U : 4U};
}

void int4_row(const QuantSpec& spec, const float* row, std::int64_t columns, std::uint8_t* codes,
              float* scales, std::uint8_t* zeros) {
  const bool asymmetric = spec.format == QuantFormat::int4_asymmetric;
  for (std::int64_t begin = 0, group = 0; begin < columns; begin += spec.group, ++group) {
    const std::int64_t count = std::min(spec.group, columns - begin);
    const GroupScale found =
        asymmetric ? asymmetric_scale(row + begin, count) : symmetric_scale(row + begin, count);
    scales[group] = found.scale;
    if (asymmetric) zeros[group] = static_cast<std::uint8_t>(static_cast<int>(found.zero));
    for (std::int64_t k = begin; k < begin + count; ++k) {
      const float quotient = found.scale == 0.0F ? 0.0F : row[k] / found.scale;
      const NibblePlace place = nibble_place(k);
      codes[place.byte] = static_cast<std::uint8_t>(
          codes[place.byte] | (int4_code(quotient, found.zero) << place.shift));
    }
  }
}

void quantise_row(const QuantSpec& spec, const float* row, std::int64_t columns, float amax,
                  std::uint8_t* codes, float* scales, std::uint8_t* zeros) {
  switch (spec.format) {
    case QuantFormat::int8_channel:
    case QuantFormat::int8_dynamic:
      *scales = amax / 127.0F;
      if (*scales != 0.0F) int8_row(row, columns, *scales, codes);
      return;
    case QuantFormat::fp8_tensor:
    case QuantFormat::fp8_channel:
      *scales = amax / kE4m3Largest;
      if (*scales != 0.0F) fp8_row(row, columns, *scales, codes);
      return;
    case QuantFormat::int4_symmetric:
    case QuantFormat::int4_asymmetric:
      int4_row(spec, row, columns, codes, scales, zeros);
      return;
  }
}

// A matrix as f32 rows, one at a time.
struct Source {
  Dtype dtype;
  const void* data;
  std::int64_t columns;
  void read(std::int64_t row, std::vector<float>& values) const {
    const auto offset = static_cast<std::size_t>(row * columns) * dtype_size(dtype);
    values.resize(static_cast<std::size_t>(columns));
    widen(dtype, static_cast<const std::byte*>(data) + offset, values.data(), values.size());
  }
};

constexpr std::int64_t kRowsPerTask = 64;

template <class Body>
void for_rows(std::int64_t rows, Parallel& parallel, Body body) {
  parallel.run(static_cast<std::size_t>(ceil_divide(rows, kRowsPerTask)),
               [&](std::size_t task, int) {
                 std::vector<float> values;
                 const std::int64_t begin = static_cast<std::int64_t>(task) * kRowsPerTask;
                 const std::int64_t end = std::min(rows, begin + kRowsPerTask);
                 for (std::int64_t row = begin; row < end; ++row) body(row, values);
               });
}

std::int64_t first_bad(const Source& source, std::int64_t row) {
  std::vector<float> values;
  source.read(row, values);
  const auto bad = std::ranges::find_if(values, [](float v) { return !std::isfinite(v); });
  return row * source.columns + (bad - values.begin());
}

}  // namespace

QuantLayout quant_layout(const QuantSpec& spec, std::int64_t rows, std::int64_t columns) {
  const QuantFormatInfo& info = quant_format_info(spec.format);
  QuantLayout layout;
  layout.code_stride = info.bits == 4 ? ceil_divide(columns, kInt4Block) * kInt4BlockBytes
                                      : ceil_divide(columns, kRowAlignment) * kRowAlignment;
  layout.scale_stride =
      info.extent == ScaleExtent::group ? ceil_divide(columns, spec.group) : std::int64_t{1};
  layout.code_bytes = static_cast<std::size_t>(rows * layout.code_stride);
  layout.scale_count = static_cast<std::size_t>(rows * layout.scale_stride);
  layout.zero_bytes = info.zero_point ? layout.scale_count : 0;
  return layout;
}

QuantisedView quantised_view(const QuantSpec& spec, const QuantLayout& layout,
                             const QuantTarget& target) {
  return {.format = spec.format,
          .codes = target.codes,
          .scales = target.scales,
          .zeros = target.zeros,
          .code_stride = layout.code_stride,
          .scale_stride = layout.scale_stride,
          .first_term = 0,
          .group = quant_format_info(spec.format).extent == ScaleExtent::group ? spec.group : 0};
}

std::optional<std::int64_t> quantise_matrix(const QuantSpec& spec, Dtype dtype, const void* data,
                                            std::int64_t rows, std::int64_t columns,
                                            const QuantTarget& target, Parallel& parallel) {
  assert(spec.group >= 16 && (spec.group & (spec.group - 1)) == 0);
  const Source source{.dtype = dtype, .data = data, .columns = columns};
  std::vector<std::uint32_t> largest(static_cast<std::size_t>(rows));
  for_rows(rows, parallel, [&](std::int64_t row, std::vector<float>& values) {
    source.read(row, values);
    largest[static_cast<std::size_t>(row)] = largest_bits(values.data(), columns);
  });
  const auto bad =
      std::ranges::find_if(largest, [](std::uint32_t bits) { return bits >= kInfinityBits; });
  if (bad != largest.end()) return first_bad(source, bad - largest.begin());
  if (spec.format == QuantFormat::fp8_tensor && rows > 0) {
    std::ranges::fill(largest, std::ranges::max(largest));
  }
  const QuantLayout layout = quant_layout(spec, rows, columns);
  for_rows(rows, parallel, [&](std::int64_t row, std::vector<float>& values) {
    source.read(row, values);
    const std::int64_t scale = row * layout.scale_stride;
    quantise_row(spec, values.data(), columns,
                 std::bit_cast<float>(largest[static_cast<std::size_t>(row)]),
                 target.codes + row * layout.code_stride, target.scales + scale,
                 target.zeros == nullptr ? nullptr : target.zeros + scale);
  });
  return std::nullopt;
}

void dequantise_row(const QuantisedView& view, std::int64_t row, std::int64_t begin,
                    std::int64_t count, float* values) {
  const QuantisedView at = view.from_row(row);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t k = view.first_term + begin + i;
    if (view.is_int4()) {
      const NibblePlace place = nibble_place(k);
      const int code = (at.codes[place.byte] >> place.shift) & 0xf;
      const std::int64_t group = k / view.group;
      const int zero = at.zeros == nullptr ? 8 : at.zeros[group];
      values[i] = static_cast<float>(code - zero) * at.scales[group];
    } else if (view.is_fp8()) {
      values[i] = e4m3_to_float(at.codes[k]) * *at.scales;
    } else {
      values[i] = static_cast<float>(static_cast<std::int8_t>(at.codes[k])) * *at.scales;
    }
  }
}

float quantise_activations(const float* x, std::int64_t count, std::int16_t* codes) {
  const std::uint32_t largest = largest_bits(x, count);
  const float scale = std::bit_cast<float>(largest) / 127.0F;
  if (largest >= kInfinityBits || scale == 0.0F) {
    std::fill_n(codes, count, std::int16_t{0});
    return largest >= kInfinityBits ? std::numeric_limits<float>::quiet_NaN() : 0.0F;
  }
  for (std::int64_t k = 0; k < count; ++k) {
    const float code = std::clamp(round_even(x[k] / scale), -127.0F, 127.0F);
    codes[k] = static_cast<std::int16_t>(static_cast<int>(code));
  }
  return scale;
}

}  // namespace driftscope
