// SPDX-License-Identifier: Apache-2.0
#include "engine/config/knob_codec.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace driftscope::codec {

std::string to_text(double value) { return fmt::format("{}", value); }
std::string to_text(std::int64_t value) { return fmt::format("{}", value); }
std::string to_text(std::uint64_t value) { return fmt::format("{}", value); }
std::string to_text(bool value) { return value ? "true" : "false"; }

bool from_text_bool(std::string_view text, bool& value) {
  if (text == "true" || text == "on" || text == "1") {
    value = true;
    return true;
  }
  if (text == "false" || text == "off" || text == "0") {
    value = false;
    return true;
  }
  return false;
}

namespace {

nlohmann::json parse_array(std::string_view text) {
  auto json = nlohmann::json::parse(text, nullptr, false);
  return json.is_array() ? json : nlohmann::json(nlohmann::json::value_t::discarded);
}

}  // namespace

std::string to_text(const std::vector<std::string>& values) {
  return nlohmann::json(values).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}
std::string to_text(const std::vector<std::int32_t>& values) {
  return nlohmann::json(values).dump();
}

bool from_text_list(std::string_view text, std::vector<std::string>& values) {
  const auto json = parse_array(text);
  if (json.is_discarded()) return false;
  std::vector<std::string> read;
  for (const auto& entry : json) {
    if (!entry.is_string() || entry.get_ref<const std::string&>().empty()) return false;
    read.push_back(entry.get<std::string>());
  }
  values = std::move(read);
  return true;
}

bool from_text_list(std::string_view text, std::vector<std::int32_t>& values) {
  const auto json = parse_array(text);
  if (json.is_discarded()) return false;
  std::vector<std::int32_t> read;
  for (const auto& entry : json) {
    if (!entry.is_number_integer()) return false;
    const auto id = entry.get<std::int64_t>();
    if (id < 0 || id > std::numeric_limits<std::int32_t>::max()) return false;
    read.push_back(static_cast<std::int32_t>(id));
  }
  values = std::move(read);
  return true;
}

}  // namespace driftscope::codec
