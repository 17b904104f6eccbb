// SPDX-License-Identifier: Apache-2.0
// What stands between the projections of a feed-forward part: activation(gate) * up (Shazeer 2020,
// GLU variants), or activation(up) where there is no gate; and the soft cap of the logits.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/base/isa.h"
#include "kernels/base/parallel.h"
#include "kernels/plan/dtype.h"
#include "kernels/plan/reduction_plan.h"

namespace driftscope {

// All in f32 with portable::exp, tanh and erf, in the order of the parentheses:
//  silu          g / (1 + exp(-g)). silu(-inf) is NaN, as in the formula.
//  gelu_tanh     (0.5 g) · (1 + tanh(0.7978846 · fma(0.044715, (g · g) · g, g))) (Hendrycks &
//  Gimpel
//                2016), 0.7978846 = sqrt(2 / pi)
//  gelu_erf      (0.5 g) · (1 + erf(g · 0.70710677))
// each rounded once, to silu_dtype: 16-bit frameworks compute them in f32 inside one kernel.
// (GPT-2's "gelu_new" is written in Python, rounding after each of its eight steps; here it is the
// same kernel as the others.)
//  clamped_silu  gpt-oss: with g' = min(g, limit), u' = max(min(u, limit), -limit):
//                (u' + 1) · (g' · (1 / (1 + exp(-(1.702 · g'))))). Frameworks write it step by
//                step, so the scaled gate, the sigmoid, its product and u' + 1 are each rounded to
//                silu_dtype. Needs `up`.
enum class ActivationKind : std::uint8_t { silu, gelu_tanh, gelu_erf, clamped_silu };
[[nodiscard]] std::string_view name_of(ActivationKind kind);

struct ActivationArguments {
  const float* gate = nullptr;  // [rows, width], row stride gate_stride
  const float* up = nullptr;    // [rows, width], row stride up_stride; null: y = activation(gate)
  float* y = nullptr;           // [rows, width], contiguous
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::int64_t gate_stride = 0;
  std::int64_t up_stride = 0;
  Dtype silu_dtype = Dtype::f32;    // activation(gate), before the product
  Dtype output_dtype = Dtype::f32;  // what is written
  ActivationKind kind = ActivationKind::silu;
  float limit = 0.0F;  // clamped_silu only, above 0
};
using SwigluArguments = ActivationArguments;  // of the kind silu

// One way to compute it. All portable variants give the same bits.
struct SwigluVariant {
  std::string_view name;  // "scalar", "avx2", "avx512"
  Isa isa;
  Determinism determinism;  // what the variant promises
  bool portable;            // same bits as the scalar definition
  void (*run)(const ActivationArguments& arguments, Parallel& parallel);
};
[[nodiscard]] std::span<const SwigluVariant> swiglu_variants();

void swiglu(const ActivationArguments& arguments, Isa isa, Parallel& parallel);
// The same in f64 throughout, without rounding points: y [rows, width].
void swiglu_reference(const ActivationArguments& arguments, double* y);

struct SoftCapArguments {
  float* x = nullptr;  // [count], in place
  std::int64_t count = 0;
  float cap = 1.0F;                 // above 0
  Dtype step_dtype = Dtype::f32;    // the quotient and the tanh are rounded to this
  Dtype output_dtype = Dtype::f32;  // and the product to this
};
// x = cap · tanh(x / cap) (soft_cap.h), the same bits on every instruction set.
void soft_cap(const SoftCapArguments& arguments, Isa isa, Parallel& parallel);

}  // namespace driftscope
