// SPDX-License-Identifier: Apache-2.0
// How near two answers are in content, without a model: figures that a reader can check.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace driftscope {

struct Similarity {
  // 1 minus the edit distance in characters (insert, delete, replace), divided by the longer
  // length; 1 for two empty texts. Empty: not known, as texts this long (beyond 65,000 characters
  // or so between their common ends) with so many edits (beyond 11,000) take too much work.
  std::optional<double> edit = 1.0;
  // Character n-gram F score, n up to 6, beta 2, white space left out (Popović 2015), in [0, 1].
  double chrf = 1.0;
  bool numbers_equal = true;  // the same numbers in the same order, "1,000" as 1000
  std::vector<std::string> numbers_a, numbers_b;
};
[[nodiscard]] Similarity compare_texts(std::string_view a, std::string_view b);

// Numbers in the order of the text, written canonically: no leading zeros, no grouping commas, no
// zeros at the end of a fraction.
[[nodiscard]] std::vector<std::string> numbers_in(std::string_view text);

}  // namespace driftscope
