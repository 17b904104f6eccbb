// SPDX-License-Identifier: Apache-2.0
// The model of a tokenizer: turns one word into tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace driftscope {

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>{}(text);
  }
};
template <class Value>
using StringMap = std::unordered_map<std::string, Value, StringHash, std::equal_to<>>;

// A token of a word: bytes [begin, end) of the word.
struct WordToken {
  std::int32_t id;
  std::uint32_t begin;
  std::uint32_t end;
};

class WordModel {
 public:
  WordModel() = default;
  WordModel(const WordModel&) = delete;
  WordModel& operator=(const WordModel&) = delete;
  virtual ~WordModel() = default;

  // End of the part of `word` that begins at `begin` and can be encoded by itself without
  // changing any id.
  [[nodiscard]] virtual std::size_t part_end(std::string_view word, std::size_t begin) const {
    static_cast<void>(begin);
    return word.size();
  }
  // `word` is valid UTF-8 unless the model reads single bytes. Appends; near-linear in the
  // word's length.
  virtual void encode_word(std::string_view word, std::vector<WordToken>& tokens) const = 0;
  // For reports: "byte-level BPE", "SentencePiece BPE", "Unigram".
  [[nodiscard]] virtual std::string_view kind() const = 0;
};

// Where no token holds `marker` after another character, a word may be cut before every run of
// markers. Returns where the part that begins at `begin` ends.
[[nodiscard]] inline std::size_t end_before_marker(std::string_view word, std::size_t begin,
                                                   std::string_view marker) {
  std::size_t at = begin;
  while (word.substr(at).starts_with(marker)) at += marker.size();
  const std::size_t next = word.find(marker, at);
  return next == std::string_view::npos ? word.size() : next;
}

}  // namespace driftscope
