// SPDX-License-Identifier: Apache-2.0
// Reading one part of tokenizer.json: {"type": …, fields …}. Unknown fields are ignored, as the
// reference implementation does; a wrong type is an error with the path of the field.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "engine/model/config_fields.h"
#include "engine/text/pattern.h"

namespace driftscope {

// {"String": "…"} or {"Regex": "…"}.
[[nodiscard]] Result<Pattern> read_pattern(const nlohmann::json& part, const std::string& name);

// "{name}: type "X" is not supported; supported are …"
[[nodiscard]] tl::unexpected<Error> unsupported_type(const nlohmann::json& part,
                                                     std::string_view name,
                                                     std::string_view supported);

// The list under `key` of a Sequence; null where it is missing or no list.
[[nodiscard]] const nlohmann::json* sequence_items(const nlohmann::json& part,
                                                   std::string_view key);

[[nodiscard]] std::string part_type(const nlohmann::json& part);  // empty where there is none

}  // namespace driftscope
