// SPDX-License-Identifier: Apache-2.0
#include "engine/model/config_fields.h"

#include <fmt/format.h>

#include <cmath>

#include "kernels/base/display_text.h"

namespace driftscope {
namespace {
constexpr std::int64_t kMaxCount = 2147483647;
constexpr std::size_t kShownCharacters = 60;
}  // namespace

std::string show_value(const nlohmann::json& value) {
  // A container is not written out: it may be megabytes.
  if (value.is_object()) return "an object";
  if (value.is_array()) return fmt::format("a list of {}", value.size());
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return '"' + escape_for_display(std::string_view(text).substr(0, kShownCharacters)) + '"';
  }
  return value.dump();
}

ConfigFields::ConfigFields(const nlohmann::json& object, std::string name)
    : m_object(object), m_name(std::move(name)) {
  if (!object.is_object()) refuse(fmt::format("is {}, not an object", show_value(object)));
}

const nlohmann::json* ConfigFields::find(std::string_view key) const {
  if (!m_object.is_object()) return nullptr;
  const auto found = m_object.find(key);
  if (found == m_object.end() || found->is_null()) return nullptr;
  return &*found;
}

bool ConfigFields::has(std::string_view key) const { return find(key) != nullptr; }

bool ConfigFields::contains(std::string_view key) const {
  return m_object.is_object() && m_object.contains(key);
}

void ConfigFields::refuse(std::string_view what) {
  if (good()) m_error = fmt::format("{}: {}", m_name, what);
}

void ConfigFields::adopt(const ConfigFields& part) {
  if (good()) m_error = part.m_error;
}

void ConfigFields::refuse_type(std::string_view key, std::string_view expected) {
  const nlohmann::json* value = find(key);
  refuse(value == nullptr
             ? fmt::format("{} is missing; it must be {}", key, expected)
             : fmt::format("{} is {}; it must be {}", key, show_value(*value), expected));
}

tl::unexpected<Error> ConfigFields::failure() const { return fail(ErrorKind::malformed, m_error); }

std::optional<std::int64_t> integer_in(const nlohmann::json& value, std::int64_t highest) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(highest)) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (!value.is_number_integer()) return std::nullopt;
  const auto number = value.get<std::int64_t>();
  if (number < 0 || number > highest) return std::nullopt;
  return number;
}

std::optional<std::int64_t> ConfigFields::integer(std::string_view key) const {
  const nlohmann::json* value = find(key);
  return value == nullptr ? std::nullopt : integer_in(*value, kMaxCount);
}

std::int64_t ConfigFields::whole(std::string_view key, std::int64_t fallback) {
  if (!has(key)) return fallback;
  if (const auto number = integer(key)) return *number;
  refuse_type(key, "an integer from 0 to 2147483647");
  return fallback;
}

std::int64_t ConfigFields::count(std::string_view key) {
  const auto number = integer(key);
  if (number && *number >= 1) return *number;
  refuse_type(key, "an integer from 1 to 2147483647");
  return 1;
}

std::int64_t ConfigFields::count(std::string_view key, std::int64_t fallback) {
  return has(key) ? count(key) : fallback;
}

double ConfigFields::positive(std::string_view key) {
  const nlohmann::json* value = find(key);
  if (value != nullptr && value->is_number()) {
    const double number = value->get<double>();
    if (std::isfinite(number) && number > 0.0) return number;
  }
  refuse_type(key, "a number greater than 0");
  return 1.0;
}

double ConfigFields::positive(std::string_view key, double fallback) {
  return has(key) ? positive(key) : fallback;
}

bool ConfigFields::flag(std::string_view key, bool fallback) {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  refuse_type(key, "true or false");
  return fallback;
}

std::string ConfigFields::text(std::string_view key, std::string_view fallback) {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::string(fallback);
  if (value->is_string()) return value->get<std::string>();
  refuse_type(key, "a string");
  return std::string(fallback);
}

}  // namespace driftscope
