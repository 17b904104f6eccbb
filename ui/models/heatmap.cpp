// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/heatmap.h"

#include <algorithm>
#include <cmath>

#include "ui/models/rail_scale.h"
#include "ui/models/series.h"

namespace driftscope::ui {
namespace {

const std::vector<double>& values_of(const TapDrift& tap, TapQuantity quantity) {
  switch (quantity) {
    case TapQuantity::max_abs:
      return tap.max_abs;
    case TapQuantity::rms:
      return tap.rms;
    case TapQuantity::relative_rms:
      return tap.relative_rms;
    case TapQuantity::max_ulp:
      return tap.max_ulp;
  }
  return tap.max_abs;
}

HeatCell cell_of(double value) {
  if (!std::isfinite(value)) return {.kind = CellKind::non_finite, .value = 0.0};
  if (value == 0.0) return {.kind = CellKind::zero, .value = 0.0};
  return {.kind = CellKind::finite, .value = std::abs(value)};
}

}  // namespace

QString title_of(TapQuantity quantity) {
  switch (quantity) {
    case TapQuantity::max_abs:
      return QStringLiteral("Largest difference");
    case TapQuantity::rms:
      return QStringLiteral("RMS difference");
    case TapQuantity::relative_rms:
      return QStringLiteral("Relative RMS difference");
    case TapQuantity::max_ulp:
      return QStringLiteral("Largest distance");
  }
  return {};
}

QString unit_of(TapQuantity quantity) {
  switch (quantity) {
    case TapQuantity::max_abs:
    case TapQuantity::rms:
      return QStringLiteral("activation units");
    case TapQuantity::relative_rms:
      return QStringLiteral("share of A's RMS");
    case TapQuantity::max_ulp:
      return QStringLiteral("ulp");
  }
  return {};
}

QString tap_label(const TapSpec& spec) {
  if (spec.operation == "embd") return QStringLiteral("embedding");
  if (spec.operation == "result_norm") return QStringLiteral("final norm");
  if (spec.operation == "l_out") return QStringLiteral("layer %1").arg(spec.layer);
  QString operation = QString::fromStdString(spec.operation);
  operation.replace(QLatin1Char('_'), QLatin1Char(' '));
  if (spec.layer < 0) return operation;
  return QStringLiteral("%1 %2").arg(spec.layer).arg(operation);
}

HeatCell hotter(const HeatCell& x, const HeatCell& y) {
  if (x.kind != y.kind) return x.kind > y.kind ? x : y;
  return x.value >= y.value ? x : y;
}

Heatmap::Heatmap(const Comparison& comparison, TapQuantity quantity) {
  for (const TapDrift& tap : comparison.taps) {
    m_steps = std::max(m_steps, static_cast<std::int64_t>(values_of(tap, quantity).size()));
    m_labels.push_back(tap_label(tap.spec));
  }
  std::vector<HeatCell> cells(static_cast<std::size_t>(rows() * m_steps));
  for (std::size_t row = 0; row < comparison.taps.size(); ++row) {
    const auto& values = values_of(comparison.taps[row], quantity);
    for (std::size_t step = 0; step < values.size(); ++step) {
      const HeatCell cell = cell_of(values[step]);
      cells[row * static_cast<std::size_t>(m_steps) + step] = cell;
      if (cell.kind != CellKind::finite) continue;
      m_largest = std::max(m_largest, cell.value);
      m_smallest = m_smallest == 0.0 ? cell.value : std::min(m_smallest, cell.value);
    }
  }
  m_levels.push_back(std::move(cells));
  m_widths.push_back(m_steps);
  build_levels();
}

void Heatmap::build_levels() {
  while (m_widths.back() > 1) {
    const std::int64_t width = m_widths.back();
    const std::int64_t next_width = (width + 1) / 2;
    std::vector<HeatCell> next(static_cast<std::size_t>(rows() * next_width));
    for (std::int64_t row = 0; row < rows(); ++row) {
      for (std::int64_t i = 0; i < width; ++i) {
        HeatCell& into = next[static_cast<std::size_t>(row * next_width + i / 2)];
        into = hotter(into, m_levels.back()[static_cast<std::size_t>(row * width + i)]);
      }
    }
    m_levels.push_back(std::move(next));
    m_widths.push_back(next_width);
  }
}

HeatCell Heatmap::cell(std::int64_t row, std::int64_t step) const {
  if (row < 0 || row >= rows() || step < 0 || step >= m_steps) return {};
  return m_levels.front()[static_cast<std::size_t>(row * m_steps + step)];
}

HeatCell Heatmap::row_range(std::int64_t row, std::int64_t first, std::int64_t last) const {
  HeatCell result;
  while (first <= last) {
    std::size_t level = 0;
    while (level + 1 < m_levels.size() && first % (std::int64_t{2} << level) == 0 &&
           first + (std::int64_t{2} << level) - 1 <= last) {
      ++level;
    }
    const std::int64_t index = row * m_widths[level] + (first >> level);
    result = hotter(result, m_levels[level][static_cast<std::size_t>(index)]);
    first += std::int64_t{1} << level;
  }
  return result;
}

std::vector<HeatCell> Heatmap::pooled(std::int64_t first, std::int64_t last, std::int64_t columns,
                                      std::int64_t row_count) const {
  std::vector<HeatCell> result(static_cast<std::size_t>(columns * row_count));
  for (std::int64_t r = 0; r < row_count; ++r) {
    const StepSpan rows_here = column_span(0, rows() - 1, row_count, r);
    for (std::int64_t c = 0; c < columns; ++c) {
      const StepSpan span = column_span(first, last, columns, c);
      HeatCell& into = result[static_cast<std::size_t>(r * columns + c)];
      for (std::int64_t row = rows_here.first; row <= rows_here.last; ++row) {
        into = hotter(into, row_range(row, span.first, span.last));
      }
    }
  }
  return result;
}

double Heatmap::shade(double value) const {
  if (m_largest <= 0.0) return 0.0;
  const double low = symlog(m_smallest, m_smallest);
  const double high = symlog(m_largest, m_smallest);
  if (high <= low) return 1.0;
  return std::clamp((symlog(value, m_smallest) - low) / (high - low), 0.0, 1.0);
}

}  // namespace driftscope::ui
