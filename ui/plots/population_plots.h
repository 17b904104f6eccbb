// SPDX-License-Identifier: GPL-3.0-or-later
// Two populations as figures: where samples part, and how often answers agree, each with its 95%
// interval.
#pragma once

#include <QSize>
#include <QWidget>

#include "ui/models/response_population.h"
#include "ui/theme/theme.h"

class QCustomPlot;
class QCPPainter;

namespace driftscope::ui {

class PlotHeader;

class PopulationPlots final : public QWidget {
  Q_OBJECT
 public:
  explicit PopulationPlots(QWidget* parent);
  // `row`: one prompt of the comparison, -1: all together.
  void show(const PopulationPointer& population, int row);
  void set_theme(const Theme& theme);
  void draw_into(QCPPainter& painter, QSize size);
  // What both figures say, for tests and assistive tools.
  [[nodiscard]] QString summary() const;

 protected:
  void changeEvent(QEvent* event) override;

 private:
  struct Figure {
    QCustomPlot* plot = nullptr;
    PlotHeader* header = nullptr;
  };
  Figure make_figure(const QString& title);
  void style(const Figure& figure) const;
  void rebuild();
  void draw_curves();
  void add_curve(const PartedCurve& curve, const QColor& colour, Qt::PenStyle pen, double end);
  void draw_rates();
  void add_rate(const Share& share, double height, const QColor& colour, bool side_b);
  void describe();

  const Theme* m_theme;
  PopulationPointer m_population;
  int m_row = -1;
  PartedCurves m_curves;
  Figure m_parting;
  Figure m_rates;
};

}  // namespace driftscope::ui
