// SPDX-License-Identifier: Apache-2.0
// SentencePiece's precompiled normalisation: a trie of strings and what they become. Layout: the
// trie's size in bytes (32-bit little endian), the trie (a double array as darts-clone writes it),
// then the replacements, each ended by a NUL.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/aligned_text.h"
#include "kernels/base/result.h"

namespace driftscope {

class CharsMap {
 public:
  // Errors: malformed; the message begins with `name`.
  [[nodiscard]] static Result<CharsMap> read(std::string_view bytes, const std::string& name);

  // As tokenizer.json's "Precompiled": whole grapheme clusters of less than 6 bytes, else single
  // characters, by the shortest key that they begin with.
  [[nodiscard]] AlignedText apply_to_graphemes(const AlignedText& text) const;
  // As SentencePiece: the longest key at every position.
  [[nodiscard]] AlignedText apply_longest(const AlignedText& text) const;

 private:
  struct Found {
    std::size_t length;  // bytes of the key
    std::string_view replacement;
  };
  enum class Which : std::uint8_t { shortest, longest };
  [[nodiscard]] std::optional<Found> find(std::string_view text, Which which) const;
  [[nodiscard]] std::optional<std::string_view> replacement_at(std::uint32_t offset) const;
  void append_characters(const AlignedText& text, std::size_t begin, std::size_t end,
                         AlignedText& target) const;
  std::shared_ptr<const std::vector<std::uint32_t>> m_units;
  std::shared_ptr<const std::string> m_replacements;
};

// RFC 4648 base64 with padding; nothing where it is not.
[[nodiscard]] std::optional<std::string> decode_base64(std::string_view text);

}  // namespace driftscope
