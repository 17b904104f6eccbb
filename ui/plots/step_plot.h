// SPDX-License-Identifier: GPL-3.0-or-later
// Base of every plot: one shared step axis with the same margins in all plots, the selected step,
// the first divergence, zoom and pan, drawing on screen and into a file.
#pragma once

#include <QColor>
#include <QString>
#include <QWidget>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "analysis/compare/comparison.h"
#include "ui/theme/theme.h"

class QCustomPlot;
class QCPItemStraightLine;
class QCPItemText;
class QCPPainter;

namespace driftscope::ui {

class PlotHeader;

enum class LegendMark { line, dashed_line, circle, square, diamond, triangle, ramp };
struct LegendEntry {
  LegendMark mark = LegendMark::line;
  QColor colour;
  QString text;
  QString short_text = {};  // for narrow plots; empty: the same
};

// The steps on view and the pixel columns they have.
struct StepView {
  std::int64_t first = 0;
  std::int64_t last = -1;  // inclusive
  std::int64_t columns = 1;
  double pixels_per_step = 1.0;
  int height = 1;  // pixels of the whole plot
};

class StepPlot : public QWidget {
  Q_OBJECT
 public:
  StepPlot(QString id, QString title, QWidget* parent);
  ~StepPlot() override;

  [[nodiscard]] const QString& id() const { return m_id; }
  [[nodiscard]] const QString& title() const { return m_title; }
  // The name of the value axis, as drawn.
  [[nodiscard]] QString value_axis() const;
  void set_comparison(ComparisonPointer comparison);
  [[nodiscard]] const ComparisonPointer& comparison() const { return m_comparison; }
  void set_selected_step(std::int64_t step);
  // The second cursor, for differences between two steps; -1: none.
  void set_anchor_step(std::int64_t step);
  [[nodiscard]] std::int64_t anchor_step() const { return m_anchor; }
  [[nodiscard]] std::int64_t selected_step() const { return m_selected; }
  // Limits in steps; step s covers s - 0.5 … s + 0.5. Emits nothing.
  void set_step_range(double lower, double upper);
  [[nodiscard]] double range_lower() const;
  [[nodiscard]] double range_upper() const;
  void set_theme(const Theme& theme);
  [[nodiscard]] const Theme& theme() const { return *m_theme; }
  // Numbers and name under the step axis: only the lowest of a stack needs them.
  void set_step_labels(bool visible);
  // Draws the plot into a rectangle at the painter's origin; needs no display.
  void draw_into(QCPPainter& painter, QSize size);
  // Left edge of the axis rectangle in widget pixels, after layout.
  [[nodiscard]] int axis_left() const;
  // The figures of one step, as shown in the header: "max 0.01, rms 0.002 logit".
  [[nodiscard]] virtual QString readout(std::int64_t step) const = 0;
  // All that the plot wants to say about what it shows, for tests and assistive tools.
  [[nodiscard]] virtual QString summary() const = 0;

 signals:
  void step_selected(qint64 step);
  void anchor_selected(qint64 step);
  void range_changed(double lower, double upper);

 protected:
  // A new comparison or theme: prepare everything that does not depend on the zoom.
  virtual void rebuild() = 0;
  // Hand the plot what is in view.
  virtual void refill(const StepView& view) = 0;
  // Why the plot is empty and what to do; empty text: there is something to show.
  [[nodiscard]] virtual QString empty_reason() const = 0;

  [[nodiscard]] QCustomPlot& plot() { return *m_plot; }
  void set_legend(std::vector<LegendEntry> entries);
  // For plots of something else than a Comparison: how many steps there are, and the step at which
  // the sides part. set_comparison() sets both.
  void set_extent(std::int64_t steps, std::optional<std::int64_t> parting);
  [[nodiscard]] std::int64_t step_total() const { return m_steps; }
  // What a step is called: under the axis, and in figures of one ("step 3: …").
  void set_step_words(const QString& axis, const QString& singular);
  // Another title, where that depends on what is shown; the first one stays the object's name.
  void set_title(const QString& title);
  // In place of the title where the legend does not fit beside it.
  void set_short_title(const QString& title);
  void update_now();
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void style_axes();
  void make_markers();
  void place_markers();
  [[nodiscard]] StepView view_for(QSize size) const;
  [[nodiscard]] std::int64_t step_at_pixel(double x) const;
  void on_range(double lower, double upper);
  void on_click(double x, bool second_cursor);
  void show_hover(QPoint position, QPoint global);

  QString m_id;
  QString m_title;
  const Theme* m_theme;
  ComparisonPointer m_comparison;
  std::int64_t m_steps = 0;
  std::optional<std::int64_t> m_parting;
  QString m_axis_words = QStringLiteral("step (generated token, from 0)");
  QString m_step_word = QStringLiteral("step");
  std::int64_t m_selected = -1;
  std::int64_t m_anchor = -1;
  bool m_setting_range = false;
  bool m_step_labels = true;
  QCustomPlot* m_plot;
  PlotHeader* m_header;
  QCPItemStraightLine* m_selection_line = nullptr;
  QCPItemStraightLine* m_anchor_line = nullptr;
  QCPItemStraightLine* m_divergence_line = nullptr;
  QCPItemText* m_empty_note = nullptr;
  int m_press_x = 0;
};

}  // namespace driftscope::ui
