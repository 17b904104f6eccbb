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
  std::array<std::int64_t, 9> counts{};
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
  std::int64_t nulls = counts[static_cast<std::size_t>(LogprobState::null)];
  // An echoed prompt begins with a token that nothing predicts.
  for (const ResponseChoice& choice : response.choices) {
    const auto& steps = choice.content.steps;
    if (!steps.empty() && steps.front().logprob.state == LogprobState::null) --nulls;
  }
  if (nulls > 0 && counts[static_cast<std::size_t>(LogprobState::number)] > 0) {
    findings.push_back(make_finding(
        "logprob_null", Severity::notice,
        fmt::format("{} chosen token{} null for a logprob among others with numbers (servers write "
                    "NaN so, or leave it out): not known, left out of differences and means",
                    nulls, nulls == 1 ? " has" : "s have"),
        Json{{"count", nulls}}));
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
  // The chosen token may be one more than was asked for.
  const std::size_t slack = response.request.alternatives ? 0 : 1;
  const auto asked = static_cast<std::size_t>(response.request.alternatives.value_or(0));
  if (asked > 0) most = asked;
  std::int64_t fewer = 0;
  each_step(response, [&](const ResponseStep& step) {
    if (!step.alternatives.empty() && step.alternatives.size() + slack < most) ++fewer;
  });
  if (fewer == 0) return;
  findings.push_back(make_finding(
      "alternatives_missing", Severity::info,
      fmt::format("{} step{} fewer alternatives than {} ({})", fewer,
                  fewer == 1 ? " lists" : "s list", asked > 0 ? "were asked for" : "others", most),
      Json{{"steps", fewer}, {"most", most}}));
}

void find_crumbs(const Response& response, std::vector<Finding>& findings) {
  if (response.scale != LogprobScale::log_probability) return;
  std::int64_t above = 0;
  double most = 0.0;
  each_step(response, [&](const ResponseStep& step) {
    if (!step.logprob.usable() || step.logprob.value <= 0.0) return;
    ++above;
    most = std::max(most, step.logprob.value);
  });
  constexpr double kOfFloat = 1e-5;  // a softmax in f32 ends this much above 0
  if (most <= kOfFloat) return;
  findings.push_back(make_finding(
      "logprobs_above_zero", Severity::notice,
      fmt::format("{} logprob{} above 0, by up to {:.2g}: no probability is above 1, the values "
                  "were rounded by about as much",
                  above, above == 1 ? " is" : "s are", most),
      Json{{"steps", above}, {"most", most}}));
}

void find_mass(const Response& response, std::vector<Finding>& findings) {
  if (response.scale != LogprobScale::log_probability) return;
  double largest = 0.0;
  double smallest = 1.0;
  each_step(response, [&](const ResponseStep& step) {
    if (step.alternatives.empty()) return;
    double mass = 0.0;
    for (const TokenAlternative& other : step.alternatives) {
      if (other.logprob.usable()) mass += std::exp(other.logprob.value);
    }
    if (!chosen_entry(step) && step.logprob.usable()) mass += std::exp(step.logprob.value);
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

namespace {

struct TieReport {
  std::int64_t steps = 0;
  std::int64_t first_step = 0;
  std::string text;
  RankInterval rank;
};

std::string rank_text(const RankInterval& rank) {
  if (rank.last == 0) return fmt::format("{} or beyond", rank.first);
  return rank.first == rank.last ? std::to_string(rank.first)
                                 : fmt::format("{} to {}", rank.first, rank.last);
}

// The largest value, where several have it and the chosen token is not known.
std::optional<RankInterval> tie_at_top(const ResponseStep& step) {
  if (step.logprob.usable()) return std::nullopt;
  std::int64_t equal = 0;
  double largest = 0.0;
  for (const TokenAlternative& other : step.alternatives) {
    if (!other.logprob.usable()) continue;
    if (equal == 0 || other.logprob.value > largest) {
      largest = other.logprob.value;
      equal = 1;
    } else if (other.logprob.value == largest) {
      ++equal;
    }
  }
  return equal > 1 ? std::optional(RankInterval{.first = 1, .last = equal}) : std::nullopt;
}

void count_tie(TieReport& report, std::int64_t at, const ResponseStep& step,
               const RankInterval& rank) {
  if (report.steps++ > 0) return;
  report.first_step = at;
  report.text = step.token.text;
  if (report.text.empty() && !step.alternatives.empty()) {
    report.text = step.alternatives[0].token.text;
  }
  report.rank = rank;
}

Finding tie_finding(const char* id, const TieReport& report, const std::string& text) {
  const std::string more =
      report.steps > 1 ? fmt::format(" ({} steps like this)", report.steps) : "";
  return make_finding(id, Severity::notice, text + more,
                      Json{{"step", report.first_step},
                           {"rank_first", report.rank.first},
                           {"rank_last", report.rank.last},
                           {"steps", report.steps}});
}

}  // namespace

void find_ties(const Response& response, std::vector<Finding>& findings) {
  TieReport tied;
  TieReport drawn;
  std::int64_t position = 0;
  bool coarse = false;
  each_step(response, [&](const ResponseStep& step) {
    const std::int64_t at = position++;
    auto rank = rank_of_chosen(step);
    if (!rank) rank = tie_at_top(step);
    if (!rank) return;
    if (rank->first > 1) return count_tie(drawn, at, step, *rank);
    if (rank->last <= 1) return;
    coarse = coarse || print_tolerance(step.logprob) > 1e-6;
    count_tie(tied, at, step, *rank);
  });
  if (tied.steps > 0) {
    findings.push_back(tie_finding(
        "exact_tie", tied,
        fmt::format("Step {}: \"{}\" and {} other token{} have {} value; which is chosen depends "
                    "on how ties are broken",
                    tied.first_step, escape_for_display(tied.text), tied.rank.last - 1,
                    tied.rank.last == 2 ? "" : "s",
                    coarse ? "as printed the same" : "exactly the same")));
  }
  if (drawn.steps > 0) {
    findings.push_back(tie_finding(
        "not_the_largest", drawn,
        fmt::format("Step {}: \"{}\" has rank {}: it was sampled (temperature above 0), or raw and "
                    "processed values are mixed",
                    drawn.first_step, escape_for_display(drawn.text), rank_text(drawn.rank))));
  }
}

// Some servers give every token of a streamed piece the alternatives of its first.
void find_repeated_lists(const Response& response, std::vector<Finding>& findings) {
  std::int64_t repeated = 0;
  const ResponseStep* before = nullptr;
  const auto same = [](const TokenAlternative& a, const TokenAlternative& b) {
    return same_token(a.token, b.token) && a.logprob.usable() && b.logprob.usable() &&
           a.logprob.value == b.logprob.value;
  };
  each_step(response, [&](const ResponseStep& step) {
    const bool copied = before != nullptr && step.alternatives.size() > 1 && !chosen_entry(step) &&
                        std::equal(step.alternatives.begin(), step.alternatives.end(),
                                   before->alternatives.begin(), before->alternatives.end(), same);
    repeated += copied ? 1 : 0;
    before = &step;
  });
  if (repeated == 0) return;
  findings.push_back(make_finding(
      "alternatives_repeated", Severity::warning,
      fmt::format("{} step{} the alternatives of the step before: a copy by the server, no margin "
                  "can be read from them",
                  repeated, repeated == 1 ? " has" : "s have"),
      Json{{"steps", repeated}}));
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
