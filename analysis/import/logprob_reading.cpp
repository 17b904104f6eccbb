// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/logprob_reading.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace driftscope {
namespace {

constexpr double kSentinel = -9999.0;
constexpr double kLowestFloat = -3.4028234663852886e+38;

int decimals_of(std::string_view digits) {
  if (digits.find_first_of("eE") != std::string_view::npos) return -1;
  const std::size_t point = digits.find('.');
  return point == std::string_view::npos ? 0 : static_cast<int>(digits.size() - point - 1);
}

Logprob of_number(double value, int decimals) {
  if (std::isnan(value)) return {.state = LogprobState::not_a_number};
  if (std::isinf(value)) {
    return {.state = value < 0 ? LogprobState::minus_infinity : LogprobState::not_a_number};
  }
  if (value <= kLowestFloat * (1.0 - 1e-7)) return {.state = LogprobState::lowest_float};
  if (value == kSentinel) return {.state = LogprobState::sentinel};
  if (value == -100.0 || value == -1000.0) return {.state = LogprobState::clipped};
  return {.state = LogprobState::number, .value = value, .decimals = decimals};
}

std::optional<std::int64_t> id_in_text(std::string_view text) {
  constexpr std::string_view kPrefix = "token_id:";
  if (!text.starts_with(kPrefix)) return std::nullopt;
  std::int64_t id = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data() + kPrefix.size(), end, id);
  if (result.ec != std::errc{} || result.ptr != end) return std::nullopt;
  return id;
}

// "\xf0\x9f" as characters, hexadecimal pairs only. Empty where it is something else.
std::optional<std::string> escaped_bytes(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 4) {
    unsigned value = 0;
    if (text.size() - i < 4 || text[i] != '\\' || text[i + 1] != 'x') return std::nullopt;
    const auto result = std::from_chars(text.data() + i + 2, text.data() + i + 4, value, 16);
    if (result.ptr != text.data() + i + 4) return std::nullopt;
    bytes += static_cast<char>(value);
  }
  return bytes;
}

// What is read of a token's object, each the first member of its name. One pass over the members:
// an answer has thousands of these objects.
struct TokenMembers {
  JsonValue token, tok_str, content, text, bytes, id, token_id, logprob, prob, sampling_logprob,
      special, top_logprobs, top_probs, probs;
};

JsonValue TokenMembers::*member_named(std::string_view name) {
  struct Row {
    std::string_view name;
    JsonValue TokenMembers::*member;
  };
  static constexpr Row kRows[] = {{"token", &TokenMembers::token},
                                  {"logprob", &TokenMembers::logprob},
                                  {"bytes", &TokenMembers::bytes},
                                  {"id", &TokenMembers::id},
                                  {"token_id", &TokenMembers::token_id},
                                  {"top_logprobs", &TokenMembers::top_logprobs},
                                  {"text", &TokenMembers::text},
                                  {"prob", &TokenMembers::prob},
                                  {"tok_str", &TokenMembers::tok_str},
                                  {"content", &TokenMembers::content},
                                  {"special", &TokenMembers::special},
                                  {"sampling_logprob", &TokenMembers::sampling_logprob},
                                  {"top_probs", &TokenMembers::top_probs},
                                  {"probs", &TokenMembers::probs}};
  for (const Row& row : kRows) {
    if (row.name == name) return row.member;
  }
  return nullptr;
}

TokenMembers members_of(JsonValue entry) {
  TokenMembers members;
  if (!entry.is_object()) return members;
  const auto end = entry.end();
  for (auto it = entry.begin(); it != end; ++it) {
    const std::string_view plain = it.plain_key();
    const auto member = plain.empty() ? member_named(it.key()) : member_named(plain);
    if (member != nullptr && !(members.*member)) members.*member = *it;
  }
  return members;
}

JsonValue first_of(std::initializer_list<JsonValue> values) {
  for (const JsonValue value : values) {
    if (!value.is_null()) return value;
  }
  return {};
}

// A probability becomes its logarithm; what was printed keeps its digits.
Logprob of_probability(JsonValue value) {
  Logprob read = read_logprob(value);
  if (!read.usable()) return read;
  if (read.value <= 0.0) return {.state = LogprobState::minus_infinity};
  read.value = std::log(read.value);
  read.decimals = -1;
  return read;
}

Logprob logprob_of(const TokenMembers& entry) {
  if (entry.logprob) return read_logprob(entry.logprob);
  if (entry.prob) return of_probability(entry.prob);
  return {};
}

TokenAlternative read_alternative(JsonValue item) {
  const TokenMembers entry = members_of(item);
  return {.token = read_token(first_of({entry.token, entry.tok_str, entry.text}), entry.bytes,
                              first_of({entry.id, entry.token_id})),
          .logprob = logprob_of(entry)};
}

ResponseStep read_token_object(JsonValue object) {
  const TokenMembers entry = members_of(object);
  ResponseStep step;
  step.token = read_token(first_of({entry.token, entry.content, entry.text}), entry.bytes,
                          first_of({entry.id, entry.token_id}));
  step.logprob = logprob_of(entry);
  if (entry.sampling_logprob.is_number()) {
    step.sampling_logprob = read_logprob(entry.sampling_logprob);
  }
  step.special = entry.special.boolean().value_or(false);
  const JsonValue others = first_of({entry.top_logprobs, entry.top_probs, entry.probs});
  step.alternatives_left_out = static_cast<std::uint32_t>(others.left_out());
  if (step.alternatives_left_out > 0) step.alternatives_text = others.raw();
  step.alternatives.reserve(others.size());
  for (const JsonValue item : others) step.alternatives.push_back(read_alternative(item));
  // llama.cpp before December 2024: the chosen token's probability is among the alternatives.
  if (step.logprob.state == LogprobState::missing) {
    for (const TokenAlternative& other : step.alternatives) {
      if (other.token.text == step.token.text) step.logprob = other.logprob;
    }
  }
  return step;
}

}  // namespace

std::string_view logprob_state_name(LogprobState state) {
  constexpr std::string_view kNames[] = {"missing", "null",         "number",         "sentinel",
                                         "clipped", "lowest_float", "minus_infinity", "nan"};
  return kNames[static_cast<std::size_t>(state)];
}

Logprob read_logprob(JsonValue value) {
  if (!value) return {};
  if (value.is_null()) return {.state = LogprobState::null};
  if (value.is_number()) return of_number(*value.number(), decimals_of(value.raw()));
  const std::string text = value.text();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (text == "-Infinity" || text == "-inf") return of_number(-kInfinity, -1);
  if (text == "NaN" || text == "nan" || text == "Infinity" || text == "inf") {
    return {.state = LogprobState::not_a_number};
  }
  double number = 0.0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (!text.empty() && result.ec == std::errc{} && result.ptr == text.data() + text.size()) {
    return of_number(number, decimals_of(text));
  }
  return {};
}

TokenText read_token(JsonValue text, JsonValue bytes, JsonValue id) {
  TokenText token;
  token.text = text.text();
  token.id = id.integer();
  const auto placeholder = id_in_text(token.text);
  if (placeholder && !token.id) token.id = placeholder;
  auto listed = bytes.bytes();
  // Some servers list the bytes of the placeholder's own characters.
  if (listed && !(placeholder && *listed == token.text)) {
    token.bytes = std::move(*listed);
    token.bytes_given = true;
    return token;
  }
  if (placeholder) return token;
  constexpr std::string_view kBytes = "bytes:";
  if (token.text.starts_with(kBytes)) {
    if (auto exact = escaped_bytes(std::string_view(token.text).substr(kBytes.size())); exact) {
      token.bytes = std::move(*exact);
      token.bytes_given = true;
      return token;
    }
  }
  token.bytes = token.text;
  return token;
}

void read_left_out(ResponseStep& step, JsonDocument& document) {
  // It was parsed as a part of the whole.
  if (step.alternatives_left_out == 0 || !document.parse(step.alternatives_text)) return;
  for (const JsonValue item : document.root()) step.alternatives.push_back(read_alternative(item));
  step.alternatives_left_out = 0;
  step.alternatives_text = {};
}

void read_token_objects(JsonValue list, ResponseChannel& channel) {
  if (!list.is_array()) return;
  channel.has_steps = true;
  channel.steps.reserve(channel.steps.size() + list.size());
  for (const JsonValue entry : list) {
    if (entry.is_object()) channel.steps.push_back(read_token_object(entry));
  }
}

void read_legacy_arrays(JsonValue logprobs, std::size_t prompt_characters,
                        std::vector<ResponseStep>& prompt, ResponseChannel& channel) {
  const JsonValue tokens = logprobs["tokens"];
  if (!tokens.is_array()) return;
  channel.has_steps = true;
  const JsonValue values = logprobs["token_logprobs"];
  const JsonValue tops = logprobs["top_logprobs"];
  const JsonValue offsets = logprobs["text_offset"];
  const JsonValue ids = logprobs["token_ids"];
  auto value = values.begin();
  auto top = tops.begin();
  auto offset = offsets.begin();
  auto id = ids.begin();
  for (const JsonValue token : tokens) {
    ResponseStep step;
    const bool has_id = ids.is_array() && id != ids.end();
    step.token = read_token(token, {}, has_id ? *id : JsonValue{});
    if (has_id) ++id;
    if (values.is_array() && value != values.end()) {
      step.logprob = read_logprob(*value);
      ++value;
    }
    if (tops.is_array() && top != tops.end()) {
      const JsonValue entries = *top;
      for (auto it = entries.begin(); entries.is_object() && it != entries.end(); ++it) {
        TokenAlternative other;
        const std::string key = it.key();
        other.token = {.text = key, .bytes = key, .id = id_in_text(key)};
        if (key.starts_with("bytes:")) {
          if (auto exact = escaped_bytes(std::string_view(key).substr(6)); exact) {
            other.token.bytes = std::move(*exact);
            other.token.bytes_given = true;
          }
        }
        other.logprob = read_logprob(*it);
        step.alternatives.push_back(std::move(other));
      }
      ++top;
    }
    std::int64_t at = -1;
    if (offsets.is_array() && offset != offsets.end()) {
      at = (*offset).integer().value_or(-1);
      ++offset;
    }
    const bool of_prompt = at >= 0 && static_cast<std::size_t>(at) < prompt_characters;
    (of_prompt ? prompt : channel.steps).push_back(std::move(step));
  }
}

std::vector<ResponseStep> read_triples(JsonValue list, JsonValue top) {
  std::vector<ResponseStep> steps;
  auto others = top.begin();
  for (const JsonValue entry : list) {
    ResponseStep step;
    step.logprob = read_logprob(entry.at(0));
    step.token = read_token(entry.at(2), {}, entry.at(1));
    if (top.is_array() && others != top.end()) {
      for (const JsonValue other : *others) {
        step.alternatives.push_back({.token = read_token(other.at(2), {}, other.at(1)),
                                     .logprob = read_logprob(other.at(0))});
      }
      ++others;
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

std::vector<std::int64_t> read_ids(JsonValue list) {
  std::vector<std::int64_t> ids;
  for (const JsonValue item : list) {
    const auto id = item.integer();
    if (!id) return {};
    ids.push_back(*id);
  }
  return list.is_array() ? ids : std::vector<std::int64_t>{};
}

void adopt_ids(const std::vector<std::int64_t>& ids, ResponseChannel& channel) {
  if (ids.size() < channel.steps.size()) return;
  for (std::size_t i = 0; i < channel.steps.size(); ++i) {
    auto& id = channel.steps[i].token.id;
    if (!id) id = ids[i];
  }
}

std::string_view normalised_finish_reason(std::string_view sent) {
  struct Row {
    std::string_view sent;
    std::string_view meaning;
  };
  static constexpr Row kRows[] = {
      {"stop", "stop"},
      {"eos", "stop"},
      {"eos_token", "stop"},
      {"end_turn", "stop"},
      {"COMPLETE", "stop"},
      {"STOP", "stop"},
      {"stop_sequence", "stop"},
      {"STOP_SEQUENCE", "stop"},
      {"word", "stop"},
      {"completed", "stop"},
      {"pause_turn", "stop"},
      {"length", "length"},
      {"max_tokens", "length"},
      {"MAX_TOKENS", "length"},
      {"limit", "length"},
      {"model_length", "length"},
      {"max_output_tokens", "length"},
      {"model_context_window_exceeded", "length"},
      {"content_filter", "content_filter"},
      {"SAFETY", "content_filter"},
      {"RECITATION", "content_filter"},
      {"PROHIBITED_CONTENT", "content_filter"},
      {"BLOCKLIST", "content_filter"},
      {"guardrail_intervened", "content_filter"},
      {"content_filtered", "content_filter"},
      {"refusal", "content_filter"},
      {"tool_calls", "tool_calls"},
      {"function_call", "tool_calls"},
      {"tool_use", "tool_calls"},
      {"TOOL_CALL", "tool_calls"},
      {"error", "error"},
      {"ERROR", "error"},
      {"ERROR_TOXIC", "content_filter"},
      {"TIMEOUT", "error"},
      {"failed", "error"},
      {"insufficient_system_resource", "error"},
  };
  for (const Row& row : kRows) {
    if (row.sent == sent) return row.meaning;
  }
  return "";
}

}  // namespace driftscope
