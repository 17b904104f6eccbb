// SPDX-License-Identifier: Apache-2.0
// GPT-2's printable alphabet of bytes: byte-level vocabularies are written in it. The printable
// bytes of Latin-1 stand for themselves, the other 68 are U+0100 onwards in order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace driftscope {

[[nodiscard]] std::string byte_to_alphabet(std::uint8_t byte);  // UTF-8
// The bytes that a token written in the alphabet stands for; nothing where it has another
// character.
[[nodiscard]] std::optional<std::string> alphabet_to_bytes(std::string_view token);

}  // namespace driftscope
