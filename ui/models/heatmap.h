// SPDX-License-Identifier: GPL-3.0-or-later
// Drift per place in the network and step, reduced so that a single hot cell always stays visible.
#pragma once

#include <QString>
#include <cstdint>
#include <vector>

#include "analysis/compare/comparison.h"

namespace driftscope::ui {

enum class TapQuantity { max_abs, rms, relative_rms, max_ulp };
[[nodiscard]] QString title_of(TapQuantity quantity);
[[nodiscard]] QString unit_of(TapQuantity quantity);

enum class CellKind : std::uint8_t { empty, zero, finite, non_finite };
struct HeatCell {
  CellKind kind = CellKind::empty;
  double value = 0.0;  // where finite
};
// The hotter of two: non-finite above finite, larger above smaller, zero above empty.
[[nodiscard]] HeatCell hotter(const HeatCell& x, const HeatCell& y);

class Heatmap {
 public:
  Heatmap() = default;
  Heatmap(const Comparison& comparison, TapQuantity quantity);
  [[nodiscard]] std::int64_t rows() const { return static_cast<std::int64_t>(m_labels.size()); }
  [[nodiscard]] std::int64_t steps() const { return m_steps; }
  // "embedding", "layer 3", "3 attn out", "final norm"; network order.
  [[nodiscard]] const QString& label(std::int64_t row) const {
    return m_labels[static_cast<std::size_t>(row)];
  }
  [[nodiscard]] HeatCell cell(std::int64_t row, std::int64_t step) const;
  // Max-pooled to at most `columns` by `row_count` cells, row-major. Every cell of the range is in
  // one.
  [[nodiscard]] std::vector<HeatCell> pooled(std::int64_t first, std::int64_t last,
                                             std::int64_t columns, std::int64_t row_count) const;
  // Position of a finite value on the colour ramp, 0 … 1: symlog with the smallest finite value as
  // its threshold. Equal for all zoom levels.
  [[nodiscard]] double shade(double value) const;
  [[nodiscard]] double smallest() const { return m_smallest; }
  [[nodiscard]] double largest() const { return m_largest; }

 private:
  void build_levels();
  [[nodiscard]] HeatCell row_range(std::int64_t row, std::int64_t first, std::int64_t last) const;
  std::int64_t m_steps = 0;
  std::vector<QString> m_labels;
  // m_levels[k][row * width_k + block]: blocks of 2^k steps.
  std::vector<std::vector<HeatCell>> m_levels;
  std::vector<std::int64_t> m_widths;
  double m_smallest = 0.0;
  double m_largest = 0.0;
};

[[nodiscard]] QString tap_label(const TapSpec& spec);

}  // namespace driftscope::ui
