// SPDX-License-Identifier: Apache-2.0
// Which order of summation each side used: what batch composition changed.
#include <fmt/format.h>

#include "analysis/compare/findings.h"
#include "engine/config/knob.h"
#include "engine/config/rank_plans.h"

namespace driftscope {

namespace {

// What decides the plan of the feed-forward's down projection while tokens are decoded one by one.
// The same function of the same configuration that the engine asks.
struct DecodePlan {
  std::int64_t rows = 0;  // in flight
  ReductionPlan plan;
};

// `aligned`: ranks follow one tree of sums, which one rank alone makes too.
DecodePlan decode_plan(RunConfig config, const ExperimentFacts& facts, bool aligned) {
  const std::int64_t rows = 1 + config.neighbours;
  if (aligned) config.tensor_parallel = 1;
  return {
      .rows = rows,
      .plan = plan_of_terms(
          config,
          {.m = rows, .n = facts.hidden, .k = facts.intermediate, .parts = facts.intermediate})};
}

std::string describe_change(const ReductionPlan& a, const ReductionPlan& b) {
  std::string text;
  const auto add = [&](std::string_view name, auto value_a, auto value_b) {
    if (value_a == value_b) return;
    text += fmt::format("{}{} from {} to {}", text.empty() ? "" : ", ", name, value_a, value_b);
  };
  add("split-K", a.split_k, b.split_k);
  add("lanes", a.lanes, b.lanes);
  add("lane combine", name_of(a.lane_combine), name_of(b.lane_combine));
  add("split combine", name_of(a.split_combine), name_of(b.split_combine));
  add("accumulator", name_of(a.accumulator), name_of(b.accumulator));
  add("arrival seed", a.arrival_seed, b.arrival_seed);
  return text;
}

bool follow_one_tree(const ExperimentFacts& facts) {
  return facts.config_a.tensor_parallel_invariant && facts.config_b.tensor_parallel_invariant;
}

// "1 row in flight", with the ranks where they differ between the sides.
std::string describe_rows(const DecodePlan& plan, const RunConfig& config, bool name_ranks) {
  std::string text = fmt::format("{} in flight", counted(plan.rows, "row"));
  if (name_ranks) text += fmt::format(" on {}", counted(config.tensor_parallel, "rank"));
  return text;
}

// "partial sums of 4 ranks that meet in a ring in bf16", or "one sum on one rank".
std::string describe_ranks(const RunConfig& config) {
  if (config.tensor_parallel == 1) return "one sum on one rank";
  std::string_view way = "meet in rank order";
  if (config.all_reduce == AllReduce::ring) way = "meet in a ring";
  if (config.all_reduce == AllReduce::tree) way = "meet in a tree";
  if (config.all_reduce == AllReduce::nccl) way = "are added by NCCL";
  return fmt::format("partial sums of {} ranks that {} in {}", config.tensor_parallel, way,
                     dtype_name(config.reduce_dtype));
}

}  // namespace

void find_rank_difference(const RunContext& context, std::vector<Finding>& findings) {
  const RunConfig& a = context.facts.config_a;
  const RunConfig& b = context.facts.config_b;
  const std::string text_a = describe_ranks(a);
  const std::string text_b = describe_ranks(b);
  if (text_a == text_b) return;
  const bool aligned = follow_one_tree(context.facts);
  findings.push_back(make_finding(
      "ranks_differ", Severity::info,
      fmt::format("The attention output and down projections end in {} (A) and in {} (B){}", text_a,
                  text_b, aligned ? "; both follow one tree of sums, whatever the ranks" : ""),
      {{"ranks_a", a.tensor_parallel},
       {"ranks_b", b.tensor_parallel},
       {"sums_a", text_a},
       {"sums_b", text_b}}));
}

void find_plan_difference(const RunContext& context, std::vector<Finding>& findings) {
  const ExperimentFacts& facts = context.facts;
  if (facts.hidden <= 0 || facts.intermediate <= 0) return;
  for (const RunConfig* config : {&facts.config_a, &facts.config_b}) {
    if (config->matmul_policy == PlanPolicy::vendor || config->scoring != Scoring::decode) return;
    if (facts.intermediate % config->tensor_parallel != 0) return;  // no engine ran that
  }
  const bool aligned = follow_one_tree(facts);
  const DecodePlan a = decode_plan(facts.config_a, facts, aligned);
  const DecodePlan b = decode_plan(facts.config_b, facts, aligned);
  const std::string change = describe_change(a.plan, b.plan);
  if (change.empty()) return;
  const bool ranks_differ = facts.config_a.tensor_parallel != facts.config_b.tensor_parallel;
  findings.push_back(make_finding(
      "plans_differ", Severity::info,
      fmt::format(
          "The order of sums differs: decoding with {} (A) and {} (B) changes the down projection "
          "({} outputs of {} terms{}): {}",
          describe_rows(a, facts.config_a, ranks_differ),
          ranks_differ ? describe_rows(b, facts.config_b, true) : fmt::format("{}", b.rows),
          facts.hidden, facts.intermediate, ranks_differ ? ", shared by the ranks" : "", change),
      {{"rows_a", a.rows},
       {"rows_b", b.rows},
       {"plan_a", to_string(a.plan)},
       {"plan_b", to_string(b.plan)}}));
}

}  // namespace driftscope
