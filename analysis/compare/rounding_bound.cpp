// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/rounding_bound.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/config/knob.h"
#include "engine/config/rank_plans.h"
#include "kernels/plan/portable_math.h"

namespace driftscope {

namespace {

// Head widths of the Llama family are 64 … 256; the facts do not say which.
constexpr std::int64_t kLargestHead = 256;
// Rows in flight that a shape-dependent policy may meet.
constexpr std::int64_t kLargestBatch = 4096;

double unit_roundoff(Dtype dtype) { return std::ldexp(1.0, -significand_bits(dtype)); }

double unit_roundoff(Accumulator accumulator) {
  switch (accumulator) {
    case Accumulator::f32:
    case Accumulator::kahan:
      return unit_roundoff(Dtype::f32);
    case Accumulator::f64:
      return unit_roundoff(Dtype::f64);
    case Accumulator::bf16:
      return unit_roundoff(Dtype::bf16);
    case Accumulator::f16:
      return unit_roundoff(Dtype::f16);
  }
  return unit_roundoff(Dtype::f32);
}

// One side and the sizes it works on.
struct Side {
  const RunConfig& config;
  std::int64_t hidden;
  std::int64_t intermediate;
  std::int64_t positions;
  bool mixture;  // of experts
};

// Longest chain of additions under a plan: inside a lane, over the lanes, over the chunks.
double chain_length(const ReductionPlan& plan, std::int64_t k) {
  const double per_lane = std::ceil(static_cast<double>(k) / plan.lanes / plan.split_k);
  const double lanes =
      plan.lane_combine == LaneCombine::butterfly ? std::ilogb(plan.lanes) : plan.lanes;
  return per_lane + lanes + plan.split_k;
}

double matmul_error(const Side& side, std::int64_t k) {
  const RunConfig& config = side.config;
  double longest = static_cast<double>(k);
  if (config.matmul_policy == PlanPolicy::invariant) {
    longest = chain_length(config.matmul_plan, k);
  } else if (config.matmul_policy == PlanPolicy::shape_dependent) {
    longest = 0.0;
    for (std::int64_t m = 1; m <= kLargestBatch; m *= 2) {
      const auto plan = matmul_plan(config.matmul_policy, config.matmul_plan, m, k, k);
      longest = std::max(longest, chain_length(plan, k));
    }
  }
  const double u = unit_roundoff(config.matmul_plan.accumulator);
  // bf16_dot rounds its inputs to bf16 and flushes subnormals.
  const double input = config.matmul_kernel == MatmulKernel::bf16_dot ? unit_roundoff(Dtype::bf16)
                                                                      : unit_roundoff(Dtype::f32);
  return std::sqrt(static_cast<double>(k)) * probabilistic_gamma(longest, u) + input;
}

double score_error(const Side& side) {
  const ReductionPlan plan{.lanes = side.config.attention_lanes};
  return std::sqrt(static_cast<double>(kLargestHead)) *
         probabilistic_gamma(chain_length(plan, kLargestHead), unit_roundoff(Dtype::f32));
}

double value_sum_error(const Side& side) {
  const auto positions = static_cast<double>(side.positions);
  return std::sqrt(positions) * probabilistic_gamma(positions, unit_roundoff(Dtype::f32));
}

double norm_error(const Side& side) {
  const ReductionPlan plan{.lanes = side.config.norm_lanes, .split_k = side.config.norm_split};
  const double u = unit_roundoff(Dtype::f32);
  return probabilistic_gamma(chain_length(plan, side.hidden), u) + 3.0 * u;
}

double activation_error(const Side& side) { return unit_roundoff(side.config.activation_dtype); }
double kv_error(const Side& side) {
  if (const auto dtype = plain_dtype(side.config.kv_dtype)) return unit_roundoff(*dtype);
  if (side.config.kv_dtype == KvDtype::fp8_e4m3) return 0x1p-4;  // 3 fraction bits
  // int8: half a step is amax / 254, and the largest element is at most sqrt(head) times their rms.
  return std::sqrt(static_cast<double>(kLargestHead)) / 254.0;
}
double softmax_error(const Side& side) {
  return unit_roundoff(side.config.softmax_dtype) + 2.0 * unit_roundoff(Dtype::f32);
}
// Activations quantised per row to 127 steps of their largest value: half a step, relative to it.
double quantised_activation_error(const Side& side) {
  return side.config.quantisation == Quantisation::int8_w8a8 ? 1.0 / 254.0 : 0.0;
}
// Ranks send partial sums in reduce_dtype; each hop rounds once more.
double all_reduce_error(const Side& side) {
  const auto ranks = static_cast<double>(side.config.tensor_parallel);
  return ranks > 1.0 ? std::sqrt(ranks) * unit_roundoff(side.config.reduce_dtype) : 0.0;
}
// Weights of the chosen experts carry the router's rounding. Routes that flip are another
// computation; no bound covers them.
double router_error(const Side& side) {
  return side.mixture ? unit_roundoff(side.config.router_dtype) : 0.0;
}
double logits_error(const Side& side) { return unit_roundoff(side.config.logits_dtype); }

// cos and sin of position * frequency: the angle carries the rounding of its dtype times its size.
double rope_error(const Side& side) {
  const double angle = static_cast<double>(side.positions) * unit_roundoff(Dtype::f32);
  switch (side.config.rope_table_dtype) {
    case RopeTableDtype::f32:
      return angle + unit_roundoff(Dtype::f32);
    case RopeTableDtype::f64:
      return unit_roundoff(Dtype::f32);
    case RopeTableDtype::bf16:
      return angle + unit_roundoff(Dtype::bf16);
  }
  return angle;
}

double hidden_matmul_error(const Side& side) { return matmul_error(side, side.hidden); }
double intermediate_matmul_error(const Side& side) { return matmul_error(side, side.intermediate); }

struct Source {
  std::string_view name;
  std::string_view knobs;
  int per_layer;
  int at_head;
  double (*relative)(const Side&);
};

constexpr std::array kSources{
    Source{"matmul over the hidden width",
           "matmul_policy, matmul_lanes, matmul_split_k, lane_combine, split_combine, accumulator",
           6, 1, hidden_matmul_error},
    Source{"matmul over the intermediate width",
           "matmul_policy, matmul_lanes, matmul_split_k, lane_combine, split_combine, accumulator",
           1, 0, intermediate_matmul_error},
    Source{"attention scores", "attention_lanes", 1, 0, score_error},
    Source{"attention's weighted sum",
           "attention, attention_tile, attention_splits, attention_split_size, attention_combine",
           1, 0, value_sum_error},
    Source{"attention's softmax", "softmax_dtype", 1, 0, softmax_error},
    Source{"norms", "norm_lanes, norm_split", 2, 1, norm_error},
    // norm, q, k, v, rope q, rope k, attention, o, sum; norm, gate, up, product, down, sum
    Source{"rounding of activations", "activation_dtype, rounding_points, residual", 15, 1,
           activation_error},
    Source{"rounding of keys and values", "kv_dtype", 2, 0, kv_error},
    Source{"RoPE table", "rope_table_dtype", 2, 0, rope_error},
    Source{"quantised activations", "quantisation", 7, 0, quantised_activation_error},
    Source{"all-reduce over ranks", "tensor_parallel, all_reduce, reduce_dtype", 2, 0,
           all_reduce_error},
    Source{"rounding of the router", "router_dtype", 1, 0, router_error},
    Source{"rounding of logits", "logits_dtype", 0, 1, logits_error},
};

// Sum over layers of the squared growth from that layer to the end: ((layers + 1) / (j + 1))^2.
double squared_growth(std::int64_t layers) {
  double sum = 0.0;
  for (std::int64_t layer = 1; layer <= layers; ++layer) {
    const double growth = static_cast<double>(layers + 1) / static_cast<double>(layer);
    sum += growth * growth;
  }
  return sum;
}

}  // namespace

double probabilistic_gamma(double terms, double unit_roundoff) {
  return portable::expm1(kBoundConfidence * std::sqrt(terms) * unit_roundoff +
                         terms * unit_roundoff * unit_roundoff / (1.0 - unit_roundoff));
}

bool bits_may_differ(const RunConfig& a, const RunConfig& b) {
  const auto depends_on_batch = [](const RunConfig& config) {
    return config.matmul_policy != PlanPolicy::invariant ||
           config.attention == AttentionMode::split_kv_count || ring_sees_the_batch(config);
  };
  for (const KnobDifference& difference : config_difference(a, b)) {
    const KnobSpec* knob = find_knob(difference.id);
    if (knob == nullptr || knob->effect == KnobEffect::changes_bits) return true;
    if (knob->effect == KnobEffect::changes_with_batch &&
        (depends_on_batch(a) || depends_on_batch(b))) {
      return true;
    }
  }
  return false;
}

Dtype effective_dtype(WeightDtype weight, Dtype stored) {
  switch (weight) {
    case WeightDtype::checkpoint:
    case WeightDtype::f32:  // widening keeps every value of f16 and bf16
      return stored;
    case WeightDtype::f16:
      return Dtype::f16;
    case WeightDtype::bf16:
      return Dtype::bf16;
  }
  return stored;
}

bool same_weight_values(const RunConfig& a, const RunConfig& b, Dtype stored) {
  const auto grouped = [](const RunConfig& config) {
    return config.quantisation == Quantisation::int4_symmetric ||
           config.quantisation == Quantisation::int4_asymmetric;
  };
  // W8A8 reads the weights of W8A16; only the activations differ.
  const auto codes = [](const RunConfig& config) {
    return config.quantisation == Quantisation::int8_w8a8 ? Quantisation::int8_w8a16
                                                          : config.quantisation;
  };
  if (codes(a) != codes(b)) return false;
  if (a.quantisation != Quantisation::none && a.quantise_lm_head != b.quantise_lm_head) {
    return false;
  }
  if (grouped(a) && a.quantisation_group != b.quantisation_group) return false;
  return effective_dtype(a.weight_dtype, stored) == effective_dtype(b.weight_dtype, stored) &&
         effective_dtype(a.lm_head_dtype, stored) == effective_dtype(b.lm_head_dtype, stored);
}

namespace {

// True where everything before the logits is computed alike, so that only their rounding differs.
bool only_logits_rounding_differs(const RunConfig& a, const RunConfig& b) {
  RunConfig alike = b;
  alike.logits_dtype = a.logits_dtype;
  return !bits_may_differ(a, alike);
}

double error_of(const Side& side, double growth) {
  double squares = 0.0;
  for (const Source& source : kSources) {
    const double relative = source.relative(side);
    squares += (growth * source.per_layer + source.at_head) * relative * relative;
  }
  return kBoundConfidence * std::sqrt(squares);
}

}  // namespace

RoundingBound rounding_bound(const ExperimentFacts& facts, std::int64_t positions) {
  RoundingBound bound;
  const bool same_model = facts.model_sha256_a == facts.model_sha256_b;
  bound.known = facts.layers > 0 && facts.hidden > 0 && facts.intermediate > 0 && same_model &&
                same_weight_values(facts.config_a, facts.config_b, facts.stored_dtype);
  if (!bound.known) return bound;
  const std::int64_t longest = std::max<std::int64_t>(positions, 1);
  const bool mixture = !facts.routes.layers.empty();
  const Side a{facts.config_a, facts.hidden, facts.intermediate, longest, mixture};
  const Side b{facts.config_b, facts.hidden, facts.intermediate, longest, mixture};
  const double growth = squared_growth(facts.layers);
  bound.relative_a = error_of(a, growth);
  bound.relative_b = error_of(b, growth);
  if (!bits_may_differ(facts.config_a, facts.config_b)) return bound;
  double squares = 0.0;
  const bool logits_only = only_logits_rounding_differs(facts.config_a, facts.config_b);
  for (const Source& source : kSources) {
    if (logits_only && source.relative != logits_error) continue;
    const double relative = source.relative(a) + source.relative(b);
    const double share = (growth * source.per_layer + source.at_head) * relative * relative;
    squares += share;
    bound.contributions.push_back({source.name, source.knobs, kBoundConfidence * std::sqrt(share)});
  }
  bound.relative = kBoundConfidence * std::sqrt(squares);
  return bound;
}

}  // namespace driftscope
