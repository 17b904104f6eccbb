// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/response_finish.h"

#include <algorithm>
#include <iterator>

#include "analysis/import/json_document.h"
#include "analysis/import/logprob_reading.h"
#include "analysis/import/openai_parts.h"

namespace driftscope {
namespace {

void canonicalise(ToolCall& call) {
  JsonDocument document;
  if (!call.arguments.empty() && document.parse(call.arguments)) {
    call.arguments = document.root().canonical();
  }
  // A call without arguments is sent as either.
  if (call.arguments == "{}") call.arguments.clear();
}

std::string joined(const std::vector<ResponseStep>& steps) {
  std::string bytes;
  for (const ResponseStep& step : steps) {
    if (!step.special) bytes += step.token.bytes;
  }
  return bytes;
}

// Some servers show a part of a character as the text "\xf0\x9f" and send no bytes. Only where
// the answer's text proves it.
void decode_escaped_tokens(ResponseChannel& channel) {
  if (!channel.has_text || channel.steps.empty()) return;
  const auto escaped = [](const ResponseStep& step) {
    return !step.token.bytes_given && step.token.text.starts_with("\\x");
  };
  if (std::none_of(channel.steps.begin(), channel.steps.end(), escaped)) return;
  std::vector<ResponseStep> decoded = channel.steps;
  for (ResponseStep& step : decoded) {
    if (!escaped(step)) continue;
    if (auto bytes = escaped_bytes(step.token.text); bytes) step.token.bytes = std::move(*bytes);
  }
  if (!channel.text.starts_with(joined(decoded)) && joined(decoded) != channel.text) return;
  channel.steps = std::move(decoded);
}

// One list of tokens for both: reasoning first, then a mark, then the content.
void split_reasoning(Response& response, ResponseChoice& choice) {
  ResponseChannel& content = choice.content;
  ResponseChannel& reasoning = choice.reasoning;
  if (!content.has_steps || reasoning.has_steps || reasoning.text.empty()) return;
  const std::string all = joined(content.steps);
  if (!content.text.empty() && all.starts_with(content.text)) return;
  const std::size_t begin = content.text.empty() ? all.size() : all.rfind(content.text);
  if (begin == std::string::npos || all.find(reasoning.text) == std::string::npos) return;
  std::size_t at = 0;
  auto cut = content.steps.begin();
  while (cut != content.steps.end() && at < begin) {
    at += cut->special ? 0 : cut->token.bytes.size();
    ++cut;
  }
  if (at != begin) {
    response.warn("steps_span_channels",
                  "one list of tokens holds reasoning and content, and a token lies in both");
    return;
  }
  reasoning.steps.assign(std::make_move_iterator(content.steps.begin()),
                         std::make_move_iterator(cut));
  content.steps.erase(content.steps.begin(), cut);
  reasoning.has_steps = true;
}

bool looks_like_mark(const TokenText& token) {
  return token.text.empty() || (token.text.starts_with('<') && token.text.ends_with('>'));
}

// What follows after the tokens that make up the text is no part of it.
void mark_end(ResponseChannel& channel) {
  if (!channel.has_text || channel.steps.empty()) return;
  std::string_view rest = channel.text;
  auto step = channel.steps.begin();
  for (; step != channel.steps.end() && !rest.empty(); ++step) {
    if (step->special) continue;
    if (!rest.starts_with(step->token.bytes)) return;
    rest.remove_prefix(step->token.bytes.size());
  }
  if (!rest.empty()) return;
  if (channel.text.empty() && !std::all_of(step, channel.steps.end(), [](const ResponseStep& s) {
        return looks_like_mark(s.token);
      })) {
    return;
  }
  // The later tokens of a group have their text at its first.
  for (; step != channel.steps.end(); ++step) step->special = step->special || !step->text_of_group;
}

// Ids that the server lists for tokens of which it gives no logprob.
void add_steps_of_ids(Response& response, ResponseChoice& choice) {
  const auto& ids = choice.token_ids;
  auto& steps = choice.content.steps;
  if (ids.size() <= steps.size() || choice.reasoning.has_text || choice.refusal.has_text) return;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].token.id != ids[i]) return;
  }
  // A list that lacks only the end mark is a whole one.
  if (!steps.empty() && ids.size() == steps.size() + 1 && joined(steps) == choice.content.text &&
      choice.content.has_text) {
    return;
  }
  if (!steps.empty()) response.warn("logprobs_cut", "there are fewer logprobs than tokens");
  for (std::size_t i = steps.size(); i < ids.size(); ++i) {
    steps.emplace_back().token.id = ids[i];
  }
  choice.content.has_steps = true;
}

}  // namespace

void finish_response(Response& response) {
  for (ResponseChoice& choice : response.choices) {
    for (ToolCall& call : choice.tool_calls) canonicalise(call);
    if (choice.may_echo) split_echo(response, choice);
    decode_escaped_tokens(choice.content);
    decode_escaped_tokens(choice.reasoning);
    split_reasoning(response, choice);
    add_steps_of_ids(response, choice);
    mark_end(choice.content);
    mark_end(choice.refusal);
  }
  // A scored prompt without a continuation is an answer to compare too.
  if (response.choices.empty() && !response.prompt_steps.empty()) response.choices.emplace_back();
}

}  // namespace driftscope
