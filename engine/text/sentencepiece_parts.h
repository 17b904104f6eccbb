// SPDX-License-Identifier: Apache-2.0
// What the two files that carry a SentencePiece model (tokenizer.model and GGUF) have in common:
// the kinds of pieces, and how text becomes pieces and pieces text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/text/tokenizer_file.h"

namespace driftscope {

enum class PieceType : std::uint8_t { normal, unknown, control, user_defined, unused, byte };

// Where a space is put before text that does not begin the sequence of pieces.
enum class SpacePrefix : std::uint8_t {
  none,
  every_segment,  // every stretch of text between special tokens
  first_segment,  // only at the beginning of the text
};

struct SentencePieceText {
  SpacePrefix prefix = SpacePrefix::every_segment;
  std::string charsmap = {};  // precompiled; empty: none
  bool remove_extra_whitespaces = false;
};

// Sets normalizer, pre-tokeniser and decoder. `name` begins messages.
[[nodiscard]] Result<void> set_sentencepiece_text(const SentencePieceText& text,
                                                  const std::string& name, TokenizerParts& parts);

// The models over pieces; all lists are by id and of the same length. Control, unknown and
// user-defined pieces are not what a word is spelt with: they are added tokens.
[[nodiscard]] std::unique_ptr<const WordModel> sentencepiece_bpe(
    std::span<const std::string> pieces, std::span<const float> scores,
    std::span<const PieceType> types, std::optional<std::int32_t> unknown);
[[nodiscard]] std::unique_ptr<const WordModel> sentencepiece_unigram(
    std::span<const std::string> pieces, std::span<const float> scores,
    std::span<const PieceType> types, std::optional<std::int32_t> unknown);

[[nodiscard]] std::string with_spaces(std::string_view piece);  // markers written as spaces

}  // namespace driftscope
