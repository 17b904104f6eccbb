// SPDX-License-Identifier: Apache-2.0
// Which order of summation each side used: what batch composition changed.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/compare/findings.h"
#include "engine/config/knob.h"
#include "engine/config/rank_plans.h"
#include "kernels/plan/plan_policy.h"

namespace driftscope {

namespace {

// What decides the plan of the feed-forward's down projection.
// The same function of the same configuration that the engine asks.
struct StepPlan {
  std::int64_t rows = 0;  // in flight
  ReductionPlan plan;
};

// `aligned`: ranks follow one tree of sums, which one rank alone makes too.
StepPlan step_plan(RunConfig config, const ExperimentFacts& facts, std::int64_t rows,
                   bool aligned) {
  if (aligned) config.tensor_parallel = 1;
  return {
      .rows = rows,
      .plan = plan_of_terms(
          config,
          {.m = rows, .n = facts.hidden, .k = facts.intermediate, .parts = facts.intermediate})};
}

// Of the output projection, whose rows ranks never share.
ReductionPlan head_plan(const RunConfig& config, const ExperimentFacts& facts, std::int64_t rows) {
  return matmul_plan(config.matmul_policy, config.matmul_plan, rows, facts.vocabulary,
                     facts.hidden);
}

struct RowsAtStep {
  std::int64_t step = -1;  // -1: not known of any step; then the rows are what a step would have
  std::int64_t rows_a = 0;
  std::int64_t rows_b = 0;
};

// Where the texts part or the choice flips first; else the first step with other rows in flight.
RowsAtStep rows_to_judge_by(const RunContext& context) {
  const Comparison& comparison = context.comparison;
  const auto differs = [](const auto& step) {
    return step->rows_a > 0 && step->rows_b > 0 && step->rows_a != step->rows_b;
  };
  const StepComparison* step = nullptr;
  for (const auto* parted : {&comparison.first_divergence, &comparison.first_flip}) {
    if (step == nullptr && *parted) step = find_step(comparison, (*parted)->step);
  }
  if (step == nullptr || step->rows_a == 0 || step->rows_a == step->rows_b) {
    const auto found = std::find_if(comparison.steps.begin(), comparison.steps.end(), differs);
    if (found != comparison.steps.end()) step = found->get();
  }
  if (step != nullptr && step->rows_a > 0 && step->rows_b > 0) {
    return {.step = step->step, .rows_a = step->rows_a, .rows_b = step->rows_b};
  }
  return {.step = -1,
          .rows_a = 1 + context.facts.config_a.neighbours,
          .rows_b = 1 + context.facts.config_b.neighbours};
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

// "decoding with 1 row in flight (A) and 8 (B) at step 46", with the ranks where the sides differ
// in them.
std::string describe_rows(const RowsAtStep& at, const ExperimentFacts& facts) {
  const std::int64_t ranks_a = facts.config_a.tensor_parallel;
  const std::int64_t ranks_b = facts.config_b.tensor_parallel;
  std::string rows =
      fmt::format("{} in flight (A) and {} (B)", counted(at.rows_a, "row"), at.rows_b);
  if (ranks_a != ranks_b) {
    rows =
        fmt::format("{} in flight on {} (A) and {} in flight on {} (B)", counted(at.rows_a, "row"),
                    counted(ranks_a, "rank"), counted(at.rows_b, "row"), counted(ranks_b, "rank"));
  }
  if (at.step == 0) return fmt::format("the prompt's call with {}", rows);
  return fmt::format("decoding with {}{}", rows,
                     at.step < 0 ? std::string() : fmt::format(" at step {}", at.step));
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
  const RowsAtStep at = rows_to_judge_by(context);
  const StepPlan a = step_plan(facts.config_a, facts, at.rows_a, aligned);
  const StepPlan b = step_plan(facts.config_b, facts, at.rows_b, aligned);
  const std::string down = describe_change(a.plan, b.plan);
  // In the prompt's call the output projection sees fewer rows than the layers; later as many.
  const std::string head = at.step == 0
                               ? std::string()
                               : describe_change(head_plan(facts.config_a, facts, at.rows_a),
                                                 head_plan(facts.config_b, facts, at.rows_b));
  if (down.empty() && head.empty()) return;
  const bool ranks_differ = facts.config_a.tensor_parallel != facts.config_b.tensor_parallel;
  std::string text =
      at.rows_a == at.rows_b && !ranks_differ
          ? std::string("The sums differ in")
          : fmt::format("The order of sums differs: {} changes", describe_rows(at, facts));
  if (!down.empty()) {
    text += fmt::format(" the down projection ({} outputs of {} terms{}): {}", facts.hidden,
                        facts.intermediate, ranks_differ ? ", shared by the ranks" : "", down);
  }
  if (!head.empty()) {
    text += fmt::format("{} the output projection (lm_head, {} outputs of {} terms): {}",
                        down.empty() ? "" : ";", facts.vocabulary, facts.hidden, head);
  }
  findings.push_back(make_finding(
      "plans_differ", Severity::info, text,
      {{"step", at.step < 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(at.step)},
       {"rows_a", a.rows},
       {"rows_b", b.rows},
       {"plan_a", to_string(a.plan)},
       {"plan_b", to_string(b.plan)}}));
}

}  // namespace driftscope
