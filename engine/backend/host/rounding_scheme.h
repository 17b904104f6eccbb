// SPDX-License-Identifier: Apache-2.0
// Which results of a forward pass are rounded, and to what.
#pragma once

#include "engine/config/run_config.h"
#include "engine/model/checkpoint.h"
#include "kernels/plan/dtype.h"

namespace driftscope {

// Activations are f32 values; each field says to which type the named result is rounded (f32: not
// at all). Made from activation_dtype, rounding_points and residual.
struct RoundingScheme {
  // The token's row; its scale, and the row times that; its position's row, and their sum (as
  // transformers does: Gemma's scale is a tensor of the activations' type).
  Dtype embedding = Dtype::f32;
  Dtype norm_inner = Dtype::f32;  // x / rms, before the weight
  Dtype norm = Dtype::f32;        // what a norm writes
  Dtype matmul = Dtype::f32;      // what a projection writes, after its bias
  bool rope_products = false;     // each of x·cos and x·sin before their sum
  Dtype rope = Dtype::f32;
  Dtype stored_value = Dtype::f32;  // v where it enters the cache
  Dtype score = Dtype::f32;         // eager attention: q·k after scaling
  Dtype probability = Dtype::f32;   // eager attention: before P·V
  Dtype attention = Dtype::f32;     // what attention writes
  Dtype silu = Dtype::f32;          // activation(gate), before the product
  Dtype swiglu = Dtype::f32;        // the product
  Dtype residual = Dtype::f32;      // the sum x + delta
  // Soft cap of the logits: the quotient and the tanh. The attention scores' follow `score`.
  Dtype cap_step = Dtype::f32;
  // Mixture of experts. The router's logits and softmax follow router_dtype, whatever this says.
  Dtype expert_weight = Dtype::f32;   // a chosen expert's weight, and the shared expert's gate
  Dtype expert_output = Dtype::f32;   // what an expert's down projection writes
  Dtype expert_product = Dtype::f32;  // weight times output
  Dtype expert_sum = Dtype::f32;      // the total after each expert
  Dtype expert_total = Dtype::f32;    // the total after the last of them
};
[[nodiscard]] RoundingScheme rounding_scheme(const RunConfig& config);
// With what this architecture's reference implementation does otherwise.
[[nodiscard]] RoundingScheme rounding_scheme(const RunConfig& config,
                                             const ModelDescription& model);

}  // namespace driftscope
