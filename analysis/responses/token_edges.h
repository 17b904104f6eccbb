// SPDX-License-Identifier: Apache-2.0
// Where tokens lie in the text of their answer when the bytes of some were lost. Internal to
// analysis/responses.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "analysis/import/response.h"

namespace driftscope {

// A place between two tokens, in bytes of the text: from `least` to `most`.
struct TokenEdge {
  std::size_t least = 0;
  std::size_t most = 0;
  [[nodiscard]] bool exact() const { return least == most; }
};

// Edge i lies before token i, and the last one behind all of them. A U+FFFD of lost bytes stands
// for one to four bytes beyond ASCII, a token without a text for up to four; the tokens whose bytes
// are known say where those end. There are fewer edges where the tokens do not make up the text
// (white space that the text lacks at its front counts as nothing): the missing ones are not known.
[[nodiscard]] std::vector<TokenEdge> token_edges(const std::vector<const TokenText*>& tokens,
                                                 std::string_view text);

// Of a text that is nothing but the tokens' bytes, U+FFFD as three of them.
[[nodiscard]] std::vector<TokenEdge> joined_edges(const std::vector<const TokenText*>& tokens);

}  // namespace driftscope
