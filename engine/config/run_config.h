// SPDX-License-Identifier: Apache-2.0
// One side of an experiment: every setting that can change a bit of the result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/plan/dtype.h"
#include "kernels/plan/kv_dtype.h"
#include "kernels/plan/plan_policy.h"
#include "kernels/plan/reduction_plan.h"

namespace driftscope {

// `checkpoint` keeps the type in which the tensor is stored.
enum class WeightDtype : std::uint8_t { checkpoint, f32, f16, bf16 };

// Where activations are rounded to activation_dtype.
enum class RoundingPoints : std::uint8_t {
  every_op,       // after every operation, as separate 16-bit kernels do (eager frameworks)
  fused,          // once at the end of each fused kernel: norm, RoPE, SwiGLU keep f32 inside
  matmul_inputs,  // only where a matmul reads or the KV cache stores; the rest stays f32
};

enum class ResidualMode : std::uint8_t {
  rounded_first,  // the sum is rounded to the activation type, then normalised
  fused_f32,      // the residual stream stays f32; only what the norm writes is rounded
};

enum class AttentionMode : std::uint8_t { eager, flash, split_kv_count, split_kv_size };
enum class PrefixCache : std::uint8_t { cold, warm };
enum class Scoring : std::uint8_t { decode, prefill };
enum class BackendKind : std::uint8_t { host, cuda };
enum class IsaChoice : std::uint8_t { automatic, scalar, avx2, avx512 };
enum class RopeTableDtype : std::uint8_t { f32, f64, bf16 };

// shared_worker: every request in flight draws from one stream, in the order of the batch, so
// neighbours consume numbers that this request would have had.
enum class SeedScope : std::uint8_t { request, shared_worker };

// How a random number becomes a token: the inverse of the cumulative distribution, or a race in
// which each token's logit gets Gumbel noise of its own and the highest wins.
enum class SamplerMethod : std::uint8_t { inverse_cdf, gumbel_max };

// Weights quantised while loading, from the checkpoint's full-precision values.
enum class Quantisation : std::uint8_t {
  none,
  int8_w8a16,       // int8 weights, one scale per output; activations as they are
  int8_w8a8,        // the same weights; activations int8 with one scale per row (token)
  fp8_tensor,       // e4m3 weights, one scale per matrix
  fp8_channel,      // e4m3 weights, one scale per output
  int4_symmetric,   // groups along K, one scale each
  int4_asymmetric,  // groups along K, scale and zero point each
  q8_0,             // GGUF block formats
  q4_0,
  q4_k,
  q5_k,
  q6_k,
};

// Which matmul kernels run. `bf16_dot` is the processor's own dot product of bf16 pairs
// (AVX512-BF16), whose inner rounding no standard defines: fast, and not portable.
enum class MatmulKernel : std::uint8_t { portable, bf16_dot };

enum class AllReduce : std::uint8_t { one_shot, ring, tree, nccl };

// When the requests of a batch arrive, this one among them.
enum class ArrivalOrder : std::uint8_t {
  together,  // all prompts are prefilled in one group and decode together
  first,     // this request runs alone first; neighbours join one per step
  last,      // neighbours are already decoding when this request arrives
};

struct SamplingConfig {
  double temperature = 0.0;  // 0: greedy
  double top_p = 1.0;
  std::int64_t top_k = 0;  // 0: off
  double min_p = 0.0;
  double repetition_penalty = 1.0;
  double presence_penalty = 0.0;
  double frequency_penalty = 0.0;
  std::uint64_t seed = 0;
  SeedScope seed_scope = SeedScope::request;
  SamplerMethod method = SamplerMethod::inverse_cdf;
  std::vector<std::string> stop_strings;
  std::vector<std::int32_t> stop_tokens;  // besides the model's end-of-sequence tokens
  bool ignore_eos = false;
  friend bool operator==(const SamplingConfig&, const SamplingConfig&) = default;
};

struct RunConfig {
  std::string name;  // preset or file it came from, for display; changes nothing

  // precision
  WeightDtype weight_dtype = WeightDtype::checkpoint;
  WeightDtype lm_head_dtype = WeightDtype::checkpoint;
  Dtype activation_dtype = Dtype::f32;  // f32, f16, bf16
  RoundingPoints rounding_points = RoundingPoints::every_op;
  KvDtype kv_dtype = KvDtype::f32;
  Dtype softmax_dtype = Dtype::f32;  // attention's softmax: f32, f64, bf16, f16
  RopeTableDtype rope_table_dtype = RopeTableDtype::f32;
  Dtype logits_dtype = Dtype::f32;  // f32, f16, bf16

  // quantisation
  Quantisation quantisation = Quantisation::none;
  std::int64_t quantisation_group = 128;  // terms of K that share a scale (int4)
  bool quantise_lm_head = false;

  // mixture of experts
  Dtype router_dtype = Dtype::f32;  // f32, f16, bf16: of the router's logits and softmax

  // matmul
  MatmulKernel matmul_kernel = MatmulKernel::portable;
  bool tf32 = false;                         // CUDA, vendor policy
  bool reduced_precision_reduction = false;  // CUDA, vendor policy
  PlanPolicy matmul_policy = PlanPolicy::invariant;
  ReductionPlan matmul_plan;  // the base plan: lanes, split_k, combines, accumulator, arrival seed

  // attention
  AttentionMode attention = AttentionMode::flash;
  std::int64_t attention_tile = 64;        // keys per flash tile
  std::int64_t attention_splits = 4;       // split_kv_count
  std::int64_t attention_split_size = 64;  // split_kv_size
  int attention_lanes = 32;                // of q·k over head_dim
  SplitCombine attention_combine = SplitCombine::sequential;
  std::int64_t attention_page = 0;  // tokens per block of the paged cache; 0: contiguous

  // norm and fusion
  int norm_lanes = 32;
  int norm_split = 1;
  ResidualMode residual = ResidualMode::rounded_first;
  bool fused_qkv = false;
  bool fused_gate_up = false;

  // batch
  std::int64_t neighbours = 0;  // other requests in flight, 0 … 255
  std::int64_t batch_position = 0;
  std::int64_t prefill_chunk = 0;  // rows per prefill call; 0: whole prompt
  PrefixCache prefix_cache = PrefixCache::cold;
  ArrivalOrder arrival_order = ArrivalOrder::together;
  std::int64_t neighbour_steps = 0;       // steps after which neighbours leave, one each; 0: never
  std::vector<std::int32_t> graph_sizes;  // rows of a decode call are padded up to one of these
  std::int64_t speculative_tokens = 0;    // draft tokens verified per step: k + 1 rows a request

  // parallel
  std::int64_t tensor_parallel = 1;  // ranks: 1, 2, 4, 8
  AllReduce all_reduce = AllReduce::one_shot;
  Dtype reduce_dtype = Dtype::f32;         // f32, bf16, f16: of what ranks send
  bool tensor_parallel_invariant = false;  // tree-aligned plans: the same bits for any ranks

  // execution
  BackendKind backend = BackendKind::host;
  std::int64_t threads = 0;  // 0: all cores
  IsaChoice isa = IsaChoice::automatic;
  bool cuda_graph = false;
  std::int64_t cuda_streams = 1;
  std::int64_t cublas_workspace = 32768;  // KiB
  std::int64_t cublas_algorithm = -1;     // -1: the heuristic's first; else its n-th proposal

  Scoring scoring = Scoring::decode;
  SamplingConfig sampling;

  friend bool operator==(const RunConfig&, const RunConfig&) = default;
};

}  // namespace driftscope
