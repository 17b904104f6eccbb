// SPDX-License-Identifier: Apache-2.0
// Where Unicode's versions part. The implementation that defines tokenizer.json matches patterns
// with the tables of Unicode 16 (Oniguruma 6.9.10) and normalises with tables of Unicode 9
// (unicode-normalization-alignments 0.1.12); the libraries used here have Unicode 14. Ids must not
// depend on that, so the differences are written out.
#pragma once

#include <string>
#include <string_view>

namespace driftscope {

// Whether `text`, valid UTF-8, has a character with a category that Unicode 14 does not know.
[[nodiscard]] bool has_added_characters(std::string_view text);
// What Unicode 15 and 16 added to a general category ("Lu") or a group of them ("L"), as ranges
// for inside a character class; empty where nothing was.
[[nodiscard]] std::string characters_added_to(std::string_view category);

// Characters that stay as they are in every normal form, although later versions give them a
// combining class or a decomposition.
[[nodiscard]] bool is_inert_in_normal_forms(char32_t code_point);

// What StripAccents takes away: the marks of Unicode 9.
[[nodiscard]] bool is_accent(char32_t code_point);

}  // namespace driftscope
