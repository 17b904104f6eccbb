// SPDX-License-Identifier: Apache-2.0
// Pieces of the HTML page. Every text that comes from outside passes through escape().
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/compare/comparison.h"

namespace driftscope::html {

// For element content and quoted attributes; control characters are shown by name.
[[nodiscard]] std::string escape(std::string_view text);
// Four significant digits for reading; the exact figures are in the other formats.
[[nodiscard]] std::string figure(double value);
// The text of a token as shown: its piece, or "#id" where it is not known.
[[nodiscard]] std::string token_text(const Comparison& comparison,
                                     const std::optional<TokenId>& id);
[[nodiscard]] std::string base64(std::string_view bytes);

struct Series {
  std::string name;
  std::string css_class;       // "a" and "b" for the sides, "c" and "d" for others
  std::vector<double> values;  // one per step; NaN: nothing to draw
};
struct PlotOptions {
  std::string title;
  std::string unit;
  bool logarithmic = false;  // zeros and non-finite values go to rails of their own
  std::int64_t marked_step = -1;
};
// One plot over the step axis as inline SVG. Many steps are reduced to the extremes per pixel
// column.
[[nodiscard]] std::string line_plot(const std::vector<Series>& series, const PlotOptions& options);

// Taps over steps, relative_rms as colour; no cell hides a larger one that shares its pixels.
[[nodiscard]] std::string tap_heatmap(const Comparison& comparison);

// Both free lanes, token by token.
[[nodiscard]] std::string token_ribbons(const Comparison& comparison);
// Both rankings at one step, with ranks and differences.
[[nodiscard]] std::string ranking_table(const Comparison& comparison, const StepComparison& step);

[[nodiscard]] std::string_view style_sheet();

}  // namespace driftscope::html
