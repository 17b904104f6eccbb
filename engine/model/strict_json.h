// SPDX-License-Identifier: Apache-2.0
// JSON of checkpoints, read strictly: RFC 8259 and nothing more, depth at most 64, no key
// twice in one object, no byte order mark, no NUL, nothing after the value.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "kernels/base/result.h"

namespace driftscope {

inline constexpr int kMaxJsonDepth = 64;

// `name` begins the message. Errors: malformed, with the byte offset.
[[nodiscard]] Result<nlohmann::json> parse_strict_json(std::string_view text,
                                                       std::string_view name);
[[nodiscard]] Result<nlohmann::json> read_strict_json(const std::filesystem::path& path,
                                                      std::size_t max_bytes);

// What nlohmann's parser accepts beyond the standard: a byte order mark, and a NUL taken as
// the end. Offset of such a byte with what it is; an empty string_view where there is none.
struct JsonTextFault {
  std::size_t offset = 0;
  std::string_view what;
};
[[nodiscard]] JsonTextFault find_json_text_fault(std::string_view text);

// "syntax error while parsing value - unexpected end of input" out of nlohmann's longer message.
[[nodiscard]] std::string short_json_reason(std::string_view library_message);

}  // namespace driftscope
