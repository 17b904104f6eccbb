// SPDX-License-Identifier: Apache-2.0
// Regular expressions of people's checks, run by PCRE2 with limits.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/base/result.h"

namespace driftscope {

enum class PatternOutcome : std::uint8_t {
  found,
  absent,
  not_text,   // the text is not UTF-8
  too_costly  // more backtracking than the limits allow: neither found nor absent
};

// PCRE2's syntax on Unicode characters, searched anywhere in the text; "$" matches at the very end
// only, "(?m)" and the like set other ways.
class TextPattern {
 public:
  // Errors: malformed, beginning with `where`.
  [[nodiscard]] static Result<TextPattern> compile(std::string_view expression,
                                                   std::string_view where);
  [[nodiscard]] PatternOutcome search(std::string_view text) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> m_compiled;
};

}  // namespace driftscope
