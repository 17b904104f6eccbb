// SPDX-License-Identifier: Apache-2.0
// What differs beside equal content: alternatives, reasoning, the reason of the end.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/compare/findings.h"
#include "analysis/responses/compared_answer.h"
#include "analysis/responses/response_lint.h"
#include "analysis/responses/response_pair.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

// How far two lists of the largest values of a step are apart beyond printing.
struct ListDifference {
  double size = 0.0;      // of a token that both list, or at least, of one that only one does
  bool at_least = false;  // the token is on one list only
};

// The lowest value listed for a token that is not the chosen one, which some servers list out of
// order.
const Logprob* lowest_listed(const ResponseStep& step) {
  const Logprob* lowest = nullptr;
  for (const TokenAlternative& other : step.alternatives) {
    if (!other.logprob.usable() || same_token(other.token, step.token)) continue;
    if (lowest == nullptr || other.logprob.value < lowest->value) lowest = &other.logprob;
  }
  return lowest;
}

bool comparable_lists(const ResponseStep& step) {
  return step.alternatives_left_out == 0 &&
         std::none_of(step.alternatives.begin(), step.alternatives.end(),
                      [](const TokenAlternative& other) { return other.token.lossy; });
}

// Of one listed token: to its own value on the other list, of equal texts to the nearest; not
// listed there it is at most the lowest of those.
ListDifference difference_of(const TokenAlternative& one, const ResponseStep& other_step,
                             const Logprob* lowest) {
  std::optional<double> nearest;
  for (const TokenAlternative& other : other_step.alternatives) {
    if (!other.logprob.usable() || !same_token(one.token, other.token)) continue;
    const double tolerance = print_tolerance(one.logprob) + print_tolerance(other.logprob);
    const double apart = std::abs(one.logprob.value - other.logprob.value);
    const double beyond = apart > tolerance ? apart : 0.0;
    nearest = std::min(nearest.value_or(beyond), beyond);
  }
  if (nearest) return {.size = *nearest};
  if (lowest == nullptr) return {};
  const double tolerance = print_tolerance(one.logprob) + print_tolerance(*lowest);
  const double above = one.logprob.value - lowest->value;
  return {.size = above > tolerance ? above : 0.0, .at_least = true};
}

ListDifference one_way(const ResponseStep& from, const ResponseStep& to) {
  ListDifference largest;
  const Logprob* lowest = lowest_listed(to);
  for (const TokenAlternative& one : from.alternatives) {
    if (!one.logprob.usable() || same_token(one.token, from.token)) continue;
    const ListDifference found = difference_of(one, to, lowest);
    if (found.size > largest.size) largest = found;
  }
  return largest;
}

ListDifference between_lists(const ResponseStep& a, const ResponseStep& b) {
  if (!comparable_lists(a) || !comparable_lists(b)) return {};
  const ListDifference forth = one_way(a, b);
  const ListDifference back = one_way(b, a);
  return back.size > forth.size ? back : forth;
}

}  // namespace

void ResponsePair::weaken_by(std::string id, Severity severity, const std::string& what,
                             bool contradicts) {
  if (m_out.tier < Tier::token) m_out.tier = Tier::token;
  if (contradicts) m_out.at_best = std::max(m_out.at_best, Tier::token);
  m_out.verdict += "; but " + what;
  if (id.empty()) return;
  m_out.findings.push_back(make_finding(std::move(id), severity, "Equal answers, but " + what,
                                        nlohmann::ordered_json::object()));
}

void ResponsePair::weaken() {
  compare_alternatives();
  compare_reasoning();
  compare_finish_reasons();
  compare_end_marks();
}

ResponsePair::AlternativesDrift ResponsePair::alternatives_drift() const {
  AlternativesDrift drift;
  for (const auto& [i, j] : m_pairs) {
    const ResponseStep& a = m_steps_a[i];
    const ResponseStep& b = m_steps_b[j];
    const bool left_out = a.alternatives_left_out + b.alternatives_left_out > 0;
    drift.unread = drift.unread || (left_out && a.alternatives_text != b.alternatives_text);
    const ListDifference found = between_lists(a, b);
    if (found.size == 0.0) continue;
    ++drift.steps;
    if (found.size <= drift.largest) continue;
    drift.largest = found.size;
    drift.at_least = found.at_least;
    drift.step = i;
  }
  return drift;
}

void ResponsePair::compare_alternatives() {
  if (!aligned_by_tokens() || !numbers_comparable() || m_out.drift.first_step) return;
  const AlternativesDrift drift = alternatives_drift();
  if (drift.steps == 0) return;
  weaken_by("alternatives_differ", Severity::warning,
            fmt::format("the alternatives listed at {} step{} differ, by {}{:.4g} at token {}",
                        drift.steps, drift.steps == 1 ? "" : "s", drift.at_least ? "at least " : "",
                        drift.largest, drift.step),
            true);
}

std::optional<std::pair<double, std::size_t>> ResponsePair::reasoning_drift() const {
  const Steps a(places_of_visible_steps(m_choice_a.reasoning));
  const Steps b(places_of_visible_steps(m_choice_b.reasoning));
  std::optional<std::pair<double, std::size_t>> largest;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!same_token(a[i].token, b[i].token)) break;
    const Logprob& x = a[i].logprob;
    const Logprob& y = b[i].logprob;
    if (!x.usable() || !y.usable()) continue;
    const double apart = std::abs(x.value - y.value);
    if (apart <= print_tolerance(x) + print_tolerance(y)) continue;
    if (!largest || apart > largest->first) largest = {apart, i};
  }
  return largest;
}

void ResponsePair::compare_reasoning() {
  const std::string a = channel_text(m_choice_a.reasoning);
  const std::string b = channel_text(m_choice_b.reasoning);
  if (a.empty() != b.empty()) {
    return weaken_by("reasoning_differs", Severity::warning,
                     fmt::format("only {} shows its reasoning", a.empty() ? "B" : "A"), false);
  }
  if (a != b) {
    return weaken_by(
        "reasoning_differs", Severity::warning,
        fmt::format("the reasoning before differs from byte {} on", common_prefix(a, b)), true);
  }
  if (!numbers_comparable()) return;
  if (const auto drift = reasoning_drift()) {
    weaken_by("reasoning_differs", Severity::warning,
              fmt::format("logprobs of the reasoning before differ, by {:.4g} at its token {}",
                          drift->first, drift->second),
              true);
  }
}

void ResponsePair::compare_finish_reasons() {
  const std::string_view a = normalised_finish_reason(m_choice_a.finish_reason);
  const std::string_view b = normalised_finish_reason(m_choice_b.finish_reason);
  if (a.empty() || b.empty() || a == b) return;
  // collect_findings() says it, too.
  weaken_by({}, Severity::notice, fmt::format("they ended differently ({} and {})", a, b), true);
}

void ResponsePair::compare_end_marks() {
  const auto mark = [](const ResponseChannel& channel) -> const TokenText* {
    const auto found = std::find_if(channel.steps.begin(), channel.steps.end(),
                                    [](const ResponseStep& step) { return step.special; });
    const bool last = std::all_of(found, channel.steps.end(),
                                  [](const ResponseStep& step) { return step.special; });
    return found == channel.steps.end() || !last ? nullptr : &found->token;
  };
  const TokenText* a = mark(m_channel_a);
  const TokenText* b = mark(m_channel_b);
  if (a == nullptr || b == nullptr || a->bytes.empty() || b->bytes.empty()) return;
  if (a->bytes == b->bytes || a->lossy || b->lossy) return;
  weaken_by("end_marks_differ", Severity::notice,
            fmt::format("the tokens listed behind the text differ (\"{}\" and \"{}\")",
                        escape_for_display(a->bytes), escape_for_display(b->bytes)),
            true);
}

}  // namespace driftscope
