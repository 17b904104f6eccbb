// SPDX-License-Identifier: Apache-2.0
// Quantised weights as they lie in memory. Plain data: kernels of every instruction set include it.
#pragma once

#include <cstdint>

namespace driftscope {

// What the codes mean is in quant_format.h.
enum class QuantFormat : std::uint8_t {
  int8_channel,
  int8_dynamic,
  fp8_tensor,
  fp8_channel,
  int4_symmetric,
  int4_asymmetric,
};

// Terms of K that one block of int4 codes holds, in 64 bytes. As 16 little-endian words of 32 bits,
// term 16·j + i of the block is nibble j of word i: one shift of the whole block leaves 16
// neighbouring terms in the lowest nibbles of the words.
inline constexpr std::int64_t kInt4Block = 128;
inline constexpr std::int64_t kInt4BlockBytes = 64;

// Rows of codes, one row per output; not owned.
struct QuantisedView {
  QuantFormat format = QuantFormat::int8_channel;
  // int8: two's complement, fp8: e4m3, one byte a term in rising k; int4: blocks as above. The
  // bytes behind the last term are zero.
  const std::uint8_t* codes = nullptr;  // [rows, code_stride]
  const float* scales = nullptr;        // [rows, scale_stride]
  const std::uint8_t* zeros = nullptr;  // int4_asymmetric: zero points, [rows, scale_stride]
  std::int64_t code_stride = 0;         // bytes from row to row, a multiple of 64
  std::int64_t scale_stride = 0;        // scales of a row: 1, or ceil(columns / group)
  std::int64_t first_term = 0;  // of each row that belongs to the view; codes and scales begin at 0
  std::int64_t group = 0;       // int4: terms that share a scale, a power of two from 16 on

  [[nodiscard]] bool present() const { return codes != nullptr; }
  [[nodiscard]] bool is_int4() const {
    return format == QuantFormat::int4_symmetric || format == QuantFormat::int4_asymmetric;
  }
  [[nodiscard]] bool is_fp8() const {
    return format == QuantFormat::fp8_tensor || format == QuantFormat::fp8_channel;
  }
  // The same rows from `row` on.
  [[nodiscard]] QuantisedView from_row(std::int64_t row) const {
    QuantisedView view = *this;
    view.codes += row * code_stride;
    view.scales += row * scale_stride;
    if (view.zeros != nullptr) view.zeros += row * scale_stride;
    return view;
  }
};

}  // namespace driftscope
