// SPDX-License-Identifier: Apache-2.0
// Patterns of tokenizer.json: regular expressions in Oniguruma's Ruby syntax, run by PCRE2 with
// limits, or plain strings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.h"

namespace driftscope {

struct PatternMatch {
  std::size_t begin;
  std::size_t end;
};

class Pattern {
 public:
  // Errors: malformed; the message begins with `name`.
  [[nodiscard]] static Result<Pattern> regex(std::string_view expression, std::string_view name);
  [[nodiscard]] static Pattern plain(std::string text);  // not empty

  // All matches that do not overlap, left to right. `text` is valid UTF-8. Errors: malformed,
  // when the expression takes too many steps or too much memory on this text.
  [[nodiscard]] Result<std::vector<PatternMatch>> find_all(std::string_view text) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> m_compiled;  // null for plain text
  std::string m_source;
  std::string m_name;
};

// Which characters \p{L} and the like have.
enum class UnicodeTables : std::uint8_t {
  own,         // those of PCRE2
  with_added,  // also those of Unicode 15 and 16
};

// The same expression for PCRE2: \s, \w, \d and [:punct:] as Oniguruma defines them. Errors:
// constructs that PCRE2 would read in another sense.
[[nodiscard]] Result<std::string> translate_expression(std::string_view expression,
                                                       std::string_view name,
                                                       UnicodeTables tables = UnicodeTables::own);

}  // namespace driftscope
