// SPDX-License-Identifier: Apache-2.0
// Text of models, files and people, made safe to print on one line of a terminal.
#pragma once

#include <string>
#include <string_view>

namespace driftscope {

// Escapes what would move the cursor, hide or reorder text: \n \r \t and \\ by name; other
// control characters, line and paragraph separators, bidirectional controls, invisible
// characters and the byte order mark as \u{XXXX}; bytes that are not UTF-8 as \xNN.
// Everything else is kept. The result is valid UTF-8 and has no line break.
[[nodiscard]] std::string escape_for_display(std::string_view text);

}  // namespace driftscope
