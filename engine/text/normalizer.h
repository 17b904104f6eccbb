// SPDX-License-Identifier: Apache-2.0
// The normalizer of tokenizer.json: a list of steps, each rewriting the text.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/text/aligned_text.h"
#include "engine/text/charsmap.h"
#include "engine/text/pattern.h"

namespace driftscope {

enum class UnicodeForm : std::uint8_t { nfc, nfd, nfkc, nfkd };

class Normalizer {
 public:
  // `description` may be null (no normalizer). `name` begins the messages.
  [[nodiscard]] static Result<Normalizer> read(const nlohmann::json& description,
                                               const std::string& name);
  // SentencePiece's normalisation, before spaces are escaped: the charsmap (nothing where it is
  // empty), then white space. Errors: malformed.
  [[nodiscard]] static Result<Normalizer> sentencepiece(std::string_view charsmap,
                                                        bool remove_extra_whitespaces,
                                                        const std::string& name);
  // Does what `next` does after what this one does.
  void append(Normalizer next);
  [[nodiscard]] bool changes_nothing() const { return m_steps.empty(); }
  [[nodiscard]] Result<AlignedText> apply(AlignedText text) const;

 private:
  struct Step {
    enum class Kind : std::uint8_t {
      prepend,
      replace,
      unicode_form,
      lowercase,
      strip,
      strip_accents,
      charsmap,          // tokenizer.json's Precompiled
      charsmap_longest,  // SentencePiece's own
      collapse_spaces,   // runs of U+0020 become one, none at the ends
      nmt,
    };
    Kind kind;
    std::string content = {};                       // prepend, replace
    std::optional<Pattern> pattern = std::nullopt;  // replace
    UnicodeForm form = UnicodeForm::nfc;
    bool left = false;   // strip
    bool right = false;  // strip
    std::optional<CharsMap> charsmap = std::nullopt;
  };
  struct Reader;
  static Result<AlignedText> apply_step(const Step& step, AlignedText text);
  std::vector<Step> m_steps;
};

// NFC, NFD, NFKC and NFKD with alignment per character.
[[nodiscard]] AlignedText to_unicode_form(AlignedText text, UnicodeForm form);
[[nodiscard]] AlignedText to_lowercase(AlignedText text);
[[nodiscard]] AlignedText strip_accents(AlignedText text);
[[nodiscard]] AlignedText collapse_spaces(AlignedText text);
[[nodiscard]] AlignedText nmt_clean(AlignedText text);  // control characters and odd spaces
[[nodiscard]] AlignedText strip_white_space(AlignedText text, bool left, bool right);
[[nodiscard]] bool is_white_space(char32_t code_point);  // Unicode White_Space

}  // namespace driftscope
