// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding (Su et al. 2021).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/base/isa.h"
#include "kernels/base/parallel.h"
#include "kernels/plan/dtype.h"
#include "kernels/plan/reduction_plan.h"

namespace driftscope {

// cos and sin of position * frequency, [positions, half] each.
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
// attention_factor multiplies cos and sin (1 for plain RoPE): in f64 before the one rounding
// (f64), otherwise as an f32 multiplication after cos and sin were rounded to f32.
[[nodiscard]] RopeTable make_rope_table(const std::vector<double>& inverse_frequencies,
                                        std::int64_t positions, Dtype table_dtype,
                                        double attention_factor);

enum class RopeLayout : std::uint8_t {
  rotate_half,  // pairs (i, i + half): Hugging Face checkpoints
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
  // 16-bit operations do); otherwise one product and one fma: y1 = fma(x1, cos, -(x2*sin)),
  // y2 = fma(x2, cos, x1*sin). The result is rounded to output_dtype either way.
  bool round_products = false;
  Dtype output_dtype = Dtype::f32;
};

// One way to compute it. All portable variants give the same bits.
struct RopeVariant {
  std::string_view name;  // "scalar", "avx2", "avx512"
  Isa isa;
  Determinism determinism;  // what the variant promises
  bool portable;            // same bits as the scalar definition
  void (*run)(const RopeArguments& arguments, Parallel& parallel);
};
[[nodiscard]] std::span<const RopeVariant> rope_variants();

// Every position must be in [0, table->positions); head_dim must be at least 2 * table->half. The
// first 2 * half dimensions of a head are rotated, pairs (i, i + half) in rotate_half; the rest
// stay (partial rotary embedding: Phi-3, GPT-NeoX).
void apply_rope(const RopeArguments& arguments, Isa isa, Parallel& parallel);
// The rotation in f64 throughout by the table's values: y [rows, heads, head_dim].
void rope_reference(const RopeArguments& arguments, double* y);

}  // namespace driftscope
