// SPDX-License-Identifier: Apache-2.0
// Takes fields out of a JSON object, remembering the first that is not as it should be. A missing
// field leaves the target as it is.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/capture/json_text.h"

namespace driftscope {

class JsonFields {
 public:
  JsonFields(const nlohmann::ordered_json& object, std::string_view where)
      : m_object(object), m_where(where) {
    if (!object.is_object()) m_problem = fmt::format("{}: not a JSON object", where);
  }
  JsonFields(nlohmann::ordered_json&& object, std::string_view where) = delete;
  [[nodiscard]] const nlohmann::ordered_json* find(std::string_view key) const {
    if (!m_object.is_object()) return nullptr;
    const auto found = m_object.find(std::string(key));
    return found == m_object.end() || found->is_null() ? nullptr : &*found;
  }
  // `convert` gives an optional; empty means that the value is of the wrong kind.
  template <class T, class Convert>
  void take(std::string_view key, T& target, Convert&& convert) {
    const nlohmann::ordered_json* value = find(key);
    if (value == nullptr) return;
    auto converted = convert(*value);
    if (converted) {
      target = std::move(*converted);
    } else {
      refuse(key);
    }
  }
  void integer(std::string_view key, std::int64_t& target) {
    take(key, target, [](const nlohmann::ordered_json& json) -> std::optional<std::int64_t> {
      if (!json.is_number_integer()) return std::nullopt;
      return json.get<std::int64_t>();
    });
  }
  void number(std::string_view key, double& target) { take(key, target, json_text::to_number); }
  void boolean(std::string_view key, bool& target) {
    take(key, target, [](const nlohmann::ordered_json& json) -> std::optional<bool> {
      if (!json.is_boolean()) return std::nullopt;
      return json.get<bool>();
    });
  }
  void bytes(std::string_view key, std::string& target) { take(key, target, json_text::to_bytes); }
  void token(std::string_view key, TokenId& target) { take(key, target, to_token); }
  void tokens(std::string_view key, std::vector<TokenId>& target) {
    take(key, target, json_text::to_tokens);
  }
  // A name from a table: `from_name` gives an optional value.
  template <class T, class FromName>
  void name(std::string_view key, T& target, FromName&& from_name) {
    take(key, target, [&from_name](const nlohmann::ordered_json& json) -> std::optional<T> {
      if (!json.is_string()) return std::nullopt;
      return from_name(json.get_ref<const std::string&>());
    });
  }
  void refuse(std::string_view key) {
    if (m_problem.empty())
      m_problem = fmt::format("{}: field \"{}\" has a wrong value", m_where, key);
  }
  [[nodiscard]] static std::optional<TokenId> to_token(const nlohmann::ordered_json& json) {
    auto one = json_text::to_tokens(nlohmann::ordered_json::array({json}));
    if (!one) return std::nullopt;
    return one->front();
  }
  [[nodiscard]] const std::string& problem() const { return m_problem; }
  [[nodiscard]] Result<void> result() const {
    if (m_problem.empty()) return {};
    return fail(ErrorKind::malformed, m_problem);
  }

 private:
  const nlohmann::ordered_json& m_object;
  std::string m_where;
  std::string m_problem;
};

}  // namespace driftscope
