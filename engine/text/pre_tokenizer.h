// SPDX-License-Identifier: Apache-2.0
// The pre_tokenizer of tokenizer.json: cuts text into words, which the model then encodes one
// by one.
#pragma once

#include <cstdint>
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/text/aligned_text.h"
#include "engine/text/pattern.h"

namespace driftscope {

// What becomes of the matches of a Split.
enum class SplitBehavior : std::uint8_t {
  removed,
  isolated,
  merged_with_previous,
  merged_with_next,
  contiguous,  // neighbouring matches together
};

struct TextRange {
  std::size_t begin;
  std::size_t end;
};
// Cuts [0, length) at the matches. `invert` swaps matches and what lies between.
[[nodiscard]] std::vector<TextRange> split_ranges(std::size_t length,
                                                  const std::vector<PatternMatch>& matches,
                                                  SplitBehavior behavior, bool invert);

// Rewritten text has to live somewhere; a deque keeps the addresses.
using TextArena = std::deque<AlignedText>;

class PreTokenizer {
 public:
  [[nodiscard]] static Result<PreTokenizer> read(const nlohmann::json& description,
                                                 const std::string& name);
  // Words in order, none empty. New text goes into `arena`.
  [[nodiscard]] Result<std::vector<TextPiece>> apply(TextPiece piece, TextArena& arena) const;

  // The words' bytes are to be encoded one by one, without writing them in the alphabet first.
  [[nodiscard]] bool ends_in_bytes() const { return m_ends_in_bytes; }
  // The vocabulary is written in the byte alphabet.
  [[nodiscard]] bool is_byte_level() const { return m_is_byte_level; }

 private:
  struct Step {
    enum class Kind : std::uint8_t {
      split,
      prefix_space,
      alphabet,  // writes bytes in the alphabet, for the steps that follow
      metaspace,
    };
    enum class Prepend : std::uint8_t { always, first, never };
    Kind kind = Kind::split;
    std::optional<Pattern> pattern = std::nullopt;
    SplitBehavior behavior = SplitBehavior::isolated;
    bool invert = false;
    std::string replacement = {};  // metaspace
    Prepend prepend = Prepend::always;
  };
  struct Reader;
  static Result<void> apply_step(const Step& step, TextPiece piece, TextArena& arena,
                                 std::vector<TextPiece>& words);
  static TextPiece with_metaspace(const Step& step, TextPiece piece, TextArena& arena);
  std::vector<Step> m_steps;
  bool m_ends_in_bytes = false;
  bool m_is_byte_level = false;
};

}  // namespace driftscope
