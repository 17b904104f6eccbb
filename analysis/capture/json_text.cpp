// SPDX-License-Identifier: Apache-2.0
#include "analysis/capture/json_text.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "kernels/base/utf8.h"

namespace driftscope::json_text {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaximumDepth = 64;

void dump_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  out += '"';
}

// A text of a JSON tree may come from anywhere; what is not UTF-8 in it is replaced.
std::string valid_text(std::string_view text) {
  std::string valid;
  for (std::size_t position = 0; position < text.size();) {
    const Utf8Step step = decode_utf8(text, position);
    append_utf8(valid, step.code_point);
    position += step.length;
  }
  return valid;
}

void dump_double(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "\"NaN\"";
  } else if (std::isinf(value)) {
    out += value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  } else if (value == 0.0) {
    out += std::signbit(value) ? "-0.0" : "0";  // "-0" reads back as the integer 0
  } else {
    fmt::format_to(std::back_inserter(out), "{}", value);
  }
}

void new_line(std::string& out, int indent, int depth) {
  if (indent == 0) return;
  out += '\n';
  out.append(static_cast<std::size_t>(indent * depth), ' ');
}

void dump_value(std::string& out, const Json& json, int indent, int depth) {
  if (json.is_number_float()) {
    dump_double(out, json.get<double>());
  } else if (json.is_string()) {
    dump_string(out, valid_text(json.get_ref<const std::string&>()));
  } else if (json.is_structured() && !json.empty()) {
    out += json.is_array() ? '[' : '{';
    bool first = true;
    // Lists of numbers and short pairs stay on one line.
    const bool flat = json.is_array() && !json.front().is_object();
    for (const auto& [key, value] : json.items()) {
      if (!first) out += indent > 0 && flat ? ", " : ",";
      first = false;
      if (!flat) new_line(out, indent, depth + 1);
      if (json.is_object()) {
        dump_string(out, valid_text(key));
        out += indent > 0 ? ": " : ":";
      }
      dump_value(out, value, flat ? 0 : indent, depth + 1);
    }
    if (!flat) new_line(out, indent, depth);
    out += json.is_array() ? ']' : '}';
  } else {
    out += json.dump();
  }
}

// Watches nesting and repeated keys while nlohmann builds the tree.
class ParseGuard {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if (depth > kMaximumDepth) m_problem = fmt::format("nested deeper than {}", kMaximumDepth);
    if (event == Event::object_start) m_keys.emplace_back();
    if (event == Event::object_end) m_keys.pop_back();
    if (event == Event::key && !m_keys.back().insert(parsed.get<std::string>()).second) {
      m_problem = fmt::format("the key {} occurs twice", dump(parsed));
    }
    return true;
  }
  [[nodiscard]] const std::string& problem() const { return m_problem; }

 private:
  std::vector<std::set<std::string>> m_keys;
  std::string m_problem;
};

// nlohmann's parser is iterative, but what it builds is destroyed and dumped by recursion.
bool too_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaximumDepth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace

std::optional<double> to_number(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (!json.is_string()) return std::nullopt;
  const auto& text = json.get_ref<const std::string&>();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

Json from_bytes(std::string_view bytes) {
  if (find_invalid_utf8(bytes) == std::string_view::npos) return std::string(bytes);
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return Json{{"bytes", hex}};
}

std::optional<std::string> to_bytes(const Json& json) {
  if (json.is_string()) return json.get<std::string>();
  if (!json.is_object() || json.size() != 1 || !json.contains("bytes")) return std::nullopt;
  const Json& hex = json.front();
  if (!hex.is_string()) return std::nullopt;
  const auto& digits = hex.get_ref<const std::string&>();
  if (digits.size() % 2 != 0) return std::nullopt;
  const auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const int high = digit(digits[i]);
    const int low = digit(digits[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

Json from_tokens(const std::vector<TokenId>& tokens) {
  Json json = Json::array();
  for (const TokenId id : tokens) json.push_back(id.value);
  return json;
}

std::optional<std::vector<TokenId>> to_tokens(const Json& json) {
  if (!json.is_array()) return std::nullopt;
  std::vector<TokenId> tokens;
  for (const Json& id : json) {
    if (!id.is_number_integer()) return std::nullopt;
    const auto value = id.get<std::int64_t>();
    if (value < std::numeric_limits<std::int32_t>::min() ||
        value > std::numeric_limits<std::int32_t>::max()) {
      return std::nullopt;
    }
    tokens.push_back(TokenId{static_cast<std::int32_t>(value)});
  }
  return tokens;
}

std::string dump(const Json& json, int indent) {
  std::string out;
  dump_value(out, json, indent, 0);
  return out;
}

Result<Json> parse(std::string_view text, std::string_view where) {
  if (too_deep(text)) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: JSON nested deeper than {}", where, kMaximumDepth));
  }
  ParseGuard watch;
  try {
    Json json = Json::parse(text, [&watch](int depth, Json::parse_event_t event, Json& parsed) {
      return watch(depth, event, parsed);
    });
    if (!watch.problem().empty()) {
      return fail(ErrorKind::malformed, fmt::format("{}: JSON: {}", where, watch.problem()));
    }
    return json;
  } catch (const Json::parse_error& error) {
    return fail(ErrorKind::malformed, fmt::format("{}: not JSON (at byte {})", where, error.byte),
                error.what());
  } catch (const Json::exception& error) {
    return fail(ErrorKind::malformed, fmt::format("{}: not usable JSON", where), error.what());
  }
}

Json embedded(std::string_view text) {
  if (text.empty()) return nullptr;
  Result<Json> json = parse(text, "text");
  return json ? std::move(*json) : Json(nullptr);
}

}  // namespace driftscope::json_text
