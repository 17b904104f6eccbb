// SPDX-License-Identifier: Apache-2.0
// Findings about the inputs, the control lane, the health of the rows and how lanes ended.
#include "analysis/compare/findings.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "analysis/compare/imported_side.h"

namespace driftscope {

namespace {

using Json = nlohmann::ordered_json;

void find_input_differences(const RunContext& context, std::vector<Finding>& findings) {
  const ExperimentFacts& facts = context.facts;
  const std::string text = describe_input_difference(facts);
  if (text.empty()) return;
  if (facts.prompt_a != facts.prompt_b || !imported_prompt_difference(facts).empty()) {
    findings.push_back(make_finding(
        "prompt_ids_differ", Severity::error,
        fmt::format("{}: these are different tasks, and nothing below says anything about numerics",
                    text),
        facts.prompt_a == facts.prompt_b
            ? Json::object()
            : Json{{"tokens_a", facts.prompt_a.size()}, {"tokens_b", facts.prompt_b.size()}}));
  }
  if (!facts.model_sha256_a.empty() && !facts.model_sha256_b.empty() &&
      facts.model_sha256_a != facts.model_sha256_b) {
    findings.push_back(make_finding(
        "checkpoints_differ", Severity::warning,
        fmt::format("The checkpoints differ: sha256 {} and {}{}{}",
                    facts.model_sha256_a.substr(0, 12), facts.model_sha256_b.substr(0, 12),
                    facts.weight_difference.empty() ? "" : "; ", facts.weight_difference),
        {{"sha256_a", facts.model_sha256_a}, {"sha256_b", facts.model_sha256_b}}));
  }
  if (!same_weight_values(facts.config_a, facts.config_b, facts.stored_dtype)) {
    findings.push_back(make_finding("weights_rounded_differently", Severity::notice,
                                    "The sides compute with different values of the weights "
                                    "(weight_dtype, lm_head_dtype or quantisation), so "
                                    "drift is not rounding of the computation alone",
                                    Json::object()));
  }
}

void find_control(const RunContext& context, std::vector<Finding>& findings) {
  const ControlResult& control = context.comparison.control;
  if (!control.present || control.steps == 0) return;
  const Json evidence{{"steps", control.steps},
                      {"max_abs", json_number(control.max_abs)},
                      {"bits_equal", control.bits_equal}};
  if (control.bits_equal) {
    findings.push_back(make_finding("control_zero", Severity::info,
                                    fmt::format("Control: A against A has the same bits at all {}",
                                                counted(control.steps, "step")),
                                    evidence));
    return;
  }
  findings.push_back(make_finding(
      "control_not_zero", Severity::error,
      fmt::format("Control: A against A differs (max_abs {} over {}); A does not repeat itself, so "
                  "no difference between A and B can be trusted",
                  figure(control.max_abs), counted(control.steps, "step")),
      evidence));
}

struct HealthTotal {
  std::int64_t entries_a = 0, entries_b = 0, steps = 0, first = -1;
  void add(std::int64_t step, std::int64_t a, std::int64_t b) {
    if (a + b == 0) return;
    entries_a += a;
    entries_b += b;
    if (steps++ == 0) first = step;
  }
};

void report_health(std::string id, Severity severity, std::string_view what,
                   const HealthTotal& total, std::vector<Finding>& findings) {
  if (total.steps == 0) return;
  findings.push_back(make_finding(std::move(id), severity,
                                  fmt::format("{} in the logits at {}, first at step {} (entries: "
                                              "{} in A, {} in B); they are left out of "
                                              "every sum",
                                              what, counted(total.steps, "step"), total.first,
                                              total.entries_a, total.entries_b),
                                  {{"first_step", total.first},
                                   {"steps", total.steps},
                                   {"entries_a", total.entries_a},
                                   {"entries_b", total.entries_b}}));
}

void find_unhealthy_rows(const RunContext& context, std::vector<Finding>& findings) {
  HealthTotal nan, infinite;
  for (const auto& step : context.comparison.steps) {
    const RowHealth& health = step->metrics.health;
    nan.add(step->step, health.nan_a, health.nan_b);
    infinite.add(step->step, health.infinite_a, health.infinite_b);
  }
  report_health("nan_in_logits", Severity::error, "NaN", nan, findings);
  report_health("infinity_in_logits", Severity::warning, "Infinities", infinite, findings);
}

void find_early_ends(const RunContext& context, std::vector<Finding>& findings) {
  const Comparison& comparison = context.comparison;
  for (const Lane lane : {Lane::a, Lane::b}) {
    const LaneView* view = find_lane(comparison, lane);
    if (view == nullptr || !ended_by_itself(*view)) continue;
    const auto tokens = static_cast<std::int64_t>(view->tokens.size());
    if (tokens >= comparison.planned_steps) continue;
    findings.push_back(
        make_finding("lane_ended_early", Severity::info,
                     fmt::format("{} ended after {} of {} ({})", lane == Lane::a ? 'A' : 'B',
                                 tokens, counted(comparison.planned_steps, "step"),
                                 view->stop.empty() ? "no reason given" : view->stop),
                     {{"lane", lane_name(lane)}, {"steps", tokens}, {"stop", view->stop}}));
  }
}

void find_interruption(const RunContext& context, std::vector<Finding>& findings) {
  const Comparison& comparison = context.comparison;
  if (comparison.state == TraceState::complete) return;
  const auto steps = static_cast<std::int64_t>(comparison.steps.size());
  const bool interrupted = comparison.state == TraceState::interrupted;
  findings.push_back(make_finding(interrupted ? "interrupted" : "partial",
                                  interrupted ? Severity::warning : Severity::notice,
                                  fmt::format("The run {}: {} of {} planned were compared",
                                              interrupted ? "was interrupted" : "is not complete",
                                              counted(steps, "step"), comparison.planned_steps),
                                  {{"steps", steps}, {"planned_steps", comparison.planned_steps}}));
}

using Finder = void (*)(const RunContext&, std::vector<Finding>&);
// In the order in which they are told.
constexpr std::array kFinders{Finder{find_input_differences},
                              Finder{find_prompt_findings},
                              Finder{find_imported},
                              Finder{find_control},
                              Finder{find_unhealthy_rows},
                              Finder{find_identity},
                              Finder{find_divergence},
                              Finder{find_flip},
                              Finder{find_flip_after_route},
                              Finder{find_route_flips},
                              Finder{find_free_route_flips},
                              Finder{find_flip_count},
                              Finder{find_drift_without_flip},
                              Finder{find_largest_drift},
                              Finder{find_drift_without_cause},
                              Finder{find_noise_excess},
                              Finder{find_drift_split},
                              Finder{find_first_tap_drift},
                              Finder{find_tap_jump},
                              Finder{find_plan_difference},
                              Finder{find_rank_difference},
                              Finder{find_early_ends},
                              Finder{find_interruption}};

}  // namespace

Json json_number(double value) {
  if (std::isfinite(value)) return value;
  return fmt::format("{}", value);
}

Finding make_finding(std::string id, Severity severity, std::string text, const Json& evidence) {
  return {.id = std::move(id),
          .severity = severity,
          .text = std::move(text),
          .evidence = evidence.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

std::vector<Finding> collect_findings(const RunContext& context) {
  std::vector<Finding> findings;
  for (const Finder finder : kFinders) finder(context, findings);
  return findings;
}

}  // namespace driftscope
