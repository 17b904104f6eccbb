// SPDX-License-Identifier: Apache-2.0
// What the readers of vocabularies share: limits of ids, and messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer_file.h"

namespace driftscope {

inline constexpr std::int64_t kMaxTokenId = 2147483646;

// "{name}: {what}; fix the tokenizer"
[[nodiscard]] tl::unexpected<Error> malformed_part(const std::string& name, std::string_view what);
[[nodiscard]] std::string shown_token(std::string_view token);  // quoted, shortened, on one line

// Makes room for an id. Ids may have gaps (published vocabularies do), but not so many that a
// list by id would be out of proportion to the `known` tokens of the file.
[[nodiscard]] Result<void> make_room(const std::string& name, std::int64_t id, std::size_t known,
                                     std::vector<TokenEntry>& tokens);

}  // namespace driftscope
