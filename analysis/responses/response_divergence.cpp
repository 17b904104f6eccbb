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
  if (tokens) {
    const auto at = static_cast<std::size_t>(m_out.equal_tokens);
    divergence.step = m_out.equal_tokens;
    describe_side(m_steps_a, at, divergence.text_a, divergence.id_a);
    describe_side(m_steps_b, at, divergence.text_b, divergence.id_b);
  } else {
    const auto at = static_cast<std::size_t>(m_out.equal_bytes);
    divergence.text_a = m_text_a.substr(std::min(at, m_text_a.size()), kShownBytes);
    divergence.text_b = m_text_b.substr(std::min(at, m_text_b.size()), kShownBytes);
  }
  find_joining(divergence);
  m_out.divergence = std::move(divergence);
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
  const auto at = static_cast<std::size_t>(std::max<std::int64_t>(divergence.step, 0));
  const bool steps = divergence.step >= 0 && at < m_steps_a.size() && at < m_steps_b.size();
  if (steps && margins_mean_something(at)) {
    divergence.margin_a = margin(m_steps_a, at, m_steps_b[at].token);
    divergence.margin_b = margin(m_steps_b, at, m_steps_a[at].token);
  }
  if (const std::string prompts = prompt_difference(); !prompts.empty()) {
    return set_cause(ResponseCause::input, fmt::format("{}: these are different tasks", prompts));
  }
  if (divergence.step >= 0 && !steps) {
    const bool a_ended = at >= m_steps_a.size();
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
  if (steps && (sampled(m_steps_a[at]) || sampled(m_steps_b[at]))) {
    const char* side =
        sampled(m_steps_a[at]) ? (sampled(m_steps_b[at]) ? "both sides'" : "A's") : "B's";
    return set_cause(
        ResponseCause::sampler,
        fmt::format("{} token was not its most likely one: it was drawn at a temperature "
                    "above 0, so two answers differ without any drift",
                    side));
  }
  explain_by_margin(divergence);
}

bool ResponsePair::margins_mean_something(std::size_t at) const {
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
  return fine(m_a, m_steps_a[at]) && fine(m_b, m_steps_b[at]);
}

void ResponsePair::explain_by_margin(ResponseDivergence& divergence) {
  const std::string versions = describe_versions(m_out.versions);
  if (!divergence.margin_a && !divergence.margin_b) {
    if (!versions.empty()) {
      return set_cause(ResponseCause::version,
                       fmt::format("{}: another version may have answered; no logprobs at this "
                                   "step say more",
                                   versions));
    }
    return set_cause(ResponseCause::unknown,
                     "no logprobs of both tokens at this step: whether it is a near-tie cannot be "
                     "told from this evidence");
  }
  const double gap = std::max(0.0, divergence.margin_a.value_or(0.0)) +
                     std::max(0.0, divergence.margin_b.value_or(0.0));
  const bool both = divergence.margin_a && divergence.margin_b;
  if (gap == 0.0 && both) {
    return set_cause(ResponseCause::exact_tie,
                     "both tokens have exactly the same value on both sides: the order in which "
                     "ties are broken decides");
  }
  const double seen = 2.0 * m_out.drift.max_abs;
  const double allowed = std::max(2.0 * kBf16LogitStep, seen);
  const std::string figures = fmt::format(
      "the two tokens are {:.4g} apart ({}), where bf16 rounding of logits between 16 and 32 "
      "alone "
      "moves a gap by up to {:.3g} and the answers' drift before was at most {:.4g}",
      gap, both ? "both margins together" : "one side's margin; the other does not list the token",
      2.0 * kBf16LogitStep, m_out.drift.max_abs);
  if (gap <= allowed) return set_cause(ResponseCause::near_tie, figures);
  if (!versions.empty()) {
    return set_cause(ResponseCause::version, fmt::format("{}; {}", versions, figures));
  }
  set_cause(ResponseCause::beyond_rounding, figures + ": no rounding does that");
}

}  // namespace driftscope
