// SPDX-License-Identifier: Apache-2.0
// Added tokens: texts that become one id wherever they stand, before the model sees the text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace driftscope {

struct AddedToken {
  std::int32_t id = 0;
  std::string content;
  bool special = false;
  bool normalized = false;   // matched in the normalised text
  bool single_word = false;  // only between characters that are not of a word
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
};

// A stretch of text: an added token, or ordinary text between.
struct AddedSplit {
  const AddedToken* token = nullptr;  // null: ordinary text
  std::size_t begin = 0;
  std::size_t end = 0;
};

inline constexpr std::size_t kMaxAddedTokenBytes = 4096;

// Finds the leftmost, then longest of a set of texts.
class AddedTokenMatcher {
 public:
  AddedTokenMatcher();
  // `text` is what is looked for (the content, normalised where the token is).
  void add(const AddedToken& token, std::string_view text);
  [[nodiscard]] bool empty() const { return m_tokens.empty(); }
  // Covers all of `text`. Special tokens stay ordinary text unless `parse_special`.
  [[nodiscard]] std::vector<AddedSplit> split(std::string_view text, bool parse_special) const;

 private:
  struct Found {
    const AddedToken* token;
    std::size_t end;
  };
  [[nodiscard]] std::optional<Found> longest_at(std::string_view text, std::size_t begin) const;
  std::vector<AddedToken> m_tokens;
  std::unordered_map<std::uint64_t, std::uint32_t> m_edges;  // (node, byte) -> node
  std::vector<std::int32_t> m_ends;                          // node -> position in m_tokens, or -1
  std::array<bool, 256> m_first_bytes{};
};

}  // namespace driftscope
