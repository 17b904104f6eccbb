// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/host/rounding_scheme.h"

namespace driftscope {
namespace {

// Fused kernels: one rounding where each writes to memory. Attention in any order is one of them;
// an expert's down projection multiplies by the weight before it writes, and another kernel adds up
// what the experts wrote.
RoundingScheme fused(Dtype activation) {
  return {.embedding = activation,
          .norm = activation,
          .matmul = activation,
          .rope = activation,
          .stored_value = activation,
          .attention = activation,
          .swiglu = activation,
          .expert_product = activation,
          .expert_total = activation};
}

RoundingScheme every_operation(Dtype activation) {
  RoundingScheme scheme = fused(activation);
  scheme.norm_inner = activation;
  scheme.rope_products = true;
  scheme.score = activation;
  scheme.probability = activation;
  scheme.silu = activation;
  scheme.expert_weight = activation;
  scheme.expert_output = activation;
  scheme.expert_sum = activation;
  return scheme;
}

// What a matmul reads: the inputs of projections, and q, k, v and probabilities as the inputs of
// attention's two products.
RoundingScheme matmul_inputs(Dtype activation) {
  return {.norm = activation,
          .rope = activation,
          .stored_value = activation,
          .probability = activation,
          .attention = activation,
          .swiglu = activation};
}

}  // namespace

RoundingScheme rounding_scheme(const RunConfig& config) {
  const Dtype activation = config.activation_dtype;
  const auto with_residual = [&](RoundingScheme scheme) {
    if (config.residual == ResidualMode::rounded_first) scheme.residual = activation;
    return scheme;
  };
  switch (config.rounding_points) {
    case RoundingPoints::every_op:
      return with_residual(every_operation(activation));
    case RoundingPoints::fused:
      return with_residual(fused(activation));
    case RoundingPoints::matmul_inputs:
      return matmul_inputs(activation);  // the residual stream is no input of a matmul
  }
  return {};
}

RoundingScheme rounding_scheme(const RunConfig& config, const ModelDescription& model) {
  RoundingScheme scheme = rounding_scheme(config);
  // Gemma's and gpt-oss's norms multiply by the weight in f32 and round the product only
  // (transformers: Gemma2RMSNorm, Gemma3RMSNorm, GptOssRMSNorm); Llama's round before it too.
  if (model.post_norms || model.attention_sinks) scheme.norm_inner = Dtype::f32;
  // transformers caps what the LM head wrote, in its type, operation by operation.
  if (config.rounding_points == RoundingPoints::every_op) scheme.cap_step = config.logits_dtype;
  return scheme;
}

}  // namespace driftscope
