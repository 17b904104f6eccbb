// SPDX-License-Identifier: Apache-2.0
// Unigram language model: of all ways to spell a word with pieces, the one whose scores (natural
// logarithms of probabilities) sum highest; the Viterbi algorithm of Kudo 2018, section 3.2.
#pragma once

#include <array>
#include <optional>

#include "engine/text/byte_trie.h"
#include "engine/text/word_model.h"

namespace driftscope {

struct UnigramModel final : WordModel {
  ByteTrie pieces;                // the pieces a word may be spelt with -> id
  std::vector<double> scores;     // by id, finite
  double unknown_score = 0;       // of a character that is no piece; below all others
  bool single_precision = false;  // sums are rounded to float, as SentencePiece itself does
  std::optional<std::int32_t> unknown;
  std::array<std::int32_t, 256> byte_ids{};  // "<0x41>", -1 where absent
  bool byte_fallback = false;                // unknown characters become bytes

  // Runs of unknown characters become one token. `word` is valid UTF-8. O(n · longest piece).
  void encode_word(std::string_view word, std::vector<WordToken>& tokens) const override;
  [[nodiscard]] std::string_view kind() const override { return "Unigram"; }

 private:
  struct Node;
  [[nodiscard]] std::vector<Node> best_paths(std::string_view word) const;
  void emit_unknown(std::string_view word, std::uint32_t begin, std::uint32_t end,
                    std::vector<WordToken>& tokens) const;
};

inline constexpr double kUnknownPenalty = 10.0;  // below the lowest score, as SentencePiece has it

}  // namespace driftscope
