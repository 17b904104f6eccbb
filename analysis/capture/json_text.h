// SPDX-License-Identifier: Apache-2.0
// JSON as captures, events and documents use it: numbers in the shortest form that reads back to
// the same bits, non-finite ones as strings, bytes that are not UTF-8 in hexadecimal.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.h"
#include "kernels/base/types.h"

namespace driftscope::json_text {

// A number, or "NaN", "Infinity", "-Infinity" (dump() writes a non-finite double as such).
[[nodiscard]] std::optional<double> to_number(const nlohmann::ordered_json& json);

// A string if the bytes are UTF-8, else {"bytes": "0aff…"}.
[[nodiscard]] nlohmann::ordered_json from_bytes(std::string_view bytes);
[[nodiscard]] std::optional<std::string> to_bytes(const nlohmann::ordered_json& json);

[[nodiscard]] nlohmann::ordered_json from_tokens(const std::vector<TokenId>& tokens);
[[nodiscard]] std::optional<std::vector<TokenId>> to_tokens(const nlohmann::ordered_json& json);

// One line, or with `indent` spaces per level. Every double is printed by fmt.
[[nodiscard]] std::string dump(const nlohmann::ordered_json& json, int indent = 0);
// Refuses duplicate keys and a nesting deeper than 64. Errors: malformed, naming `where`.
[[nodiscard]] Result<nlohmann::ordered_json> parse(std::string_view text, std::string_view where);
// A text that holds JSON as that JSON; null where it is empty or does not parse.
[[nodiscard]] nlohmann::ordered_json embedded(std::string_view text);

}  // namespace driftscope::json_text
