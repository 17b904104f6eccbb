// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace driftscope {

// With '=' at the end (RFC 4648, section 4).
[[nodiscard]] std::string to_base64(std::string_view bytes);
// Up to the first character that is none of the alphabet.
[[nodiscard]] std::string from_base64(std::string_view text);

}  // namespace driftscope
