// SPDX-License-Identifier: Apache-2.0
// Knobs of what is computed: precision, quantisation, matmul, attention, norm.
#include "engine/config/knob_rows.h"

namespace driftscope::knob_rows {

void add_precision(std::vector<KnobSpec>& knobs) {
  const auto g = std::string_view{"precision"};
  knobs.push_back(choice<DRIFTSCOPE_FIELD(weight_dtype)>(
      {"weight_dtype", g, "Weight dtype",
       "Type in which weights are held. A wider type than the stored one changes no value."},
      {}));
  knobs.push_back(choice<DRIFTSCOPE_FIELD(lm_head_dtype)>(
      {"lm_head_dtype", g, "LM head dtype",
       "Type of the output matrix, where it differs from the other weights."},
      {}));
  knobs.push_back(choice<DRIFTSCOPE_FIELD(activation_dtype)>(
      {"activation_dtype", g, "Activation dtype",
       "Type to which activations are rounded at the rounding points."},
      {}, {"f32", "f16", "bf16"}));
  knobs.push_back(choice<DRIFTSCOPE_FIELD(rounding_points)>(
      {"rounding_points", g, "Rounding points",
       "every_op: after each operation, as separate 16-bit kernels do; fused: once at the end of "
       "each "
       "fused kernel; matmul_inputs: only what matmuls read and the KV cache stores."},
      {.base = "activation_dtype=bf16"}));
  knobs.push_back(
      choice<DRIFTSCOPE_FIELD(kv_dtype)>({"kv_dtype", g, "KV cache dtype",
                                          "Type in which keys and values are stored. fp8_e4m3 "
                                          "saturates at 448; int8 has one scale per "
                                          "token and head."},
                                         {}));
  knobs.push_back(choice<DRIFTSCOPE_FIELD(softmax_dtype)>(
      {"softmax_dtype", g, "Softmax dtype",
       "Type of attention's exponentials and their sum; f16 and bf16 also round the result."},
      {}));
  knobs.push_back(choice<DRIFTSCOPE_FIELD(rope_table_dtype)>(
      {"rope_table_dtype", g, "RoPE table dtype",
       "Type in which the angles of the rotary embedding are computed and stored; a mismatch known "
       "from comparing serving and training stacks."},
      {}));
  knobs.push_back(choice<DRIFTSCOPE_FIELD(logits_dtype)>(
      {"logits_dtype", g, "Logits dtype", "Type to which the logits are rounded."}, {},
      {"f32", "f16", "bf16"}));
  knobs.push_back(choice<DRIFTSCOPE_FIELD(router_dtype)>(
      {"router_dtype", g, "Router dtype",
       "Type of the router's logits and softmax in a mixture of experts, whatever the activation "
       "dtype is. Changes nothing in dense models."},
      {}, {"f32", "f16", "bf16"}));
}

void add_quantisation(std::vector<KnobSpec>& knobs) {
  const auto g = std::string_view{"quantisation"};
  knobs.push_back(choice<DRIFTSCOPE_FIELD(quantisation)>(
      {"quantisation", g, "Quantisation",
       "Weights quantised while loading. int8: one scale per output (w8a8: activations too, one "
       "scale per row); fp8: e4m3, one scale per matrix or per output; int4: groups along K; q*: "
       "GGUF block formats."},
      {.base = {},
       .host = {"none", "int8_w8a16", "int8_w8a8", "fp8_tensor", "fp8_channel", "int4_symmetric",
                "int4_asymmetric"}}));
  knobs.push_back(number<DRIFTSCOPE_FIELD(quantisation_group)>(
      kInteger, {"quantisation_group", g, "Quantisation group", "Terms that share a scale (int4)."},
      16, 4096, {.base = "quantisation=int4_symmetric"}, true));
  knobs.push_back(make<DRIFTSCOPE_FIELD(quantise_lm_head)>(
      KnobKind::boolean,
      {"quantise_lm_head", g, "Quantise LM head", "Whether the output matrix is quantised too."},
      {.base = "quantisation=int8_w8a16"}));
}

void add_matmul(std::vector<KnobSpec>& knobs) {
  const auto g = std::string_view{"matmul"};
  knobs.push_back(choice<DRIFTSCOPE_FIELD(matmul_policy)>(
      {"matmul_policy", g, "Matmul policy",
       "invariant: one plan whatever the number of rows in flight; shape_dependent: a table from "
       "rows to plans, as GPU libraries choose kernels; vendor: cuBLAS picks (CUDA only)."},
      {.base = {}, .host = {"invariant", "shape_dependent"}}));
  knobs.push_back(choice<DRIFTSCOPE_FIELD(matmul_kernel)>(
      {"matmul_kernel", g, "Matmul kernel",
       "portable: the bits that every processor gives; bf16_dot: AVX512-BF16's dot product of bf16 "
       "weights and activations rounded to bf16, fast and not portable."},
      {.base = "weight_dtype=bf16 lm_head_dtype=bf16", .host = {"portable", "bf16_dot"}}));
  knobs.push_back(make<DRIFTSCOPE_FIELD(tf32)>(
      KnobKind::boolean, {"tf32", g, "TF32", "cuBLAS may round f32 inputs to TF32 (CUDA only)."},
      {.effect = KnobEffect::changes_bits, .base = {}, .host = {"false"}}));
  knobs.push_back(make<DRIFTSCOPE_FIELD(reduced_precision_reduction)>(
      KnobKind::boolean,
      {"reduced_precision_reduction", g, "Reduced-precision reduction",
       "cuBLAS may add split-K partial sums in 16 bits (CUDA only)."},
      {.effect = KnobEffect::changes_bits, .base = {}, .host = {"false"}}));
  knobs.push_back(number<DRIFTSCOPE_FIELD(matmul_plan.lanes)>(
      kInteger, {"matmul_lanes", g, "Lanes", "Partial sums side by side in each dot product."}, 1,
      1024, {}, true));
  knobs.push_back(number<DRIFTSCOPE_FIELD(matmul_plan.split_k)>(
      kInteger, {"matmul_split_k", g, "Split-K", "Chunks into which each dot product is cut."}, 1,
      1024, {}));
  knobs.push_back(choice<DRIFTSCOPE_FIELD(matmul_plan.lane_combine)>(
      {"lane_combine", g, "Lane combine", "Order in which the lanes of a chunk are added."}, {}));
  knobs.push_back(choice<DRIFTSCOPE_FIELD(matmul_plan.split_combine)>(
      {"split_combine", g, "Split combine",
       "Order in which chunk sums are added; arrival: a seeded permutation, as atomics give."},
      {.base = "matmul_split_k=8"}));
  knobs.push_back(choice<DRIFTSCOPE_FIELD(matmul_plan.accumulator)>(
      {"accumulator", g, "Accumulator",
       "Type of the matmul sums: f32, f64, compensated f32 "
       "(kahan), or rounded to 16 bits after each chunk."},
      {.base = "matmul_split_k=4"}));
  knobs.push_back(number<DRIFTSCOPE_FIELD(matmul_plan.arrival_seed)>(
      kInteger,
      {"arrival_seed", g, "Arrival seed", "Which permutation split_combine=arrival takes."}, 0,
      kLargest, {.base = "matmul_split_k=8 split_combine=arrival"}));
}

void add_attention(std::vector<KnobSpec>& knobs) {
  const auto g = std::string_view{"attention"};
  knobs.push_back(choice<DRIFTSCOPE_FIELD(attention)>(
      {"attention", g, "Attention",
       "eager: whole softmax; flash: online softmax over key tiles; split_kv_count: a fixed number "
       "of splits; split_kv_size: splits of a fixed size (batch-invariant)."},
      {}));
  knobs.push_back(number<DRIFTSCOPE_FIELD(attention_tile)>(
      kInteger, {"attention_tile", g, "Flash tile", "Keys per tile of flash attention."}, 1, 65536,
      {.base = "attention=flash"}));
  knobs.push_back(number<DRIFTSCOPE_FIELD(attention_splits)>(
      kInteger, {"attention_splits", g, "KV splits", "Number of splits under split_kv_count."}, 1,
      256, {.base = "attention=split_kv_count"}));
  knobs.push_back(number<DRIFTSCOPE_FIELD(attention_split_size)>(
      kInteger, {"attention_split_size", g, "KV split size", "Keys per split under split_kv_size."},
      1, 65536, {.base = "attention=split_kv_size"}));
  knobs.push_back(number<DRIFTSCOPE_FIELD(attention_lanes)>(
      kInteger, {"attention_lanes", g, "Score lanes", "Lanes of each query-key dot product."}, 1,
      1024, {}, true));
  knobs.push_back(choice<DRIFTSCOPE_FIELD(attention_combine)>(
      {"attention_combine", g, "KV split combine", "Order in which splits are merged."},
      {.base = "attention=split_kv_count attention_splits=8"}));
  knobs.push_back(number<DRIFTSCOPE_FIELD(attention_page)>(
      kInteger,
      {"attention_page", g, "KV page", "Tokens per block of a paged cache; 0: contiguous."}, 0,
      4096, {.effect = KnobEffect::none_expected, .base = {}}));
}

void add_norm(std::vector<KnobSpec>& knobs) {
  const auto g = std::string_view{"norm"};
  knobs.push_back(number<DRIFTSCOPE_FIELD(norm_lanes)>(
      kInteger, {"norm_lanes", g, "Norm lanes", "Lanes of RMSNorm's sum of squares."}, 1, 1024, {},
      true));
  knobs.push_back(number<DRIFTSCOPE_FIELD(norm_split)>(
      kInteger, {"norm_split", g, "Norm split", "Chunks of RMSNorm's sum of squares."}, 1, 64, {}));
  knobs.push_back(
      choice<DRIFTSCOPE_FIELD(residual)>({"residual", g, "Residual stream",
                                          "rounded_first: every residual sum is rounded to the "
                                          "activation type; fused_f32: it stays f32."},
                                         {.base = "activation_dtype=bf16"}));
  const Reach with_batch{.effect = KnobEffect::changes_with_batch,
                         .base = "matmul_policy=shape_dependent"};
  knobs.push_back(make<DRIFTSCOPE_FIELD(fused_qkv)>(
      KnobKind::boolean,
      {"fused_qkv", g, "Fused QKV",
       "One matmul for q, k and v: its shape, and so its plan, differs."},
      with_batch));
  knobs.push_back(make<DRIFTSCOPE_FIELD(fused_gate_up)>(
      KnobKind::boolean, {"fused_gate_up", g, "Fused gate and up", "One matmul for gate and up."},
      with_batch));
}

}  // namespace driftscope::knob_rows
