// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/response_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/compare/findings.h"
#include "analysis/responses/response_lint.h"
#include "analysis/responses/version_evidence.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;
using Steps = std::vector<ResponseStep>;

constexpr std::size_t kShownBytes = 40;
// A gap of this size is no rounding of a working server: half a nat is a factor of 1.6.
constexpr double kBugScale = 0.5;

const ResponseChannel& compared_channel(const ResponseChoice& choice) {
  const bool refused = choice.content.text.empty() && choice.content.steps.empty() &&
                       (choice.refusal.has_text || choice.refusal.has_steps);
  return refused ? choice.refusal : choice.content;
}

// End marks are no part of the text; some servers list them and others do not.
Steps visible_steps(const ResponseChannel& channel) {
  Steps steps;
  std::string joined;
  for (const ResponseStep& step : channel.steps) {
    const bool past_text = channel.has_text && !step.special && step.token.bytes_given &&
                           joined.size() >= channel.text.size() && !channel.text.empty();
    if (step.special || past_text) continue;
    joined += step.token.bytes;
    steps.push_back(step);
  }
  return steps;
}

std::string text_of(const ResponseChannel& channel) {
  if (channel.has_text) return channel.text;
  std::string text;
  for (const ResponseStep& step : channel.steps) {
    if (!step.special) text += step.token.bytes;
  }
  return text;
}

bool all_have_ids(const Steps& steps) {
  return std::all_of(steps.begin(), steps.end(),
                     [](const ResponseStep& step) { return step.token.id.has_value(); });
}

bool any_lossy(const Steps& steps) {
  return std::any_of(steps.begin(), steps.end(),
                     [](const ResponseStep& step) { return step.token.lossy; });
}

bool have_bytes(const Steps& steps) {
  return std::none_of(steps.begin(), steps.end(), [](const ResponseStep& step) {
    return step.token.bytes.empty() && !step.token.bytes_given && !step.text_of_group;
  });
}

std::int64_t common_prefix(std::string_view a, std::string_view b) {
  const auto [end, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  (void)other;
  return end - a.begin();
}

// Lives during compare_responses() only.
class ResponsePair {
 public:
  ResponsePair(const Response& a, std::size_t choice_a, const Response& b, std::size_t choice_b)
      : m_a(a),
        m_b(b),
        m_choice_a(a.choices[choice_a]),
        m_choice_b(b.choices[choice_b]),
        m_channel_a(compared_channel(m_choice_a)),
        m_channel_b(compared_channel(m_choice_b)),
        m_steps_a(visible_steps(m_channel_a)),
        m_steps_b(visible_steps(m_channel_b)),
        m_text_a(text_of(m_channel_a)),
        m_text_b(text_of(m_channel_b)) {
    m_out.source_a = a.source;
    m_out.source_b = b.source;
    m_out.choice_a = m_choice_a.index;
    m_out.choice_b = m_choice_b.index;
  }

  ResponseComparison run() {
    m_out.tokens_a = static_cast<std::int64_t>(m_steps_a.size());
    m_out.tokens_b = static_cast<std::int64_t>(m_steps_b.size());
    m_out.equal_bytes = common_prefix(m_text_a, m_text_b);
    m_out.texts_equal = m_text_a == m_text_b && texts_known();
    m_out.versions = version_differences(m_a, m_b);
    compare_tools();
    align();
    compare_prompts();
    if (numbers_comparable()) measure_drift();
    find_divergence();
    explain_divergence();
    decide();
    collect_findings();
    return std::move(m_out);
  }

 private:
  // ---- alignment ----

  [[nodiscard]] bool texts_known() const {
    const auto known = [](const ResponseChannel& channel) {
      return channel.has_text || !channel.steps.empty();
    };
    return known(m_channel_a) && known(m_channel_b);
  }

  void align() {
    if (m_steps_a.empty() || m_steps_b.empty()) {
      m_out.alignment = texts_known() ? ResponseAlignment::text : ResponseAlignment::none;
      return;
    }
    if (all_have_ids(m_steps_a) && all_have_ids(m_steps_b) && same_vocabulary()) {
      m_out.alignment = ResponseAlignment::token_ids;
    } else if (any_lossy(m_steps_a) || any_lossy(m_steps_b)) {
      m_out.alignment = ResponseAlignment::positions;
    } else if (!have_bytes(m_steps_a) || !have_bytes(m_steps_b)) {
      m_out.alignment = texts_known() ? ResponseAlignment::text : ResponseAlignment::none;
      return;
    } else {
      m_out.alignment =
          other_boundaries() ? ResponseAlignment::byte_offsets : ResponseAlignment::token_bytes;
    }
    count_equal();
  }

  // One id that stands for two texts: the ids are of two vocabularies.
  [[nodiscard]] bool same_vocabulary() const {
    const std::size_t count = std::min(m_steps_a.size(), m_steps_b.size());
    for (std::size_t i = 0; i < count; ++i) {
      const TokenText& a = m_steps_a[i].token;
      const TokenText& b = m_steps_b[i].token;
      if (*a.id != *b.id) return a.bytes != b.bytes || a.bytes.empty();
      if (!a.bytes.empty() && !b.bytes.empty() && a.bytes != b.bytes && !a.lossy && !b.lossy) {
        return false;
      }
    }
    return true;
  }

  // Where the texts still agree, tokens begin at other bytes.
  [[nodiscard]] bool other_boundaries() const {
    std::int64_t byte = 0;
    const std::size_t count = std::min(m_steps_a.size(), m_steps_b.size());
    for (std::size_t i = 0; i < count; ++i) {
      const auto size_a = static_cast<std::int64_t>(m_steps_a[i].token.bytes.size());
      const auto size_b = static_cast<std::int64_t>(m_steps_b[i].token.bytes.size());
      if (byte + std::max(size_a, size_b) > m_out.equal_bytes) return false;
      if (size_a != size_b) return true;
      byte += size_a;
    }
    return false;
  }

  void count_equal() {
    const std::size_t count = std::min(m_steps_a.size(), m_steps_b.size());
    std::size_t equal = 0;
    while (equal < count && equal_at(equal, equal)) ++equal;
    m_out.equal_tokens = static_cast<std::int64_t>(equal);
    for (std::size_t i = 0; i < equal; ++i) m_pairs.emplace_back(i, i);
    if (m_out.alignment == ResponseAlignment::byte_offsets) pair_by_offset();
  }

  [[nodiscard]] bool equal_at(std::size_t i, std::size_t j) const {
    const TokenText& a = m_steps_a[i].token;
    const TokenText& b = m_steps_b[j].token;
    switch (m_out.alignment) {
      case ResponseAlignment::token_ids:
        return *a.id == *b.id;
      case ResponseAlignment::positions:
        return a.lossy || b.lossy || a.bytes == b.bytes;
      default:
        return a.bytes == b.bytes;
    }
  }

  // Tokens that begin at the same byte and are equal, as long as the texts are.
  void pair_by_offset() {
    m_pairs.clear();
    std::size_t i = 0;
    std::size_t j = 0;
    std::int64_t at_a = 0;
    std::int64_t at_b = 0;
    while (i < m_steps_a.size() && j < m_steps_b.size() &&
           std::max(at_a, at_b) < m_out.equal_bytes) {
      if (at_a == at_b && m_steps_a[i].token.bytes == m_steps_b[j].token.bytes) {
        m_pairs.emplace_back(i, j);
      }
      if (at_a <= at_b) {
        at_a += static_cast<std::int64_t>(m_steps_a[i++].token.bytes.size());
      } else {
        at_b += static_cast<std::int64_t>(m_steps_b[j++].token.bytes.size());
      }
    }
    m_out.equal_tokens = static_cast<std::int64_t>(m_pairs.size());
  }

  // ---- numbers ----

  [[nodiscard]] bool numbers_comparable() const {
    const auto usable = [](const Response& response) {
      return response.scale == LogprobScale::log_probability && !response.fake_certainty &&
             !response.after_sampling;
    };
    if (m_a.after_sampling && m_b.after_sampling) return true;
    return usable(m_a) && usable(m_b);
  }

  static void add_difference(LogprobDrift& drift, std::int64_t step, const Logprob& a,
                             const Logprob& b) {
    if (!a.usable() || !b.usable()) {
      drift.per_step.emplace_back();
      return;
    }
    const double difference = b.value - a.value;
    const double tolerance = print_tolerance(a) + print_tolerance(b);
    drift.per_step.emplace_back(difference);
    drift.print_tolerance = std::max(drift.print_tolerance, tolerance);
    drift.mean_abs += std::abs(difference);
    drift.mean += difference;
    if (difference > tolerance) ++drift.positive;
    if (difference < -tolerance) ++drift.negative;
    if (std::abs(difference) > drift.max_abs) {
      drift.max_abs = std::abs(difference);
      drift.argmax_step = step;
    }
    if (std::abs(difference) > tolerance && !drift.first_step) drift.first_step = step;
    ++drift.count;
  }

  static void finish(LogprobDrift& drift) {
    if (drift.count == 0) return;
    drift.mean_abs /= static_cast<double>(drift.count);
    drift.mean /= static_cast<double>(drift.count);
  }

  void measure_drift() {
    for (const auto& [i, j] : m_pairs) {
      add_difference(m_out.drift, static_cast<std::int64_t>(i), m_steps_a[i].logprob,
                     m_steps_b[j].logprob);
    }
    finish(m_out.drift);
  }

  void compare_prompts() {
    const std::size_t count = std::min(m_a.prompt_steps.size(), m_b.prompt_steps.size());
    for (std::size_t i = 0; i < count; ++i) {
      if (!same_token(m_a.prompt_steps[i].token, m_b.prompt_steps[i].token)) break;
      add_difference(m_out.prompt_drift, static_cast<std::int64_t>(i), m_a.prompt_steps[i].logprob,
                     m_b.prompt_steps[i].logprob);
    }
    finish(m_out.prompt_drift);
  }

  // Empty: the prompts are the same, or not known on both sides.
  [[nodiscard]] std::string prompt_difference() const {
    if (!m_a.prompt_ids.empty() && !m_b.prompt_ids.empty() && m_a.prompt_ids != m_b.prompt_ids) {
      const auto [at, other] = std::mismatch(m_a.prompt_ids.begin(), m_a.prompt_ids.end(),
                                             m_b.prompt_ids.begin(), m_b.prompt_ids.end());
      (void)other;
      return fmt::format("the prompts' token ids differ from position {} on ({} and {} tokens)",
                         at - m_a.prompt_ids.begin(), m_a.prompt_ids.size(), m_b.prompt_ids.size());
    }
    const std::size_t count = std::min(m_a.prompt_steps.size(), m_b.prompt_steps.size());
    for (std::size_t i = 0; i < count; ++i) {
      if (!same_token(m_a.prompt_steps[i].token, m_b.prompt_steps[i].token)) {
        return fmt::format("the prompts' tokens differ from position {} on", i);
      }
    }
    if (m_a.prompt_text && m_b.prompt_text && *m_a.prompt_text != *m_b.prompt_text) {
      return fmt::format("the prompts' texts differ from byte {} on",
                         common_prefix(*m_a.prompt_text, *m_b.prompt_text));
    }
    if (m_a.usage.prompt_tokens && m_b.usage.prompt_tokens &&
        *m_a.usage.prompt_tokens != *m_b.usage.prompt_tokens && m_out.versions.empty()) {
      return fmt::format("the servers counted {} and {} prompt tokens", *m_a.usage.prompt_tokens,
                         *m_b.usage.prompt_tokens);
    }
    return {};
  }

  // ---- where they part ----

  void compare_tools() {
    const auto key = [](const ToolCall& call) { return call.name + "\n" + call.arguments; };
    m_out.tools_equal =
        std::equal(m_choice_a.tool_calls.begin(), m_choice_a.tool_calls.end(),
                   m_choice_b.tool_calls.begin(), m_choice_b.tool_calls.end(),
                   [&](const ToolCall& x, const ToolCall& y) { return key(x) == key(y); });
  }

  void find_divergence() {
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

  static void describe_side(const Steps& steps, std::size_t at, std::string& text,
                            std::optional<std::int64_t>& id) {
    if (at >= steps.size()) return;
    text = steps[at].token.bytes;
    id = steps[at].token.id;
    if (text.empty() && id) text = fmt::format("token {}", *id);
  }

  // The texts' ends agree: they run together again after what differs.
  void find_joining(ResponseDivergence& divergence) const {
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

  [[nodiscard]] static std::optional<double> margin(const Steps& steps, std::size_t at,
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

  [[nodiscard]] static bool sampled(const ResponseStep& step) {
    const auto rank = rank_of_chosen(step);
    return rank && rank->first > 1;
  }

  void set_cause(ResponseCause cause, std::string reason) {
    m_out.divergence->cause = cause;
    m_out.divergence->reason = std::move(reason);
  }

  void explain_divergence() {
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

  [[nodiscard]] bool margins_mean_something(std::size_t at) const {
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

  void explain_by_margin(ResponseDivergence& divergence) {
    const std::string versions = describe_versions(m_out.versions);
    if (!divergence.margin_a && !divergence.margin_b) {
      if (!versions.empty()) {
        return set_cause(ResponseCause::version,
                         fmt::format("{}: another version may have answered; no logprobs at this "
                                     "step say more",
                                     versions));
      }
      return set_cause(
          ResponseCause::unknown,
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
        gap,
        both ? "both margins together" : "one side's margin; the other does not list the token",
        2.0 * kBf16LogitStep, m_out.drift.max_abs);
    if (gap <= allowed) return set_cause(ResponseCause::near_tie, figures);
    if (!versions.empty()) {
      return set_cause(ResponseCause::version, fmt::format("{}; {}", versions, figures));
    }
    set_cause(ResponseCause::beyond_rounding, figures + ": no rounding does that");
  }

  // ---- the verdict ----

  void decide() {
    const std::string failed = !m_a.error.empty() ? "A" : (!m_b.error.empty() ? "B" : "");
    if (!failed.empty() && m_text_a.empty() + m_text_b.empty() > 0) {
      return conclude(Tier::inconclusive, fmt::format("{} is an error, not an answer", failed));
    }
    const bool tools = !m_choice_a.tool_calls.empty() || !m_choice_b.tool_calls.empty();
    if (m_out.alignment == ResponseAlignment::none && !tools) {
      return decide_by_prompt();
    }
    if (const std::string prompts = prompt_difference(); !prompts.empty()) {
      return conclude(Tier::inconclusive,
                      fmt::format("{}: these are different tasks, and equal or different answers "
                                  "say nothing about drift",
                                  prompts));
    }
    if (!m_out.tools_equal) return conclude(Tier::different, "the tool calls differ");
    if (m_out.divergence) return decide_divergence();
    decide_equal();
  }

  void decide_by_prompt() {
    if (m_out.prompt_drift.count == 0) {
      return conclude(Tier::inconclusive, "there is no text and no token on one side to compare");
    }
    if (!m_out.prompt_drift.first_step) {
      return conclude(Tier::tolerance,
                      "the prompts' logprobs are equal as printed; there are no "
                      "answers to compare");
    }
    conclude(Tier::different,
             fmt::format("the prompts' tokens are the same and their logprobs differ from position "
                         "{} on, by up to {:.5g}; there are no answers to compare",
                         *m_out.prompt_drift.first_step, m_out.prompt_drift.max_abs));
  }

  void decide_divergence() {
    const ResponseDivergence& divergence = *m_out.divergence;
    const std::string where = divergence.step >= 0 ? fmt::format("token {}", divergence.step)
                                                   : fmt::format("byte {}", divergence.byte);
    const auto shown = [](const std::string& text) {
      return text.empty() ? std::string("the end")
                          : fmt::format("\"{}\"", escape_for_display(text));
    };
    conclude(Tier::different, fmt::format("the answers part at {}: {} and {} ({}: {})", where,
                                          shown(divergence.text_a), shown(divergence.text_b),
                                          name_of(divergence.cause), divergence.reason));
  }

  void decide_equal() {
    const bool tokens = m_out.alignment == ResponseAlignment::token_ids ||
                        m_out.alignment == ResponseAlignment::token_bytes;
    if (!tokens) {
      return conclude(Tier::semantic,
                      "the texts are equal; which tokens they are made of cannot be compared");
    }
    if (!numbers_comparable()) {
      return conclude(Tier::token,
                      "the tokens are equal; their numbers are not of one kind and are "
                      "not compared");
    }
    if (m_out.drift.count == 0) {
      return conclude(Tier::token, "the tokens are equal; logprobs are not known on both sides");
    }
    if (!m_out.drift.first_step) {
      return conclude(Tier::tolerance,
                      fmt::format("the tokens are equal, and so are {} logprobs as far as they are "
                                  "printed (within {:.2g})",
                                  m_out.drift.count, m_out.drift.print_tolerance));
    }
    conclude(
        Tier::token,
        fmt::format("the tokens are equal; {} logprobs differ by {:.5g} in the mean and {:.5g} "
                    "at most (token {})",
                    m_out.drift.count, m_out.drift.mean_abs, m_out.drift.max_abs,
                    m_out.drift.argmax_step));
  }

  void conclude(Tier tier, std::string verdict) {
    m_out.tier = tier;
    m_out.verdict = std::move(verdict);
  }

  // ---- findings ----

  void collect_findings() {
    add_prompt_finding();
    add_bias_finding();
    add_scale_finding();
    for (Finding& finding : version_findings(m_a, m_b))
      m_out.findings.push_back(std::move(finding));
    if (!m_out.divergence && m_choice_a.finish_reason != m_choice_b.finish_reason &&
        normalised_finish_reason(m_choice_a.finish_reason) !=
            normalised_finish_reason(m_choice_b.finish_reason)) {
      m_out.findings.push_back(
          make_finding("finish_reasons_differ", Severity::notice,
                       fmt::format("The answers ended differently: {} and {}",
                                   escape_for_display(m_choice_a.finish_reason),
                                   escape_for_display(m_choice_b.finish_reason)),
                       Json::object()));
    }
  }

  void add_prompt_finding() {
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

  // Rounding has both signs. All differences of one sign, larger where the token is less certain:
  // one side's values went through a temperature.
  void add_bias_finding() {
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

  // Confident tokens: -log p is about exp(-gap / T), so the ratio of their logarithms is 1 / T.
  [[nodiscard]] std::pair<double, std::int64_t> implied_temperature() const {
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

  void add_scale_finding() {
    if (numbers_comparable() || m_out.alignment == ResponseAlignment::text ||
        m_out.alignment == ResponseAlignment::none) {
      return;
    }
    m_out.findings.push_back(make_finding(
        "numbers_not_comparable", Severity::warning,
        "The sides' logprob fields hold different things (logarithms, probabilities, logits, "
        "placeholders or values after the samplers): no drift is computed",
        Json::object()));
  }

  const Response& m_a;
  const Response& m_b;
  const ResponseChoice& m_choice_a;
  const ResponseChoice& m_choice_b;
  const ResponseChannel& m_channel_a;
  const ResponseChannel& m_channel_b;
  Steps m_steps_a, m_steps_b;
  std::string m_text_a, m_text_b;
  std::vector<std::pair<std::size_t, std::size_t>> m_pairs;  // equal tokens, A's and B's step
  ResponseComparison m_out;
};

}  // namespace

std::string_view name_of(ResponseAlignment alignment) {
  constexpr std::array<std::string_view, 6> kNames{"none",         "token_ids", "token_bytes",
                                                   "byte_offsets", "positions", "text"};
  return kNames[static_cast<std::size_t>(alignment)];
}

std::string_view name_of(ResponseCause cause) {
  constexpr std::array<std::string_view, 8> kNames{"unknown",         "input",     "version",
                                                   "sampler",         "exact_tie", "near_tie",
                                                   "beyond_rounding", "stopped"};
  return kNames[static_cast<std::size_t>(cause)];
}

ResponseComparison compare_responses(const Response& a, std::size_t choice_a, const Response& b,
                                     std::size_t choice_b) {
  return ResponsePair(a, choice_a, b, choice_b).run();
}

}  // namespace driftscope
