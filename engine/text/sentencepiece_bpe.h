// SPDX-License-Identifier: Apache-2.0
// SentencePiece's own BPE: neighbours merge when what they spell is a piece, the piece with the
// highest score first, the leftmost of equal ones. There is no list of merges.
#pragma once

#include <array>
#include <optional>

#include "engine/text/word_model.h"

namespace driftscope {

struct SentencePieceBpe final : WordModel {
  StringMap<std::int32_t> pieces;  // what merging may spell: normal and unused pieces
  std::vector<float> scores;       // by id, none NaN
  std::vector<bool> unused;        // by id: may be spelt on the way, is taken apart at the end
  std::array<std::int32_t, 256> byte_ids{};  // "<0x41>", -1 where absent
  bool byte_fallback = false;                // characters that are no piece become bytes
  std::optional<std::int32_t> unknown;       // without byte_fallback; runs become one token
  std::size_t longest_piece = 0;             // bytes
  // The space marker, where no piece has it after another character; else empty.
  std::string cut_before;

  // Sets longest_piece and cut_before from `pieces`.
  void index();
  [[nodiscard]] std::size_t part_end(std::string_view word, std::size_t begin) const override {
    return cut_before.empty() ? word.size() : end_before_marker(word, begin, cut_before);
  }
  // `word` is valid UTF-8. O(n log n).
  void encode_word(std::string_view word, std::vector<WordToken>& tokens) const override;
  [[nodiscard]] std::string_view kind() const override { return "SentencePiece BPE"; }

 private:
  struct Symbol;
  struct Merging;
  void emit(const Merging& merging, std::uint32_t begin, std::uint32_t end,
            std::vector<WordToken>& tokens) const;
  void emit_unknown(std::string_view word, std::uint32_t begin, std::uint32_t end,
                    std::vector<WordToken>& tokens) const;
};

// Whether `piece` has the space marker after another character.
[[nodiscard]] bool has_inner_marker(std::string_view piece);
inline constexpr std::string_view kSpaceMarker = "\xE2\x96\x81";

}  // namespace driftscope
