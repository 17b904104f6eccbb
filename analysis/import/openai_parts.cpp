// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/openai_parts.h"

#include <algorithm>
#include <iterator>

#include "analysis/import/logprob_reading.h"

namespace driftscope {
namespace {

struct ScoredEntry {
  TokenAlternative token;
  std::optional<std::int64_t> rank;
};

ScoredEntry read_scored(const std::string& key, JsonValue value) {
  ScoredEntry entry;
  entry.token.logprob = read_logprob(value.is_object() ? value["logprob"] : value);
  entry.token.token.text = value["decoded_token"].text_or("");
  entry.token.token.bytes = entry.token.token.text;
  entry.rank = value["rank"].integer();
  if (!key.empty() && key.find_first_not_of("0123456789") == std::string::npos && key.size() < 18) {
    entry.token.token.id = std::stoll(key);
  }
  return entry;
}

// The entry of the prompt's own token; the list's size where it cannot be told.
std::size_t own_entry(const std::vector<ScoredEntry>& entries, std::optional<std::int64_t> id) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const ScoredEntry& entry) {
    if (id) return entry.token.token.id == id;
    return entries.size() == 1 ||
           (entry.rank && *entry.rank > static_cast<std::int64_t>(entries.size()));
  });
  return static_cast<std::size_t>(found - entries.begin());
}

}  // namespace

void read_prompt_logprobs(JsonValue list, Response& response) {
  if (!list.is_array()) return;
  std::size_t position = 0;
  for (const JsonValue entry : list) {
    ResponseStep step;
    std::optional<std::int64_t> id;
    if (position < response.prompt_ids.size()) id = response.prompt_ids[position];
    step.token.id = id;
    std::vector<ScoredEntry> entries;
    for (auto it = entry.begin(); entry.is_object() && it != entry.end(); ++it) {
      entries.push_back(read_scored(it.key(), *it));
    }
    if (const std::size_t own = own_entry(entries, id); own < entries.size()) {
      step.token = entries[own].token.token;
      step.logprob = entries[own].token.logprob;
    }
    for (ScoredEntry& other : entries) step.alternatives.push_back(std::move(other.token));
    if (entry.is_null()) step.logprob = {.state = LogprobState::null};
    response.prompt_steps.push_back(std::move(step));
    ++position;
  }
}

void read_together_prompt(JsonValue prompt, Response& response) {
  if (!prompt.is_object()) return;
  ResponseChannel echoed;
  read_legacy_arrays(prompt["logprobs"], echoed);
  response.prompt_steps = std::move(echoed.steps);
  if (prompt["text"].is_text()) response.prompt_text = prompt["text"].text();
}

void split_echo(Response& response, ResponseChoice& choice) {
  std::vector<ResponseStep>& steps = choice.content.steps;
  if (steps.empty() || steps[0].logprob.state != LogprobState::null) return;
  const auto& usage = response.usage;
  const auto size = static_cast<std::int64_t>(steps.size());
  if (!usage.prompt_tokens) {
    response.warn("echo_unsplit",
                  "the first token has no logprob: the text begins with the echoed prompt, and how "
                  "long that is is not said");
    return;
  }
  // A list of the answer alone is as long as the answer.
  const std::int64_t generated = usage.completion_tokens.value_or(0);
  const bool echoed = size >= *usage.prompt_tokens && size != generated;
  if (!echoed || *usage.prompt_tokens <= 0) return;
  const auto cut = steps.begin() + static_cast<std::ptrdiff_t>(*usage.prompt_tokens);
  std::vector<ResponseStep> prompt(std::make_move_iterator(steps.begin()),
                                   std::make_move_iterator(cut));
  steps.erase(steps.begin(), cut);
  std::string text;
  for (const ResponseStep& step : prompt) text += step.token.bytes;
  std::string rest;
  for (const ResponseStep& step : steps) rest += step.token.bytes;
  // The text may lack the mark at the prompt's front.
  if (choice.content.text.starts_with(text)) {
    response.prompt_text = text;
    choice.content.text.erase(0, text.size());
  } else if (choice.content.text.ends_with(rest) && choice.content.has_text) {
    const std::size_t begin = choice.content.text.size() - rest.size();
    response.prompt_text = choice.content.text.substr(0, begin);
    choice.content.text.erase(0, begin);
  }
  if (response.prompt_steps.empty()) response.prompt_steps = std::move(prompt);
}

}  // namespace driftscope
