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

namespace {

enum class Echo : std::uint8_t { none, some_tokens, unknown };
struct EchoLength {
  Echo echo = Echo::unknown;
  std::size_t tokens = 0;
};

std::string joined_bytes(const std::vector<ResponseStep>& steps) {
  std::string bytes;
  for (const ResponseStep& step : steps) bytes += step.token.bytes;
  return bytes;
}

// By the request's prompt, with which the text begins. The tokens may have a mark before it that
// the text lacks, and one token may hold the prompt's end and what follows: then it is not known.
EchoLength echo_of_prompt(const Response& response, const ResponseChannel& content) {
  const std::string& prompt = response.request.prompt;
  const std::string joined = joined_bytes(content.steps);
  const std::string& text = content.has_text ? content.text : joined;
  if (prompt.empty()) return {};
  if (!text.starts_with(prompt)) {
    // A list of messages or of ids as JSON is not what the text would begin with.
    const bool other_form = prompt.starts_with('[') || prompt.starts_with('{');
    const bool asked = response.request.echo.value_or(false);
    return {.echo = other_form || asked || text.empty() ? Echo::unknown : Echo::none};
  }
  if (!joined.ends_with(text)) return {};
  const std::size_t end = joined.size() - text.size() + prompt.size();
  std::size_t at = 0;
  std::size_t count = 0;
  for (const ResponseStep& step : content.steps) {
    if (at >= end) break;
    at += step.token.bytes.size();
    ++count;
  }
  if (at != end) return {};
  return {.echo = Echo::some_tokens, .tokens = count};
}

// By the server's counts. A list of the answer alone is about as long as the answer.
EchoLength echo_of_usage(const Response& response, std::size_t listed) {
  const auto& usage = response.usage;
  const auto size = static_cast<std::int64_t>(listed);
  if (!usage.prompt_tokens) return {};
  if (*usage.prompt_tokens <= 0 || size < *usage.prompt_tokens) return {.echo = Echo::none};
  if (usage.completion_tokens && !response.request.echo.value_or(false)) {
    constexpr std::int64_t kMarks = 1;  // an end mark is counted or listed, or not
    if (size <= *usage.completion_tokens + kMarks &&
        size < *usage.prompt_tokens + *usage.completion_tokens) {
      return {.echo = Echo::none};
    }
    if (size + kMarks < *usage.prompt_tokens + *usage.completion_tokens) return {};
  }
  return {.echo = Echo::some_tokens, .tokens = static_cast<std::size_t>(*usage.prompt_tokens)};
}

void move_to_prompt(Response& response, ResponseChoice& choice, std::size_t tokens) {
  std::vector<ResponseStep>& steps = choice.content.steps;
  const auto cut = steps.begin() + static_cast<std::ptrdiff_t>(tokens);
  std::vector<ResponseStep> prompt(std::make_move_iterator(steps.begin()),
                                   std::make_move_iterator(cut));
  steps.erase(steps.begin(), cut);
  const std::string text = joined_bytes(prompt);
  const std::string rest = joined_bytes(steps);
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

}  // namespace

void split_echo(Response& response, ResponseChoice& choice) {
  const std::vector<ResponseStep>& steps = choice.content.steps;
  if (steps.empty() || steps[0].logprob.state != LogprobState::null) return;
  if (response.request.echo == false) return;
  EchoLength length = echo_of_prompt(response, choice.content);
  if (length.echo == Echo::unknown) length = echo_of_usage(response, steps.size());
  if (length.echo == Echo::none) return;
  if (length.echo == Echo::some_tokens) return move_to_prompt(response, choice, length.tokens);
  response.warn("echo_unsplit",
                "the first token has no logprob: the text begins with the echoed prompt, and how "
                "long that is is not said");
}

}  // namespace driftscope
