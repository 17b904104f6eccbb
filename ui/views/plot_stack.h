// SPDX-License-Identifier: GPL-3.0-or-later
// All plots of a catalogue above each other on one step axis: zoom, pan and the selected step are
// shared.
#pragma once

#include <QWidget>
#include <span>
#include <vector>

#include "ui/models/response_snapshot.h"
#include "ui/plots/plot_catalogue.h"

class QSplitter;

namespace driftscope::ui {

class PlotStack final : public QWidget {
  Q_OBJECT
 public:
  explicit PlotStack(QWidget* parent, std::span<const PlotInfo> catalogue = plot_catalogue());
  // Zoom and selection survive; a view that showed everything goes on showing everything.
  void set_comparison(const ComparisonPointer& comparison);
  // The same of two answers, for a stack of the response_plot_catalogue().
  void set_pair(const ResponsePairPointer& pair);
  void set_selected_step(std::int64_t step);
  void set_anchor_step(std::int64_t step);  // the second cursor; -1: none
  void show_all();
  void zoom(double factor);  // about the selected step, or the middle; below 1 is closer
  [[nodiscard]] const std::vector<StepPlot*>& plots() const { return m_plots; }
  [[nodiscard]] double range_lower() const { return m_lower; }
  [[nodiscard]] double range_upper() const { return m_upper; }

 signals:
  void step_selected(qint64 step);
  void anchor_selected(qint64 step);

 private:
  void set_range(double lower, double upper);
  [[nodiscard]] double full_upper() const;
  void place_axis_labels();
  void keep_range();
  std::span<const PlotInfo> m_catalogue;
  std::vector<StepPlot*> m_plots;
  ComparisonPointer m_comparison;
  std::int64_t m_columns = 0;  // of a pair
  QSplitter* m_splitter;
  std::int64_t m_selected = -1;
  double m_lower = -0.5;
  double m_upper = 0.5;
  bool m_shows_all = true;
};

}  // namespace driftscope::ui
