// SPDX-License-Identifier: Apache-2.0
// Findings about the values: states, collisions, mass, ties, grids.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/responses/response_lint.h"
#include "analysis/responses/response_lint_parts.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;
constexpr double kMassSlack = 1e-4;        // listed probabilities may add up to this much over 1
constexpr double kImplausibleMass = 0.01;  // of all that is listed, with two alternatives or more

}  // namespace

void find_states(const Response& response, std::vector<Finding>& findings) {
  std::array<std::int64_t, 8> counts{};
  each_step(response, [&](const ResponseStep& step) {
    ++counts[static_cast<std::size_t>(step.logprob.state)];
  });
  Json evidence = Json::object();
  std::int64_t odd = 0;
  for (const LogprobState state :
       {LogprobState::sentinel, LogprobState::clipped, LogprobState::lowest_float,
        LogprobState::minus_infinity, LogprobState::not_a_number}) {
    const std::int64_t count = counts[static_cast<std::size_t>(state)];
    if (count == 0) continue;
    evidence[std::string(logprob_state_name(state))] = count;
    odd += count;
  }
  if (odd == 0) return;
  findings.push_back(make_finding(
      "logprob_unknown", Severity::notice,
      fmt::format("{} chosen token{} no number for a logprob (a sentinel, a floor, an infinity or "
                  "NaN): unlikely, by how much is not known; left out of differences and means",
                  odd, odd == 1 ? " has" : "s have"),
      evidence));
}

void find_collisions(const Response& response, std::vector<Finding>& findings) {
  std::int64_t collided = 0;
  std::string example;
  each_step(response, [&](const ResponseStep& step) {
    if (!step.logprob.usable()) return;
    for (const TokenAlternative& other : step.alternatives) {
      if (!same_token(other.token, step.token) || !other.logprob.usable()) continue;
      const double tolerance =
          std::max(print_tolerance(step.logprob), print_tolerance(other.logprob));
      if (std::abs(other.logprob.value - step.logprob.value) <= 2.0 * tolerance) continue;
      if (collided++ == 0) {
        example = fmt::format("\"{}\" has {} as the chosen token and {} among the alternatives",
                              escape_for_display(step.token.text), step.logprob.value,
                              other.logprob.value);
      }
      return;
    }
  });
  if (collided == 0) return;
  findings.push_back(make_finding(
      "token_text_collision", Severity::warning,
      fmt::format(
          "{}: two tokens share a text as a key and one of them was lost, or raw and "
          "processed values are mixed. This is no drift; the chosen token's own value counts",
          example),
      Json{{"steps", collided}}));
}

void find_short_lists(const Response& response, std::vector<Finding>& findings) {
  std::size_t most = 0;
  each_step(response,
            [&](const ResponseStep& step) { most = std::max(most, step.alternatives.size()); });
  std::int64_t fewer = 0;
  each_step(response, [&](const ResponseStep& step) {
    if (!step.alternatives.empty() && step.alternatives.size() + 1 < most) ++fewer;
  });
  if (fewer == 0) return;
  findings.push_back(
      make_finding("alternatives_missing", Severity::info,
                   fmt::format("{} step{} list fewer alternatives than others ({} at most)", fewer,
                               fewer == 1 ? "" : "s", most),
                   Json{{"steps", fewer}, {"most", most}}));
}

void find_mass(const Response& response, std::vector<Finding>& findings) {
  if (response.scale != LogprobScale::log_probability) return;
  double largest = 0.0;
  double smallest = 1.0;
  each_step(response, [&](const ResponseStep& step) {
    if (step.alternatives.empty()) return;
    double mass = 0.0;
    bool listed = false;
    for (const TokenAlternative& other : step.alternatives) {
      if (other.logprob.usable()) mass += std::exp(other.logprob.value);
      listed = listed || same_token(other.token, step.token);
    }
    if (!listed && step.logprob.usable()) mass += std::exp(step.logprob.value);
    largest = std::max(largest, mass);
    if (step.alternatives.size() > 1) smallest = std::min(smallest, mass);
  });
  if (largest > 1.0 + kMassSlack) {
    findings.push_back(make_finding(
        "mass_above_one", Severity::warning,
        fmt::format("The listed tokens of a step have a probability of {:.6g} together: these are "
                    "no logprobs of one distribution",
                    largest),
        Json{{"mass", largest}}));
  }
  if (smallest < kImplausibleMass) {
    findings.push_back(make_finding(
        "listed_mass_implausible", Severity::warning,
        fmt::format("The listed tokens of a step have a probability of {:.3g} together: the values "
                    "are of another distribution than the one that was sampled (structured output, "
                    "a mask, or a fault of the server). No margin is read from them",
                    smallest),
        Json{{"mass", smallest}}));
  }
}

void find_ties(const Response& response, std::vector<Finding>& findings) {
  std::int64_t position = 0;
  each_step(response, [&](const ResponseStep& step) {
    const std::int64_t at = position++;
    const auto rank = rank_of_chosen(step);
    if (!rank || rank->first == 1) {
      if (rank && rank->last > 1) {
        findings.push_back(make_finding(
            "exact_tie", Severity::notice,
            fmt::format(
                "Step {}: \"{}\" and {} other token{} have exactly the same value; which is "
                "chosen depends on how ties are broken",
                at, escape_for_display(step.token.text), rank->last - 1,
                rank->last == 2 ? "" : "s"),
            Json{{"step", at}, {"rank_first", rank->first}, {"rank_last", rank->last}}));
      }
      return;
    }
    const std::string range = rank->last == 0 ? fmt::format("{} or beyond", rank->first)
                              : rank->first == rank->last
                                  ? std::to_string(rank->first)
                                  : fmt::format("{} to {}", rank->first, rank->last);
    findings.push_back(make_finding(
        "not_the_largest", Severity::notice,
        fmt::format("Step {}: \"{}\" has rank {}: it was sampled (temperature above 0), or raw and "
                    "processed values are mixed",
                    at, escape_for_display(step.token.text), range),
        Json{{"step", at}, {"rank_first", rank->first}, {"rank_last", rank->last}}));
  });
}

// Differences of values of one step: multiples of 1/8 or 1/16 say that the logits were bf16.
void find_grid(const Response& response, std::vector<Finding>& findings) {
  std::int64_t gaps = 0;
  std::int64_t on_grid = 0;
  each_step(response, [&](const ResponseStep& step) {
    for (std::size_t i = 1; i < step.alternatives.size(); ++i) {
      const Logprob& a = step.alternatives[0].logprob;
      const Logprob& b = step.alternatives[i].logprob;
      if (!a.usable() || !b.usable() || a.value == b.value) continue;
      const double eighths = (a.value - b.value) * 16.0;
      const double tolerance = 16.0 * 2.0 * std::max(print_tolerance(a), print_tolerance(b));
      ++gaps;
      if (std::abs(eighths - std::round(eighths)) <= tolerance && tolerance < 0.1) ++on_grid;
    }
  });
  if (gaps < 4 || on_grid < gaps) return;
  findings.push_back(make_finding(
      "logits_on_grid", Severity::info,
      fmt::format("All {} gaps between alternatives are multiples of 1/16: the logits were rounded "
                  "to bf16 before the softmax, so exact ties are to be expected",
                  gaps),
      Json{{"gaps", gaps}}));
}

}  // namespace driftscope
