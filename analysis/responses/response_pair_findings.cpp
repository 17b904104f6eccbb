// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/compare/findings.h"
#include "analysis/responses/compared_answer.h"
#include "analysis/responses/response_grid.h"
#include "analysis/responses/response_lint.h"
#include "analysis/responses/response_pair.h"
#include "analysis/responses/version_evidence.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

// Nats. One token in three million that are drawn at temperature 1, and none that is the most
// likely one.
constexpr double kNeverGenerated = -15.0;

// The list of the answer's tokens begins with the prompt, and how long that is is not said.
bool is_unsplit_echo(const Response& response) {
  return std::any_of(response.warnings.begin(), response.warnings.end(),
                     [](const ResponseWarning& w) { return w.id == "echo_unsplit"; });
}

}  // namespace

void ResponsePair::collect_findings() {
  add_prompt_finding();
  add_echo_finding();
  add_bias_finding();
  add_scale_finding();
  add_sudden_finding();
  if (numbers_comparable()) {
    std::vector<std::pair<const ResponseStep*, const ResponseStep*>> steps;
    for (const auto& [i, j] : m_pairs) steps.emplace_back(&m_steps_a[i], &m_steps_b[j]);
    if (auto grid = find_pair_grid(steps)) {
      m_out.findings.push_back(std::move(*grid));
    }
  }
  for (Finding& finding : version_findings(m_a, m_b)) m_out.findings.push_back(std::move(finding));
  if (!m_out.divergence && m_choice_a.finish_reason != m_choice_b.finish_reason &&
      normalised_finish_reason(m_choice_a.finish_reason) !=
          normalised_finish_reason(m_choice_b.finish_reason)) {
    m_out.findings.push_back(make_finding("finish_reasons_differ", Severity::notice,
                                          fmt::format("The answers ended differently: {} and {}",
                                                      escape_for_display(m_choice_a.finish_reason),
                                                      escape_for_display(m_choice_b.finish_reason)),
                                          Json::object()));
  }
}

void ResponsePair::add_prompt_finding() {
  if (const std::string prompts = prompt_difference(); !prompts.empty()) {
    m_out.findings.push_back(make_finding("prompt_ids_differ", Severity::error,
                                          "Before any number: " + prompts, Json::object()));
  }
  const LogprobDrift& drift = m_out.prompt_drift;
  if (!drift.first_step) return;
  const double first = drift.per_step[static_cast<std::size_t>(*drift.first_step)].value_or(0.0);
  const bool bug = drift.max_abs > kBugScale;
  m_out.findings.push_back(make_finding(
      bug ? "prompt_drift_bug_scale" : "prompt_drift", bug ? Severity::error : Severity::notice,
      fmt::format(
          "The prompts' tokens are the same and their logprobs differ from position {} on "
          "(by {:+.4g} there, {:.4g} at most){}",
          *drift.first_step, first, drift.max_abs,
          bug ? ": far beyond rounding. The computation of the prompt differs (mask, cache, "
                "window, positions): a fault of a configuration, no near-tie and no sampler"
              : ""),
      Json{{"first_position", *drift.first_step},
           {"first_difference", first},
           {"max_abs", drift.max_abs}}));
}

std::pair<std::int64_t, double> ResponsePair::last_given_token() const {
  std::pair<std::int64_t, double> last{-1, 0.0};
  // Drawn from a flattened distribution, an unlikely token says nothing.
  const auto hot = [](const Response& response) {
    return response.temperature.value_or(response.request.temperature.value_or(1.0)) > 1.0;
  };
  if (hot(m_a) || hot(m_b)) return last;
  for (const auto& [i, j] : m_pairs) {
    for (const Logprob* value : {&m_steps_a[i].logprob, &m_steps_b[j].logprob}) {
      if (value->usable() && value->value <= kNeverGenerated)
        last = {static_cast<std::int64_t>(i), value->value};
    }
  }
  return last;
}

void ResponsePair::add_echo_finding() {
  const LogprobDrift& drift = m_out.drift;
  if (!drift.first_step || !numbers_comparable()) return;
  for (const auto& [response, steps] : {std::pair{&m_a, &m_steps_a}, std::pair{&m_b, &m_steps_b}}) {
    if (!is_unsplit_echo(*response) || (*steps)[0].logprob.state != LogprobState::null) return;
  }
  const std::int64_t first = *drift.first_step;
  const auto [given, logprob] = last_given_token();
  if (given < first) {
    m_out.findings.push_back(make_finding(
        "echo_not_split", Severity::notice,
        fmt::format("Both lists begin with the echoed prompt (their first token has no logprob) "
                    "and do not say where it ends: the drift from token {} on may be that of the "
                    "prompt (the prefill) or that of the answer. usage.prompt_tokens tells",
                    first),
        Json{{"first_position", first}}));
    return;
  }
  const bool bug = drift.max_abs > kBugScale;
  m_out.findings.push_back(make_finding(
      bug ? "prefill_drift_bug_scale" : "prefill_drift", bug ? Severity::error : Severity::warning,
      fmt::format("The drift begins in the prompt (the prefill): both lists begin with the echoed "
                  "prompt (their first token has no logprob), and token {} (logprob {:.4g}) is so "
                  "unlikely that it was given, not generated, unless a grammar or a bias forced "
                  "it. The numbers differ from token {} on, before anything was generated: no "
                  "sampler does that, but how the prompt is computed (mask, cache, window, "
                  "positions, padding)",
                  given, logprob, first),
      Json{{"first_position", first}, {"last_given", given}, {"max_abs", drift.max_abs}}));
}

void ResponsePair::add_bias_finding() {
  const LogprobDrift& drift = m_out.drift;
  const std::int64_t decided = drift.positive + drift.negative;
  if (decided < 12 || (drift.positive > 0 && drift.negative > 0)) return;
  const auto [temperature, count] = implied_temperature();
  std::string text = fmt::format(
      "All {} differences have the same sign ({} is always more certain): this is no rounding "
      "noise",
      decided, drift.positive > 0 ? "B" : "A");
  if (count >= 8) {
    text += fmt::format(
        "; {} looks like the other side at a temperature of about {:.2f}: its "
        "logprobs are processed by a temperature",
        drift.positive > 0 ? "B" : "A", temperature);
  }
  m_out.findings.push_back(make_finding(
      "one_sided_drift", Severity::warning, text,
      Json{{"same_sign", decided}, {"implied_temperature", json_number(temperature)}}));
}

std::pair<double, std::int64_t> ResponsePair::implied_temperature() const {
  std::vector<double> ratios;
  for (const auto& [i, j] : m_pairs) {
    const Logprob& a = m_steps_a[i].logprob;
    const Logprob& b = m_steps_b[j].logprob;
    const auto confident = [](const Logprob& value) {
      return value.usable() && value.value < -1e-6 && value.value > -0.1;
    };
    if (!confident(a) || !confident(b)) continue;
    const double ratio = std::log(-b.value) / std::log(-a.value);
    ratios.push_back(m_out.drift.positive > 0 ? ratio : 1.0 / ratio);
  }
  double sum = 0.0;
  for (const double ratio : ratios) sum += ratio;
  const auto count = static_cast<std::int64_t>(ratios.size());
  return {count > 0 ? static_cast<double>(count) / sum : std::nan(""), count};
}

void ResponsePair::add_scale_finding() {
  if (numbers_comparable() || m_out.alignment == ResponseAlignment::text ||
      m_out.alignment == ResponseAlignment::none) {
    return;
  }
  m_out.findings.push_back(make_finding("numbers_not_comparable", Severity::warning,
                                        fmt::format("No drift is computed: {}", kinds_of_numbers()),
                                        Json::object()));
}

bool ResponsePair::drifts_elsewhere() const {
  if (m_out.prompt_drift.first_step || reasoning_drift()) return true;
  if (channel_text(m_choice_a.reasoning) != channel_text(m_choice_b.reasoning)) return true;
  const AlternativesDrift alternatives = alternatives_drift();
  return alternatives.steps > 0 || alternatives.unread;
}

void ResponsePair::add_sudden_finding() {
  if (!m_out.divergence || m_out.divergence->cause != ResponseCause::near_tie) return;
  if (m_out.drift.count == 0 || m_out.drift.first_step || drifts_elsewhere()) return;
  // A certain token prints the same value whatever the rounding, and so do few decimals.
  constexpr double kUncertain = -0.05;
  constexpr double kFine = 1e-5;  // rounding of a float32 computation moves a logprob by 1e-4
  std::int64_t telling = 0;
  for (const auto& [i, j] : m_pairs) {
    const Logprob& a = m_steps_a[i].logprob;
    const Logprob& b = m_steps_b[j].logprob;
    if (!a.usable() || !b.usable() || a.value > kUncertain || b.value > kUncertain) continue;
    if (std::max(print_tolerance(a), print_tolerance(b)) <= kFine) ++telling;
  }
  constexpr std::int64_t kEnough = 8;
  if (telling < kEnough) return;
  m_out.findings.push_back(make_finding(
      "no_drift_before_the_tie", Severity::notice,
      fmt::format("The {} logprobs before the answers part are equal as printed, {} of them of "
                  "tokens uncertain enough to show rounding: rounding that differs from the start "
                  "would show there. What moved the tie began at that token (another batch from "
                  "there on, a random draw, another treatment of the logits)",
                  m_out.drift.count, telling),
      Json{{"equal_logprobs", m_out.drift.count}, {"telling", telling}}));
}

std::vector<Finding> findings_of_sides(const Response& a, const Response& b) {
  std::vector<Finding> findings;
  for (const Response* side : {&a, &b}) {
    if (side == &b && &a == &b) break;
    for (Finding& finding : lint_response(*side)) {
      finding.text = (side == &a ? "A: " : "B: ") + finding.text;
      findings.push_back(std::move(finding));
    }
  }
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& x, const Finding& y) { return x.severity > y.severity; });
  return findings;
}

}  // namespace driftscope
