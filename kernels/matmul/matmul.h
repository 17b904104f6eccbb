// SPDX-License-Identifier: Apache-2.0
// y = x · wᵀ + bias, each output reduced under a ReductionPlan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/base/isa.h"
#include "kernels/base/parallel.h"
#include "kernels/plan/dtype.h"
#include "kernels/plan/reduction_plan.h"
#include "kernels/quant/quantised_view.h"

namespace driftscope {

// Weights as they lie in memory; not owned.
struct WeightView {
  const void* data = nullptr;   // [rows, columns], row-major, element type `dtype`
  Dtype dtype = Dtype::f32;     // f32, f16 or bf16; values widen to f32 exactly
  std::int64_t rows = 0;        // N: outputs
  std::int64_t columns = 0;     // K: terms of each sum
  std::int64_t row_stride = 0;  // elements from row to row; 0: columns
  [[nodiscard]] constexpr std::int64_t stride() const {
    return row_stride == 0 ? columns : row_stride;
  }
  // Where present, the weights are these codes (int4: groups of at least 16 terms): each stands for
  // an f32 value (quantise.h), and `dtype` says nothing. `data` is not read, but not null.
  QuantisedView quantised = {};
};
// Rows (outputs) first … first + count - 1, or columns (terms), of the same bytes.
[[nodiscard]] WeightView row_slice(const WeightView& weight, std::int64_t first,
                                   std::int64_t count);
[[nodiscard]] WeightView column_slice(const WeightView& weight, std::int64_t first,
                                      std::int64_t count);

struct MatmulArguments {
  const float* x = nullptr;     // [m, k], row-major
  std::int64_t m = 0;           // rows in flight, at least 1
  WeightView weight;            // [n, k]
  const float* bias = nullptr;  // [n], or null. Added in f32 after the reduction.
  float* y = nullptr;           // [m, n], row-major; must not overlap x
  std::int64_t x_stride = 0;    // elements from row to row of x; 0: k
  std::int64_t y_stride = 0;    // elements from row to row of y; 0: n
  ReductionPlan plan;
  // Each output is rounded to this type once, after the bias (f32: not at all).
  Dtype output_dtype = Dtype::f32;
};
// QuantFormat::int8_dynamic: each row of x is quantised too (quantise_activations), and
//   d_c = sum over chunk c of (code of x) · (code of w), exact in 32-bit integers, so that neither
//     lanes nor instruction set nor the number of rows matter;
//   the d_c, each rounded to f32, are combined as step 4 of the plan says (f64, kahan: exactly, in
//     f64, rounded once);
//   y = that · (scale of x · scale of w), two f32 products, then the bias.
// K may be at most kMostInt8Terms there.
inline constexpr std::int64_t kMostInt8Terms = 133144;  // 127 · 127 · K stays below 2^31

// One way to compute it. All portable variants give the same bits.
struct MatmulVariant {
  std::string_view name;  // "scalar", "avx2", "avx512", "bf16_dot"
  Isa isa;
  Determinism determinism;  // what the variant promises
  bool portable;            // same bits as the scalar definition
  void (*run)(const MatmulArguments& arguments, Parallel& parallel);
};
[[nodiscard]] std::span<const MatmulVariant> matmul_variants();

// Runs the portable variant of `isa`, for any plan. y[i, j] depends on row i of x, row j of
// the weight, the bias and the plan, and on nothing else.
void matmul(const MatmulArguments& arguments, Isa isa, Parallel& parallel);

// bf16_dot: the AVX512-BF16 dot product of pairs. Activations are rounded to bf16 first (to nearest
// even); two neighbouring terms form a pair, pair p of a chunk (counted from its start, the last
// one padded with +0) belongs to lane p mod lanes, and VDPBF16PS adds it there, pairs rising: the
// odd term's product, then the even one's. It treats subnormal inputs and results as zero, and
// rounds inside as each maker likes, so the bits are of one kind of processor: they do not depend
// on rows in flight or threads (batch_invariant), and may differ elsewhere. Lanes and chunks are
// then combined as the plan says. Needs has_avx512_bf16(), bf16 weights, K of at least 1, and a
// plan that bf16_dot_accepts().
void matmul_bf16_dot(const MatmulArguments& arguments, Parallel& parallel);
// 16, 32 or 64 lanes; accumulator f32, bf16 or f16.
[[nodiscard]] bool bf16_dot_accepts(const ReductionPlan& plan);

// The same in f64 throughout (inputs widened, plain rising sum): the witness in tests. Quantised
// weights count with their f32 values, int8_dynamic's inputs with code · scale.
void matmul_reference(const MatmulArguments& arguments, double* y);

}  // namespace driftscope
