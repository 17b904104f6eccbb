// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/response_lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/responses/response_lint_parts.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;
constexpr double kUlpOfFloat = 5.9604645e-08;  // 2^-24, relative

std::string joined_bytes(const ResponseChannel& channel) {
  std::string bytes;
  for (const ResponseStep& step : channel.steps) {
    if (!step.special) bytes += step.token.bytes;
  }
  return bytes;
}

// ---- findings, one function each ----

using Findings = std::vector<Finding>;

void find_error(const Response& response, Findings& findings) {
  if (response.error.empty()) return;
  findings.push_back(make_finding(
      "no_answer", Severity::error,
      fmt::format("The server gave no answer: {}", escape_for_display(response.error)),
      Json{{"http_status", response.http_status ? Json(*response.http_status) : Json()}}));
}

void find_warnings(const Response& response, Findings& findings) {
  for (const ResponseWarning& warning : response.warnings) {
    findings.push_back(make_finding(warning.id, Severity::notice, escape_for_display(warning.text),
                                    Json::object()));
  }
}

void find_scale(const Response& response, Findings& findings) {
  if (response.scale == LogprobScale::logit) {
    findings.push_back(make_finding("logits_in_logprob", Severity::warning,
                                    "The logprob field holds logits (values above 1, or of both "
                                    "signs): gaps between tokens mean what they say, "
                                    "probabilities do not",
                                    Json::object()));
  }
  if (response.scale == LogprobScale::probability) {
    findings.push_back(make_finding(
        "probability_in_logprob", Severity::error,
        "The logprob field holds positive values of at most 1: probabilities, not logarithms; they "
        "are not compared",
        Json::object()));
  }
  if (response.after_sampling) {
    findings.push_back(make_finding(
        "after_sampling", Severity::warning,
        "The probabilities are of what was left after the samplers (top-k, top-p, temperature): "
        "they cannot be compared with logprobs of the model",
        Json::object()));
  }
}

void find_placeholders(const Response& response, Findings& findings) {
  std::int64_t steps = 0;
  each_step(response, [&](const ResponseStep& step) {
    if (step.logprob.state == LogprobState::placeholder) ++steps;
  });
  if (steps > 0) {
    findings.push_back(make_finding(
        "certain_without_alternatives", Severity::warning,
        fmt::format("{} logprob{} of exactly 0 without alternatives stand{} among others that have "
                    "some: placeholders of tokens that a draft proposed (speculative decoding). "
                    "They are not compared",
                    steps, steps == 1 ? "" : "s", steps == 1 ? "s" : ""),
        Json{{"speculative", true}, {"steps", steps}}));
  }
  if (!response.fake_certainty) return;
  findings.push_back(make_finding(
      "certain_without_alternatives", Severity::warning,
      response.speculative
          ? "Logprobs of exactly 0 without alternatives are placeholders: tokens that a draft "
            "proposed and the server accepted (speculative decoding). They are not compared"
          : "Every logprob is exactly 0 and no alternative has a value: placeholders, or values "
            "after greedy sampling. They are not compared",
      Json{{"speculative", response.speculative}}));
}

void find_lossy(const Response& response, Findings& findings) {
  for (const ResponseChoice& choice : response.choices) {
    const ResponseChannel& channel = main_channel(choice);
    const auto lossy = std::count_if(channel.steps.begin(), channel.steps.end(),
                                     [](const ResponseStep& step) { return step.token.lossy; });
    // A text that has the sign may mean it.
    const bool may_be_meant =
        channel.has_text && channel.text.find("\xEF\xBF\xBD") != std::string::npos;
    if (lossy == 0 || may_be_meant) continue;
    findings.push_back(make_finding(
        "lossy_token_bytes", Severity::warning,
        fmt::format("{} of {} tokens show U+FFFD{}: their bytes were lost. Positions and logprobs "
                    "can be compared, which token it was cannot",
                    lossy, channel.steps.size(),
                    channel.has_text ? " where the text has whole characters"
                                     : ", as every token does that is a part of a character"),
        Json{{"choice", choice.index}, {"tokens", lossy}}));
  }
}

// A step whose bytes cannot be known, so that nothing can be joined.
bool hides_bytes(const ResponseStep& step) {
  return step.token.lossy ||
         (step.token.bytes.empty() && !step.token.bytes_given && !step.text_of_group);
}

void find_text_mismatch(const Response& response, Findings& findings) {
  for (const ResponseChoice& choice : response.choices) {
    const ResponseChannel& channel = main_channel(choice);
    if (!channel.has_text || channel.steps.empty()) continue;
    const auto marks = std::count_if(channel.steps.begin(), channel.steps.end(),
                                     [](const ResponseStep& step) { return step.special; });
    if (marks > 0) {
      findings.push_back(make_finding(
          "end_mark_listed", Severity::info,
          "The list of tokens holds more than the text, such as an end mark or a stop string",
          Json{{"choice", choice.index}, {"tokens", marks}}));
    }
    const bool hidden =
        std::any_of(channel.steps.begin(), channel.steps.end(),
                    [](const ResponseStep& step) { return !step.special && hides_bytes(step); });
    const std::string bytes = joined_bytes(channel);
    if (hidden || bytes == channel.text) continue;
    const bool begins = bytes.starts_with(channel.text);
    findings.push_back(make_finding(
        begins ? "end_mark_listed" : "tokens_do_not_join",
        begins ? Severity::info : Severity::notice,
        begins ? "The list of tokens holds more than the text, such as an end mark or a stop string"
               : "The tokens' bytes do not join to the text",
        Json{{"choice", choice.index},
             {"joined_bytes", bytes.size()},
             {"text_bytes", channel.text.size()}}));
  }
}

void find_coverage(const Response& response, Findings& findings) {
  const auto tokens = response.usage.completion_tokens;
  if (!tokens || response.choices.size() != 1) return;
  const ResponseChoice& choice = response.choices[0];
  if (!choice.content.has_steps || !choice.tool_calls.empty()) return;
  const auto listed =
      static_cast<std::int64_t>(main_channel(choice).steps.size() + choice.reasoning.steps.size());
  const bool with_reasoning = choice.reasoning.has_steps;
  const std::int64_t visible =
      *tokens - (with_reasoning ? 0 : response.usage.reasoning_tokens.value_or(0));
  // One more is the end mark, which most servers count and do not list.
  if (listed + 1 >= visible) return;
  findings.push_back(make_finding(
      "tokens_missing", Severity::warning,
      fmt::format("{} tokens are listed where the server counts {}: some were dropped, by a "
                  "streaming parser for example",
                  listed, visible),
      Json{{"listed", listed}, {"counted", visible}}));
}

void find_mean_only(const Response& response, Findings& findings) {
  for (const ResponseChoice& choice : response.choices) {
    if (!choice.mean_logprob || choice.content.has_steps) continue;
    findings.push_back(make_finding(
        "mean_only", Severity::notice,
        fmt::format("Only the mean logprob is given ({:.6g}): tokens cannot be compared",
                    *choice.mean_logprob),
        Json{{"mean", *choice.mean_logprob}}));
  }
}

void find_fingerprint(const Response& response, Findings& findings) {
  if (response.fingerprint != "fp_ollama") return;
  findings.push_back(make_finding(
      "constant_fingerprint", Severity::info,
      "system_fingerprint is \"fp_ollama\" for every model and version of this server: no evidence",
      Json::object()));
}

constexpr std::array kLints{
    &find_error,          &find_warnings, &find_scale,         &find_placeholders,
    &find_states,         &find_lossy,    &find_text_mismatch, &find_collisions,
    &find_short_lists,    &find_crumbs,   &find_mass,          &find_ties,
    &find_repeated_lists, &find_grid,     &find_coverage,      &find_mean_only,
    &find_fingerprint,    &find_bos,      &find_prompt_date,   &find_unlikely_prompt,
    &find_ignored_request};

}  // namespace

const ResponseChannel& main_channel(const ResponseChoice& choice) {
  if (choice.content.steps.empty() && !choice.refusal.steps.empty()) return choice.refusal;
  return choice.content;
}

std::vector<Finding> lint_response(const Response& response) {
  Findings findings;
  for (const auto lint : kLints) lint(response, findings);
  return findings;
}

double print_tolerance(const Logprob& value) {
  if (!value.usable()) return 0.0;
  const double of_float = std::abs(value.value) * kUlpOfFloat;
  if (value.decimals < 0 || value.decimals > 12) return of_float;
  return std::max(of_float, 0.5 * std::pow(10.0, -value.decimals));
}

std::optional<std::size_t> chosen_entry(const ResponseStep& step) {
  const auto& others = step.alternatives;
  const auto found = std::find_if(others.begin(), others.end(), [&](const TokenAlternative& other) {
    return same_token(other.token, step.token);
  });
  if (found != others.end()) return static_cast<std::size_t>(found - others.begin());
  // Lost bytes: the same sign for a lost part and the same value is the token, or its equal.
  if (!step.token.lossy || !step.logprob.usable()) return std::nullopt;
  const auto like = std::find_if(others.begin(), others.end(), [&](const TokenAlternative& other) {
    return other.token.bytes == step.token.bytes && other.logprob.usable() &&
           other.logprob.value == step.logprob.value;
  });
  if (like == others.end()) return std::nullopt;
  return static_cast<std::size_t>(like - others.begin());
}

std::optional<RankInterval> rank_of_chosen(const ResponseStep& step) {
  if (step.alternatives.empty() || !step.logprob.usable()) return std::nullopt;
  std::int64_t above = 0;
  std::int64_t equal = 0;
  const auto chosen = chosen_entry(step);
  for (std::size_t i = 0; i < step.alternatives.size(); ++i) {
    const TokenAlternative& other = step.alternatives[i];
    if (i == chosen || !other.logprob.usable()) continue;
    // A second key of the same text is a collision, no rival.
    if (chosen && same_token(other.token, step.token)) continue;
    if (other.logprob.value > step.logprob.value) ++above;
    if (other.logprob.value == step.logprob.value) ++equal;
  }
  if (!chosen && equal == 0 && above == static_cast<std::int64_t>(step.alternatives.size())) {
    return RankInterval{.first = above + 1, .last = 0};
  }
  return RankInterval{.first = above + 1, .last = above + 1 + equal};
}

bool same_token(const TokenText& a, const TokenText& b) {
  if (a.id && b.id) return *a.id == *b.id;
  if (a.lossy || b.lossy) return false;
  return a.bytes == b.bytes;
}

}  // namespace driftscope
