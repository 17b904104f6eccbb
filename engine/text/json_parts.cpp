// SPDX-License-Identifier: Apache-2.0
#include "engine/text/json_parts.h"

#include <fmt/format.h>

#include "kernels/base/display_text.h"

namespace driftscope {

std::string part_type(const nlohmann::json& part) {
  if (!part.is_object()) return {};
  const auto found = part.find("type");
  return found != part.end() && found->is_string() ? found->get<std::string>() : std::string();
}

tl::unexpected<Error> unsupported_type(const nlohmann::json& part, std::string_view name,
                                       std::string_view supported) {
  const std::string type = part_type(part);
  return fail(ErrorKind::malformed,
              type.empty() ? fmt::format("{}: has no \"type\"; fix the tokenizer", name)
                           : fmt::format("{}: type \"{}\" is not supported; supported are {}", name,
                                         escape_for_display(type.substr(0, 100)), supported));
}

const nlohmann::json* sequence_items(const nlohmann::json& part, std::string_view key) {
  const auto found = part.find(key);
  return found != part.end() && found->is_array() ? &*found : nullptr;
}

Result<Pattern> read_pattern(const nlohmann::json& part, const std::string& name) {
  const auto pattern = part.find("pattern");
  if (pattern != part.end() && pattern->is_object() && pattern->size() == 1) {
    const auto entry = pattern->begin();
    const std::string& kind = entry.key();
    const nlohmann::json& text = entry.value();
    if (text.is_string() && !text.get_ref<const std::string&>().empty()) {
      if (kind == "String") return Pattern::plain(text.get<std::string>());
      if (kind == "Regex") return Pattern::regex(text.get<std::string>(), name);
    }
  }
  return fail(ErrorKind::malformed,
              fmt::format("{}: pattern must be {{\"String\": …}} or {{\"Regex\": …}}, not empty; "
                          "fix the tokenizer",
                          name));
}

}  // namespace driftscope
