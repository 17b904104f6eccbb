// SPDX-License-Identifier: Apache-2.0
// One side of an experiment: every setting that can change a bit of the result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/plan/dtype.h"
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
enum class SeedScope : std::uint8_t { request };

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
  Dtype kv_dtype = Dtype::f32;       // f32, f16, bf16
  Dtype softmax_dtype = Dtype::f32;  // attention's softmax: f32, f64, bf16, f16
  RopeTableDtype rope_table_dtype = RopeTableDtype::f32;
  Dtype logits_dtype = Dtype::f32;  // f32, f16, bf16

  // matmul
  PlanPolicy matmul_policy = PlanPolicy::invariant;
  ReductionPlan matmul_plan;  // the base plan: lanes, split_k, combines, accumulator, arrival seed

  // attention
  AttentionMode attention = AttentionMode::flash;
  std::int64_t attention_tile = 64;        // keys per flash tile
  std::int64_t attention_splits = 4;       // split_kv_count
  std::int64_t attention_split_size = 64;  // split_kv_size
  int attention_lanes = 32;                // of q·k over head_dim
  SplitCombine attention_combine = SplitCombine::sequential;

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

  // execution
  BackendKind backend = BackendKind::host;
  std::int64_t threads = 0;  // 0: all cores
  IsaChoice isa = IsaChoice::automatic;

  Scoring scoring = Scoring::decode;
  SamplingConfig sampling;

  friend bool operator==(const RunConfig&, const RunConfig&) = default;
};

}  // namespace driftscope
