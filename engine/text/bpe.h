// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding of one word: the lowest-ranked merge first, the leftmost of equal ones.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/word_model.h"

namespace driftscope {

// (left id, right id) -> rank and merged id; open addressing, since encoding asks it once or
// twice per byte.
class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank = 0;
    std::int32_t merged = 0;
  };
  explicit MergeTable(std::size_t expected = 0);
  void insert(std::int32_t left, std::int32_t right, Merge merge);  // a later one replaces
  [[nodiscard]] const Merge* find(std::int32_t left, std::int32_t right) const;

 private:
  struct Slot {
    std::uint64_t key = kFree;
    Merge merge;
  };
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};
  [[nodiscard]] std::size_t slot_of(std::uint64_t key) const;
  void grow();
  std::vector<Slot> m_slots;
  std::size_t m_used = 0;
};

struct BpeModel final : WordModel {
  // Whole words, by their bytes: with byte-level models the bytes themselves, not the alphabet.
  StringMap<std::int32_t> vocabulary;
  MergeTable merges;
  bool byte_level = false;  // words start as single bytes, else as single characters
  std::array<std::int32_t, 256> byte_ids{};  // "<0x41>" with byte_fallback, -1 where absent
  bool byte_fallback = false;
  std::optional<std::int32_t> unknown;
  bool fuse_unknown = false;
  bool ignore_merges = false;  // a word that is a token as a whole is that token
  // Where no merge joins another character with this one, a word may be cut before it without
  // changing any id (SentencePiece's space marker); empty: no such character.
  std::string cut_before;

  [[nodiscard]] std::size_t part_end(std::string_view word, std::size_t begin) const override {
    return cut_before.empty() ? word.size() : end_before_marker(word, begin, cut_before);
  }
  // O(n log n).
  void encode_word(std::string_view word, std::vector<WordToken>& tokens) const override;
  [[nodiscard]] std::string_view kind() const override {
    return byte_level ? "byte-level BPE" : "SentencePiece BPE";
  }

 private:
  struct Symbol;
  void split_bytes(std::string_view word, std::vector<Symbol>& symbols) const;
  void split_characters(std::string_view word, std::vector<Symbol>& symbols) const;
  void merge_symbols(std::vector<Symbol>& symbols) const;
};

}  // namespace driftscope
