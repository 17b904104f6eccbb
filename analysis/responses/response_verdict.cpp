// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analysis/responses/compared_answer.h"
#include "analysis/responses/response_lint.h"
#include "analysis/responses/response_pair.h"
#include "analysis/responses/version_evidence.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

// Bytes of the text that a token stands for at least: a U+FFFD in place of lost ones is one or
// more.
std::size_t least_bytes(const TokenText& token) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  std::size_t bytes = token.bytes.size();
  if (!token.lossy) return bytes;
  for (std::size_t at = token.bytes.find(kReplacement); at != std::string::npos;
       at = token.bytes.find(kReplacement, at + kReplacement.size())) {
    bytes -= kReplacement.size() - 1;
  }
  return bytes;
}

}  // namespace

const ResponseChannel& compared_channel(const ResponseChoice& choice) {
  const bool refused = choice.content.text.empty() && choice.content.steps.empty() &&
                       (choice.refusal.has_text || choice.refusal.has_steps);
  return refused ? choice.refusal : choice.content;
}

std::vector<const ResponseStep*> places_of_visible_steps(const ResponseChannel& channel) {
  std::vector<const ResponseStep*> steps;
  steps.reserve(channel.steps.size());
  std::size_t joined = 0;
  for (const ResponseStep& step : channel.steps) {
    const bool past_text = channel.has_text && !step.special && step.token.bytes_given &&
                           joined >= channel.text.size() && !channel.text.empty();
    if (step.special || past_text) continue;
    joined += least_bytes(step.token);
    steps.push_back(&step);
  }
  return steps;
}

std::vector<ResponseStep> visible_steps(const ResponseChannel& channel) {
  std::vector<ResponseStep> steps;
  for (const ResponseStep* step : places_of_visible_steps(channel)) steps.push_back(*step);
  return steps;
}

std::string channel_text(const ResponseChannel& channel) {
  if (channel.has_text) return channel.text;
  std::string text;
  for (const ResponseStep& step : channel.steps) {
    if (!step.special) text += step.token.bytes;
  }
  return text;
}

std::int64_t common_prefix(std::string_view a, std::string_view b) {
  const auto [end, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  (void)other;
  return end - a.begin();
}

ResponsePair::ResponsePair(const Response& a, std::size_t choice_a, const Response& b,
                           std::size_t choice_b)
    : m_a(a),
      m_b(b),
      m_choice_a(a.choices[choice_a]),
      m_choice_b(b.choices[choice_b]),
      m_channel_a(compared_channel(m_choice_a)),
      m_channel_b(compared_channel(m_choice_b)),
      m_steps_a(places_of_visible_steps(m_channel_a)),
      m_steps_b(places_of_visible_steps(m_channel_b)),
      m_text_a(channel_text(m_channel_a)),
      m_text_b(channel_text(m_channel_b)) {
  m_out.source_a = a.source;
  m_out.source_b = b.source;
  m_out.choice_a = m_choice_a.index;
  m_out.choice_b = m_choice_b.index;
}

ResponseComparison ResponsePair::run() {
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
  if (texts_known() && m_text_a != m_text_b) m_out.similarity = compare_texts(m_text_a, m_text_b);
  collect_findings();
  return std::move(m_out);
}

void ResponsePair::decide() {
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
  const auto refuses = [](const ResponseChoice& choice) {
    return choice.content.text.empty() && !channel_text(choice.refusal).empty();
  };
  if (refuses(m_choice_a) != refuses(m_choice_b)) {
    return conclude(Tier::different,
                    fmt::format("{} refuses and {} answers, with the same text",
                                refuses(m_choice_a) ? "A" : "B", refuses(m_choice_a) ? "B" : "A"));
  }
  if (aligned_by_tokens() && texts_known() && !m_out.texts_equal) {
    return conclude(Tier::inconclusive,
                    fmt::format("the tokens are equal and the texts differ from byte {} on: the "
                                "tokens of a side do not make up its text",
                                m_out.equal_bytes));
  }
  decide_equal();
  weaken();
}

void ResponsePair::decide_by_prompt() {
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

void ResponsePair::decide_divergence() {
  const ResponseDivergence& divergence = *m_out.divergence;
  const std::string where = divergence.step >= 0 ? fmt::format("token {}", divergence.step)
                                                 : fmt::format("byte {}", divergence.byte);
  const auto shown = [](const std::string& text) {
    return text.empty() ? std::string("the end") : fmt::format("\"{}\"", escape_for_display(text));
  };
  conclude(Tier::different, fmt::format("the answers part at {}: {} and {} ({}: {})", where,
                                        shown(divergence.text_a), shown(divergence.text_b),
                                        name_of(divergence.cause), divergence.reason));
}

bool ResponsePair::aligned_by_tokens() const {
  return m_out.alignment == ResponseAlignment::token_ids ||
         m_out.alignment == ResponseAlignment::token_bytes;
}

void ResponsePair::decide_equal() {
  aligned_by_tokens() ? decide_equal_tokens() : decide_equal_without_tokens();
}

void ResponsePair::decide_equal_without_tokens() {
  const bool tools = !m_choice_a.tool_calls.empty();
  const char* what = "the texts are equal";
  if (tools)
    what = m_text_a.empty() ? "the tool calls are equal" : "texts and tool calls are equal";
  const bool lost = m_out.alignment == ResponseAlignment::positions;
  conclude(Tier::semantic,
           fmt::format("{}{}", what,
                       lost ? ", as far as their bytes are known: tokens that are parts of "
                              "characters show as U+FFFD, and other ones would show the same"
                            : "; which tokens they are made of cannot be compared"));
  // Tokens of other boundaries are other tokens; what is not listed may be the same.
  if (m_out.alignment == ResponseAlignment::byte_offsets) return;
  const bool drift = lost && numbers_comparable() && m_out.drift.first_step;
  m_out.at_best = drift ? Tier::token : Tier::tolerance;
}

void ResponsePair::decide_equal_tokens() {
  const LogprobDrift& drift = m_out.drift;
  const auto plural = [&](const char* text) { return drift.count == 1 ? "" : text; };
  const bool partial = static_cast<std::size_t>(drift.count) < m_pairs.size();
  const std::string known = fmt::format("{} of {} logprobs {} known on both sides", drift.count,
                                        m_pairs.size(), drift.count == 1 ? "is" : "are");
  if (!numbers_comparable()) {
    conclude(Tier::token, fmt::format("the tokens are equal; their numbers are not compared: {}",
                                      kinds_of_numbers()));
  } else if (drift.count == 0) {
    conclude(Tier::token, "the tokens are equal; logprobs are not known on both sides");
  } else if (drift.first_step) {
    return conclude(
        Tier::token,
        fmt::format("the tokens are equal; {} logprob{} differ{} by {:.5g} in the mean and {:.5g} "
                    "at most (token {}){}",
                    drift.count, plural("s"), drift.count == 1 ? "s" : "", drift.mean_abs,
                    drift.max_abs, drift.argmax_step, partial ? "; " + known : ""));
  } else if (partial) {
    conclude(Tier::token, fmt::format("the tokens are equal; {}, equal as far as printed (within "
                                      "{:.2g})",
                                      known, drift.print_tolerance));
  } else {
    conclude(Tier::tolerance,
             fmt::format("the tokens are equal, and {} as far as printed (within {:.2g})",
                         drift.count == 1 ? std::string("so is 1 logprob")
                                          : fmt::format("so are {} logprobs", drift.count),
                         drift.print_tolerance));
  }
  m_out.at_best = Tier::tolerance;
}

void ResponsePair::conclude(Tier tier, std::string verdict) {
  m_out.tier = m_out.at_best = tier;
  m_out.verdict = std::move(verdict);
}

}  // namespace driftscope
