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

// Digits after the point, of the value without its exponent: 3 for "-1.2e-2".
int decimals_of(std::string_view digits) {
  const std::size_t mark = std::min(digits.find_first_of("eE"), digits.size());
  const std::size_t point = digits.substr(0, mark).find('.');
  const auto after = point == std::string_view::npos ? 0 : static_cast<int>(mark - point - 1);
  if (mark == digits.size()) return after;
  std::string_view power = digits.substr(mark + 1);
  if (power.starts_with('+')) power.remove_prefix(1);
  int exponent = 0;
  (void)std::from_chars(power.data(), power.data() + power.size(), exponent);
  return std::clamp(after - exponent, 0, 400);
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
  if (others.is_object()) read_legacy_top(others, step.alternatives);
  for (const JsonValue item : others) {
    if (others.is_array() && item.is_object()) step.alternatives.push_back(read_alternative(item));
  }
  // llama.cpp before December 2024: the chosen token's probability is among the alternatives.
  if (step.logprob.state == LogprobState::missing) {
    for (const TokenAlternative& other : step.alternatives) {
      if (other.token.text == step.token.text) step.logprob = other.logprob;
    }
  }
  return step;
}

}  // namespace

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

std::optional<std::int64_t> integer_of(JsonValue value) {
  if (!value.is_text()) return value.integer();
  const std::string_view digits = value.raw();
  std::int64_t number = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = result.ec == std::errc{} && result.ptr == digits.data() + digits.size();
  return whole ? std::optional(number) : std::nullopt;
}

std::optional<double> number_of(JsonValue value) {
  const Logprob read = read_logprob(value);
  return read.usable() ? std::optional(read.value) : std::nullopt;
}

std::string_view logprob_state_name(LogprobState state) {
  constexpr std::string_view kNames[] = {"missing",        "null",    "number",
                                         "sentinel",       "clipped", "lowest_float",
                                         "minus_infinity", "nan",     "placeholder"};
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

void read_legacy_top(JsonValue entries, std::vector<TokenAlternative>& others) {
  for (auto it = entries.begin(); entries.is_object() && it != entries.end(); ++it) {
    const std::string key = it.key();
    TokenAlternative other{.token = {.text = key, .bytes = key, .id = id_in_text(key)},
                           .logprob = {}};
    if (other.token.id) other.token.bytes.clear();
    if (key.starts_with("bytes:")) {
      if (auto exact = escaped_bytes(std::string_view(key).substr(6)); exact) {
        other.token.bytes = std::move(*exact);
        other.token.bytes_given = true;
      }
    }
    const JsonValue value = *it;
    other.logprob = read_logprob(value.is_object() ? value["logprob"] : value);
    others.push_back(std::move(other));
  }
  if (!entries.is_array()) return;
  for (const JsonValue item : entries) {  // some servers list objects here
    if (item.is_object()) others.push_back(read_alternative(item));
  }
}

namespace {

// Walks a list that may be shorter than others.
class ListWalk {
 public:
  explicit ListWalk(JsonValue list)
      : m_at(list.begin()), m_left(list.is_array() ? list.size() : 0) {}
  JsonValue next() {
    if (m_left == 0) return {};
    --m_left;
    const JsonValue value = *m_at;
    ++m_at;
    return value;
  }

 private:
  JsonValue::Iterator m_at;
  std::size_t m_left;
};

}  // namespace

void read_legacy_arrays(JsonValue logprobs, ResponseChannel& channel) {
  const JsonValue tokens = logprobs["tokens"];
  const JsonValue values = logprobs["token_logprobs"];
  const JsonValue ids = logprobs["token_ids"];
  const JsonValue tops = logprobs["top_logprobs"];
  if (!tokens.is_array() && !ids.is_array()) return;
  channel.has_steps = true;
  ListWalk token(tokens);
  ListWalk value(values);
  ListWalk id(ids);
  ListWalk top(tops);
  const std::size_t count = std::max(tokens.size(), tokens.is_array() ? 0 : ids.size());
  for (std::size_t i = 0; i < count; ++i) {
    ResponseStep step;
    step.token = read_token(token.next(), {}, id.next());
    step.logprob = read_logprob(value.next());
    read_legacy_top(tops.is_object() && count == 1 ? tops : top.next(), step.alternatives);
    channel.steps.push_back(std::move(step));
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
  if (ids.size() != channel.steps.size() && ids.size() != channel.steps.size() + 1) return;
  for (std::size_t i = 0; i < channel.steps.size(); ++i) {
    auto& id = channel.steps[i].token.id;
    if (!id) id = ids[i];
  }
}

}  // namespace driftscope
