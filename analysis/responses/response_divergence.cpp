// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/responses/response_lint.h"
#include "analysis/responses/response_pair.h"
#include "analysis/responses/version_evidence.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

constexpr std::size_t kShownBytes = 40;

bool is_digit(const std::string& text, std::size_t at) {
  return at < text.size() && text[at] >= '0' && text[at] <= '9';
}

// Whether the byte is inside of a word or a number: letters, digits, bytes of characters beyond
// ASCII, a point or comma between digits, the sign before a digit.
bool in_word(const std::string& text, std::size_t at) {
  if (at >= text.size()) return false;
  const char c = text[at];
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  if (letter || is_digit(text, at) || (static_cast<unsigned char>(c) & 0x80U) != 0) return true;
  if (c == '.' || c == ',') return at > 0 && is_digit(text, at - 1) && is_digit(text, at + 1);
  return (c == '-' || c == '+') && is_digit(text, at + 1) && (at == 0 || !in_word(text, at - 1));
}

// Where the word or number begins that the texts still have in common: "12.5" and "13.0" part
// inside of a number, and half of it says nothing. `at` itself where a text ends there, where no
// word does go on, or where it is long (a script without spaces), but never inside a character.
std::size_t shown_from(const std::string& a, const std::string& b, std::size_t at) {
  constexpr std::size_t kLongest = 24;
  if (at >= a.size() || at >= b.size()) return at;
  std::size_t from = at;
  if (in_word(a, at) || in_word(b, at)) {
    while (from > 0 && (in_word(a, from - 1) || in_word(b, from - 1))) --from;
  }
  if (at - from <= kLongest) return from;
  from = at;
  while (from > 0 && (static_cast<unsigned char>(a[from]) & 0xC0U) == 0x80U) --from;
  return from;
}

}  // namespace

void ResponsePair::compare_tools() {
  const auto key = [](const ToolCall& call) { return call.name + "\n" + call.arguments; };
  m_out.tools_equal =
      std::equal(m_choice_a.tool_calls.begin(), m_choice_a.tool_calls.end(),
                 m_choice_b.tool_calls.begin(), m_choice_b.tool_calls.end(),
                 [&](const ToolCall& x, const ToolCall& y) { return key(x) == key(y); });
}

void ResponsePair::find_divergence() {
  const bool tokens = m_out.alignment == ResponseAlignment::token_ids ||
                      m_out.alignment == ResponseAlignment::token_bytes;
  const bool same_tokens =
      tokens && m_out.equal_tokens == m_out.tokens_a && m_out.equal_tokens == m_out.tokens_b;
  if (same_tokens && (m_out.texts_equal || !texts_known())) return;
  if (!tokens && m_text_a == m_text_b) return;
  if (tokens && same_tokens) return;
  ResponseDivergence divergence;
  divergence.byte = m_out.equal_bytes;
  const auto equal = static_cast<std::size_t>(m_out.equal_tokens);
  const std::optional<Place> at = tokens ? Place{.a = equal, .b = equal} : m_parted;
  describe_divergence(divergence, at);
  find_joining(divergence);
  m_out.divergence = std::move(divergence);
}

void ResponsePair::describe_divergence(ResponseDivergence& divergence,
                                       const std::optional<Place>& at) const {
  if (at) {
    divergence.step = static_cast<std::int64_t>(at->a);
    divergence.step_b = static_cast<std::int64_t>(at->b);
  }
  const auto lossy = [](const Steps& steps, std::size_t step) {
    return step < steps.size() && steps[step].token.lossy;
  };
  if (at && !lossy(m_steps_a, at->a) && !lossy(m_steps_b, at->b)) {
    describe_side(m_steps_a, at->a, divergence.text_a, divergence.id_a);
    describe_side(m_steps_b, at->b, divergence.text_b, divergence.id_b);
    return;
  }
  const std::size_t from =
      shown_from(m_text_a, m_text_b, static_cast<std::size_t>(divergence.byte));
  divergence.text_a = m_text_a.substr(std::min(from, m_text_a.size()), kShownBytes);
  divergence.text_b = m_text_b.substr(std::min(from, m_text_b.size()), kShownBytes);
}

void ResponsePair::describe_side(const Steps& steps, std::size_t at, std::string& text,
                                 std::optional<std::int64_t>& id) {
  if (at >= steps.size()) return;
  text = steps[at].token.bytes;
  id = steps[at].token.id;
  if (text.empty() && id) text = fmt::format("token {}", *id);
}

void ResponsePair::find_joining(ResponseDivergence& divergence) const {
  const auto front = static_cast<std::size_t>(m_out.equal_bytes);
  const std::string_view rest_a =
      std::string_view(m_text_a).substr(std::min(front, m_text_a.size()));
  const std::string_view rest_b =
      std::string_view(m_text_b).substr(std::min(front, m_text_b.size()));
  const auto [end, other] =
      std::mismatch(rest_a.rbegin(), rest_a.rend(), rest_b.rbegin(), rest_b.rend());
  (void)other;
  const auto common = static_cast<std::size_t>(end - rest_a.rbegin());
  constexpr std::size_t kLeast = 16;  // shorter ends agree by chance
  if (common < kLeast) return;
  divergence.joined_again_byte = static_cast<std::int64_t>(m_text_a.size() - common);
}

std::optional<double> ResponsePair::margin(const Steps& steps, std::size_t at,
                                           const TokenText& other_token) {
  const ResponseStep& step = steps[at];
  if (!step.logprob.usable()) return std::nullopt;
  for (const TokenAlternative& other : step.alternatives) {
    if (same_token(other.token, other_token) && other.logprob.usable()) {
      return step.logprob.value - other.logprob.value;
    }
  }
  return std::nullopt;
}

std::optional<double> ResponsePair::least_margin(const Steps& steps, std::size_t at,
                                                 const TokenText& other_token) {
  const ResponseStep& step = steps[at];
  if (!step.logprob.usable() || step.alternatives_left_out > 0 || other_token.lossy) {
    return std::nullopt;
  }
  std::optional<double> lowest;
  for (const TokenAlternative& other : step.alternatives) {
    if (other.token.lossy || same_token(other.token, other_token)) return std::nullopt;
    if (!other.logprob.usable()) continue;
    lowest = std::min(lowest.value_or(other.logprob.value), other.logprob.value);
  }
  if (!lowest) return std::nullopt;
  return step.logprob.value - *lowest;
}

bool ResponsePair::sampled(const ResponseStep& step) {
  const auto rank = rank_of_chosen(step);
  return rank && rank->first > 1;
}

void ResponsePair::set_cause(ResponseCause cause, std::string reason) {
  m_out.divergence->cause = cause;
  m_out.divergence->reason = std::move(reason);
}

void ResponsePair::explain_divergence() {
  if (!m_out.divergence) return;
  ResponseDivergence& divergence = *m_out.divergence;
  const Place at{.a = static_cast<std::size_t>(std::max<std::int64_t>(divergence.step, 0)),
                 .b = static_cast<std::size_t>(std::max<std::int64_t>(divergence.step_b, 0))};
  const bool steps = divergence.step >= 0 && at.a < m_steps_a.size() && at.b < m_steps_b.size();
  if (steps && margins_mean_something(at)) {
    divergence.margin_a = margin(m_steps_a, at.a, m_steps_b[at.b].token);
    divergence.margin_b = margin(m_steps_b, at.b, m_steps_a[at.a].token);
  }
  if (const std::string prompts = prompt_difference(); !prompts.empty()) {
    return set_cause(ResponseCause::input, fmt::format("{}: these are different tasks", prompts));
  }
  if (divergence.step >= 0 && !steps) {
    const bool a_ended = at.a >= m_steps_a.size();
    const std::string& finish = a_ended ? m_choice_a.finish_reason : m_choice_b.finish_reason;
    return set_cause(
        ResponseCause::stopped,
        fmt::format("{} had ended{}", a_ended ? "A" : "B",
                    finish.empty() ? "" : fmt::format(" ({})", escape_for_display(finish))));
  }
  if (const std::string settings = setting_differences(m_a, m_b); !settings.empty()) {
    return set_cause(
        ResponseCause::sampler,
        fmt::format("the sampling settings differ ({}): two answers may differ without "
                    "any drift",
                    settings));
  }
  if (steps && explain_by_rank(at)) return;
  explain_by_margin(divergence, at);
}

bool ResponsePair::explain_by_rank(const Place& at) {
  const bool of_a = sampled(m_steps_a[at.a]);
  const bool of_b = sampled(m_steps_b[at.b]);
  if (!of_a && !of_b) return false;
  const char* side = of_a ? (of_b ? "both sides'" : "A's") : "B's";
  const auto greedy = [](const Response& response) {
    const auto known = response.temperature ? response.temperature : response.request.temperature;
    return known && *known == 0.0;
  };
  if ((of_a && greedy(m_a)) || (of_b && greedy(m_b))) {
    set_cause(ResponseCause::unknown,
              fmt::format("{} token was not its most likely one although the temperature was 0: a "
                          "grammar, a bias, a penalty, raw and processed values mixed, or drift "
                          "between choosing and counting",
                          side));
    return true;
  }
  set_cause(ResponseCause::sampler,
            fmt::format("{} token was not its most likely one: it was drawn at a temperature "
                        "above 0, so two answers differ without any drift",
                        side));
  return true;
}

bool ResponsePair::margins_mean_something(const Place& at) const {
  const auto mass = [](const ResponseStep& step) {
    double sum = 0.0;
    for (const TokenAlternative& other : step.alternatives) {
      if (other.logprob.usable()) sum += std::exp(other.logprob.value);
    }
    return sum;
  };
  const auto fine = [&](const Response& response, const ResponseStep& step) {
    if (response.scale == LogprobScale::logit) return true;
    return response.scale == LogprobScale::log_probability && !response.fake_certainty &&
           (step.alternatives.size() < 2 || mass(step) > 0.01);
  };
  return fine(m_a, m_steps_a[at.a]) && fine(m_b, m_steps_b[at.b]);
}

void ResponsePair::explain_without_margins(const std::string& versions, double least_gap) {
  if (!versions.empty()) {
    return set_cause(ResponseCause::version,
                     fmt::format("{}: another version may have answered; no logprobs at this "
                                 "step say more",
                                 versions));
  }
  if (least_gap > 0.0) {
    return set_cause(
        ResponseCause::unknown,
        fmt::format("neither side lists the other's token: the two are at least {:.4g} "
                    "apart, which is not enough to tell whether it is a near-tie",
                    least_gap));
  }
  set_cause(ResponseCause::unknown,
            "no logprobs of both tokens at this step: whether it is a near-tie cannot be "
            "told from this evidence");
}

void ResponsePair::explain_tie(const Place& at) {
  // What printing rounds away beyond the digits of a float.
  const auto rounded = [](const Logprob& value) {
    Logprob whole = value;
    whole.decimals = -1;
    return print_tolerance(value) > print_tolerance(whole);
  };
  const Logprob& a = m_steps_a[at.a].logprob;
  const Logprob& b = m_steps_b[at.b].logprob;
  if (rounded(a) || rounded(b)) {
    return set_cause(
        ResponseCause::near_tie,
        fmt::format("both tokens have the same value as printed, to {} decimals, on both sides: "
                    "they are at most {:.2g} apart",
                    rounded(a) && rounded(b) ? std::min(a.decimals, b.decimals)
                    : rounded(a)             ? a.decimals
                                             : b.decimals,
                    2.0 * std::max(print_tolerance(a), print_tolerance(b))));
  }
  set_cause(ResponseCause::exact_tie,
            "both tokens have exactly the same value on both sides: the order in which "
            "ties are broken decides");
}

std::string ResponsePair::drift_before(const Place& at) const {
  const LogprobDrift& drift = m_out.drift;
  if (drift.count == 0) {
    return at.a == 0 && at.b == 0 ? "no token of the answers comes before"
                                  : "the answers' drift before is not known";
  }
  if (drift.max_abs <= kBugScale) {
    return fmt::format("the answers' drift before was at most {:.4g}", drift.max_abs);
  }
  return fmt::format(
      "the answers' drift before was a gross {:.4g} (token {}), far beyond rounding itself",
      drift.max_abs, drift.argmax_step);
}

void ResponsePair::explain_by_margin(ResponseDivergence& divergence, const Place& at) {
  const std::string versions = describe_versions(m_out.versions);
  const std::optional<double>& known_a = divergence.margin_a;
  const std::optional<double>& known_b = divergence.margin_b;
  std::optional<double> least_a, least_b;
  if (divergence.step >= 0 && margins_mean_something(at)) {
    if (!known_a) least_a = least_margin(m_steps_a, at.a, m_steps_b[at.b].token);
    if (!known_b) least_b = least_margin(m_steps_b, at.b, m_steps_a[at.a].token);
  }
  const auto part = [](const std::optional<double>& known, const std::optional<double>& least) {
    return std::max(0.0, known ? *known : least.value_or(0.0));
  };
  const double gap = part(known_a, least_a) + part(known_b, least_b);
  const bool both = known_a && known_b;
  if (both && gap == 0.0) return explain_tie(at);
  // Drift that is no rounding excuses no gap.
  const bool gross = m_out.drift.max_abs > kBugScale;
  const double of_rounding = 2.0 * kBf16LogitStep;
  const double allowed = gross ? of_rounding : std::max(of_rounding, 2.0 * m_out.drift.max_abs);
  if (!known_a && !known_b && gap <= allowed) return explain_without_margins(versions, gap);
  const char* known = both                 ? "both margins together"
                      : known_a || known_b ? "one side's margin; the other does not list the token"
                                           : "neither side lists the other's token";
  const std::string figures = fmt::format(
      "the two tokens are {}{:.4g} apart ({}), where bf16 rounding of logits between 16 and 32 "
      "alone moves a gap by up to {:.3g} and {}",
      both ? "" : "at least ", gap, known, of_rounding, drift_before(at));
  if (gap <= allowed) return set_cause(ResponseCause::near_tie, figures);
  if (!versions.empty()) {
    return set_cause(ResponseCause::version, fmt::format("{}; {}", versions, figures));
  }
  set_cause(ResponseCause::beyond_rounding, figures + ": no rounding does that");
}

}  // namespace driftscope
