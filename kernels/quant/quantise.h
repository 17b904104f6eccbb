// SPDX-License-Identifier: Apache-2.0
// From weights to codes and back. The definitions are in quant_format.h; this says how they are
// computed, so that the bits are the same everywhere.
//
// Quantising, in f32 unless said otherwise, each operation rounded to nearest, ties to even:
//   int8, fp8: scale = amax / 127 or amax / 448, code = rint(w / scale) clamped, or
//     e4m3(w / scale).
//   int4_symmetric: the same with amax / 7 per group.
//   int4_asymmetric: scale = (hi - lo) / 15 in f64, rounded once to f32 (hi - lo could overflow);
//     zero = rint(-lo / scale), code = rint(w / scale) + zero, both clamped to [0, 15].
//   A scale that is 0 (an all-zero row or group, or one so small that the quotient underflows)
//   makes every code the one that stands for 0.
// Where scale is a normal number, a weight and its value differ by at most half a step, that is
// scale / 2, plus the rounding of the quotient and of the product.
// Groups count from k = 0; the last one of a row may be short.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/base/parallel.h"
#include "kernels/plan/dtype.h"
#include "kernels/quant/quant_format.h"

namespace driftscope {

// Memory that a quantised matrix needs.
struct QuantLayout {
  std::int64_t code_stride = 0;   // bytes of a row
  std::int64_t scale_stride = 0;  // scales of a row
  std::size_t code_bytes = 0;
  std::size_t scale_count = 0;
  std::size_t zero_bytes = 0;  // 0 without zero points
};
[[nodiscard]] QuantLayout quant_layout(const QuantSpec& spec, std::int64_t rows,
                                       std::int64_t columns);

// Zero-filled memory of quant_layout's sizes.
struct QuantTarget {
  std::uint8_t* codes = nullptr;
  float* scales = nullptr;
  std::uint8_t* zeros = nullptr;
};
[[nodiscard]] QuantisedView quantised_view(const QuantSpec& spec, const QuantLayout& layout,
                                           const QuantTarget& target);

// Quantises a matrix [rows, columns] stored as `dtype` (f32, f16, bf16). Returns the index of the
// first element that is NaN or infinite, if there is one (the target is then unspecified). The
// result does not depend on `parallel`.
[[nodiscard]] std::optional<std::int64_t> quantise_matrix(const QuantSpec& spec, Dtype dtype,
                                                          const void* source, std::int64_t rows,
                                                          std::int64_t columns,
                                                          const QuantTarget& target,
                                                          Parallel& parallel);

// Values of terms begin … begin + count - 1 of one row.
void dequantise_row(const QuantisedView& view, std::int64_t row, std::int64_t begin,
                    std::int64_t count, float* values);

// One input row of int8_dynamic: scale = amax / 127, codes = rint(x / scale), widened to 16 bits
// for the integer products. A row with NaN or infinity has scale NaN and codes 0, so that every
// output of it is NaN.
[[nodiscard]] float quantise_activations(const float* x, std::int64_t count, std::int16_t* codes);

}  // namespace driftscope
