// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding (Su et al. 2021).
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/isa.h"
#include "kernels/base/parallel.h"
#include "kernels/plan/dtype.h"

namespace driftscope {

// cos and sin of position * frequency, [positions, head_dim / 2] each.
// table_dtype f64: angle and functions in f64, rounded once to f32. f32: the inverse frequency
// and the angle are rounded to f32, then the functions taken of that angle and rounded to f32.
// bf16, f16: as f32, and the results rounded to that type.
struct RopeTable {
  std::int64_t positions = 0;
  std::int64_t half = 0;
  std::vector<float> cosine;
  std::vector<float> sine;
};
// inverse_frequencies: [half], in f64 (scaling such as llama3 already applied).
// attention_factor multiplies cos and sin (1 for plain RoPE).
[[nodiscard]] RopeTable make_rope_table(const std::vector<double>& inverse_frequencies,
                                        std::int64_t positions, Dtype table_dtype,
                                        double attention_factor);

enum class RopeLayout : std::uint8_t {
  rotate_half,  // pairs (i, i + d/2): Hugging Face checkpoints
  interleaved,  // pairs (2i, 2i + 1)
};
struct RopeArguments {
  float* x = nullptr;  // [rows, heads, head_dim], in place; row stride is heads * head_dim
  const std::int32_t* positions = nullptr;  // [rows]
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  const RopeTable* table = nullptr;
  RopeLayout layout = RopeLayout::rotate_half;
  // With round_products each product is rounded to output_dtype before the sum (as separate
  // 16-bit operations do); otherwise x1*cos - x2*sin is one product and one fma.
  bool round_products = false;
  Dtype output_dtype = Dtype::f32;
};
void apply_rope(const RopeArguments& arguments, Isa isa, Parallel& parallel);

}  // namespace driftscope
