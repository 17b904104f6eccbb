// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/report/html_parts.h"
#include "kernels/plan/portable_math.h"

namespace driftscope::html {
namespace {

constexpr double kWidth = 1040, kHeight = 220;
constexpr double kLeft = 70, kRight = 1030, kTop = 28, kBottom = 182;  // of the drawing area
constexpr double kZeroRail = kBottom + 8;  // "= 0" of a logarithmic axis
constexpr double kOddRail = kTop - 6;      // infinities
constexpr std::size_t kColumns = static_cast<std::size_t>(kRight - kLeft);
constexpr double kLn10 = 2.302585092994045684;

double log10_of(double value) { return portable::log(value) / kLn10; }

// What can stand on the value axis, after the logarithm where there is one.
struct Axis {
  double low = 0.0;
  double high = 1.0;
  bool logarithmic = false;

  [[nodiscard]] bool shows(double value) const {
    return std::isfinite(value) && (!logarithmic || value > 0.0);
  }
  [[nodiscard]] double place(double value) const {
    const double scaled = logarithmic ? log10_of(value) : value;
    return kBottom - (scaled - low) / (high - low) * (kBottom - kTop);
  }
};

Axis axis_of(const std::vector<Series>& series, bool logarithmic) {
  Axis axis{.low = std::numeric_limits<double>::infinity(),
            .high = -std::numeric_limits<double>::infinity(),
            .logarithmic = logarithmic};
  for (const Series& one : series) {
    for (const double value : one.values) {
      if (!axis.shows(value)) continue;
      const double scaled = logarithmic ? log10_of(value) : value;
      axis.low = std::min(axis.low, scaled);
      axis.high = std::max(axis.high, scaled);
    }
  }
  if (!(axis.low <= axis.high)) return {.low = 0.0, .high = 1.0, .logarithmic = logarithmic};
  if (logarithmic) {
    axis.low = std::floor(axis.low);
    axis.high = std::ceil(axis.high);
  } else {
    axis.low = std::min(axis.low, 0.0);
  }
  if (axis.low == axis.high) axis.high = axis.low + 1.0;
  return axis;
}

double step_place(std::size_t step, std::size_t steps) {
  const double last = steps > 1 ? static_cast<double>(steps - 1) : 1.0;
  return kLeft + static_cast<double>(step) / last * (kRight - kLeft);
}

// The line of one series: all steps, or the smallest and largest value of each pixel column.
std::string polyline(const Series& series, const Axis& axis) {
  std::string path;
  bool pen_down = false;
  const std::size_t steps = series.values.size();
  const std::size_t bucket = std::max<std::size_t>(1, (steps + kColumns - 1) / kColumns);
  const auto put = [&](std::size_t step) {
    const double x = step_place(step, steps);
    const double y = axis.place(series.values[step]);
    // The little stroke shows a step whose neighbours are not drawn.
    fmt::format_to(std::back_inserter(path),
                   fmt::runtime(pen_down ? "L{:.1f} {:.1f}" : "M{:.1f} {:.1f}h0.01"), x, y);
    pen_down = true;
  };
  for (std::size_t first = 0; first < steps; first += bucket) {
    std::size_t low = steps;
    std::size_t high = steps;
    for (std::size_t step = first; step < std::min(first + bucket, steps); ++step) {
      if (!axis.shows(series.values[step])) continue;
      if (low == steps || series.values[step] < series.values[low]) low = step;
      if (high == steps || series.values[step] > series.values[high]) high = step;
    }
    if (low == steps) {
      pen_down = false;  // a gap: nothing is drawn across what is not known
      continue;
    }
    put(std::min(low, high));
    if (low != high) put(std::max(low, high));
  }
  return path.empty() ? "" : fmt::format("<path class=\"{}\" d=\"{}\"/>\n", series.css_class, path);
}

// Zeros on a logarithmic axis and infinities on any: one mark per pixel column.
std::string rails(const Series& series, bool logarithmic) {
  std::string html;
  double last_zero = -1, last_odd = -1;
  const auto mark = [&](double& last, double x, double y, std::string_view css_class) {
    if (last >= 0 && x - last < 1.0) return;
    last = x;
    html += fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"2\" height=\"4\"/>",
                        css_class, x - 1, y - 2);
  };
  for (std::size_t step = 0; step < series.values.size(); ++step) {
    const double value = series.values[step];
    const double x = step_place(step, series.values.size());
    if (std::isinf(value)) mark(last_odd, x, kOddRail, "odd");
    if (logarithmic && value <= 0.0) mark(last_zero, x, kZeroRail, "rail " + series.css_class);
  }
  return html + "\n";
}

std::string frame(const Axis& axis, const PlotOptions& options, std::size_t steps) {
  std::string html = fmt::format(
      "<text class=\"title\" x=\"{}\" y=\"14\">{}</text>"
      "<path class=\"axis\" d=\"M{} {}V{}H{}\"/>",
      kLeft, escape(options.title), kLeft, kTop, kBottom, kRight);
  const auto label = [&](double y, const std::string& text) {
    html += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>", kLeft - 6,
                        y + 4, text);
  };
  if (axis.logarithmic) {
    const double stride = std::max(1.0, std::ceil((axis.high - axis.low) / 5.0));
    for (double decade = axis.low; decade <= axis.high; decade += stride) {
      const double y = kBottom - (decade - axis.low) / (axis.high - axis.low) * (kBottom - kTop);
      label(y, fmt::format("1e{}", static_cast<int>(decade)));
    }
    label(kZeroRail, "= 0");
  } else {
    for (int i = 0; i <= 4; ++i) {
      const double value = axis.low + (axis.high - axis.low) * i / 4.0;
      label(axis.place(value), fmt::format("{:.3g}", value));
    }
  }
  const std::size_t marks = std::min<std::size_t>(steps, 5);
  for (std::size_t i = 0; i < marks; ++i) {
    const std::size_t step = marks == 1 ? 0 : (steps - 1) * i / (marks - 1);
    html += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                        step_place(step, steps), kBottom + 28, step);
  }
  return html + fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">step{}</text>\n", kRight,
                            14, options.unit.empty() ? "" : " · " + escape(options.unit));
}

std::string legend(const std::vector<Series>& series, double x) {
  std::string html;
  for (const Series& one : series) {
    html += fmt::format("<text class=\"{}\" x=\"{:.0f}\" y=\"14\">{}</text>", one.css_class, x,
                        escape(one.name));
    x += 14 + 7.0 * static_cast<double>(one.name.size());
  }
  return html;
}

std::string open_svg(double height, std::string_view title) {
  return fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" "
      "xmlns=\"http://www.w3.org/2000/svg\">\n",
      kWidth, height, escape(title));
}

}  // namespace

std::string line_plot(const std::vector<Series>& series, const PlotOptions& options) {
  const Axis axis = axis_of(series, options.logarithmic);
  std::size_t steps = 0;
  for (const Series& one : series) steps = std::max(steps, one.values.size());
  std::string html = open_svg(kHeight, options.title);
  html += frame(axis, options, steps);
  html += legend(series, kLeft + 20 + 8.0 * static_cast<double>(options.title.size()));
  for (const Series& one : series) {
    html += polyline(one, axis);
    html += rails(one, options.logarithmic);
  }
  if (options.marked_step >= 0 && static_cast<std::size_t>(options.marked_step) < steps) {
    html += fmt::format("<path class=\"mark\" d=\"M{:.1f} {}V{}\"/>",
                        step_place(static_cast<std::size_t>(options.marked_step), steps), kTop,
                        kBottom);
  }
  return html + "</svg>\n";
}

std::string tap_heatmap(const Comparison& comparison) {
  constexpr double kRowHeight = 9;
  constexpr double kDecades = 8;  // 1e-8 … 1 of relative difference
  const std::size_t steps = comparison.steps.size();
  if (comparison.taps.empty() || steps == 0) return "";
  const std::size_t columns = std::min(steps, kColumns / 2);
  const double cell = (kRight - kLeft) / static_cast<double>(columns);
  std::string html =
      open_svg(kTop + kRowHeight * static_cast<double>(comparison.taps.size()) + 8, "Taps");
  html += fmt::format(
      "<text class=\"title\" x=\"{}\" y=\"14\">Relative difference of each tap (deeper: larger, "
      "from 1e-8 to 1; empty: 0)</text>\n",
      kLeft);
  for (std::size_t row = 0; row < comparison.taps.size(); ++row) {
    const TapDrift& tap = comparison.taps[row];
    const double y = kTop + kRowHeight * static_cast<double>(row);
    html += fmt::format(
        "<text x=\"{}\" y=\"{:.0f}\" text-anchor=\"end\" style=\"font-size:8px\">"
        "{} {}</text>",
        kLeft - 6, y + 7, tap.spec.layer, escape(tap.spec.operation.substr(0, 12)));
    for (std::size_t column = 0; column < columns; ++column) {
      const std::size_t first = column * steps / columns;
      const std::size_t end = std::max(first + 1, (column + 1) * steps / columns);
      double largest = 0.0;
      bool odd = false;
      for (std::size_t step = first; step < std::min(end, tap.relative_rms.size()); ++step) {
        const double value = tap.relative_rms[step];
        odd = odd || !std::isfinite(value);
        largest = std::max(largest, std::isfinite(value) ? value : 0.0);
      }
      if (largest == 0.0 && !odd) continue;
      const double depth = odd ? 1.0 : std::clamp(1.0 + log10_of(largest) / kDecades, 0.08, 1.0);
      html += fmt::format(
          "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"8\" "
          "fill-opacity=\"{:.2f}\"/>",
          odd ? "odd" : "cell", kLeft + cell * static_cast<double>(column), y, cell, depth);
    }
    html += '\n';
  }
  return html + "</svg>\n";
}

}  // namespace driftscope::html
