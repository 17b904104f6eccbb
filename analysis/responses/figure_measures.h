// SPDX-License-Identifier: Apache-2.0
// What a column or row of reported figures measures, by the words of its name: a difference, an
// agreement, or something that says nothing of how far two runs are apart. Internal to
// analysis/responses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace driftscope {

enum class MeasureKind : std::uint8_t {
  unnamed,     // no word that is known
  difference,  // 0 where both sides are equal
  agreement,   // 1 or 100 where both sides are equal
  unrelated    // speed, memory, accuracy, a place, a count
};

struct FigureMeasure {
  MeasureKind kind = MeasureKind::unnamed;
  // "diff", "cosine"; false: "max", which may be of anything, or nothing known.
  bool certain = false;
  bool squared = false;      // grows with the square of the error: KL, mean square, cosine
  bool correlation = false;  // an agreement between -1 and 1
  bool place = false;        // unrelated only by words such as "step"
  bool percent = false;      // said to be of 100
  std::string words;         // those that are known, with a space between
};

[[nodiscard]] FigureMeasure measure_of(std::string_view name);
// Whether a word of a label belongs to the measure rather than to a side ("match", "pct").
[[nodiscard]] bool is_measure_word(std::string_view word);

}  // namespace driftscope
