// SPDX-License-Identifier: GPL-3.0-or-later
// The line above a plot: title, legend, and the figures of the selected step.
#pragma once

#include <qcustomplot.h>

#include <vector>

#include "ui/plots/step_plot.h"

namespace driftscope::ui {

class PlotHeader : public QCPLayoutElement {
 public:
  PlotHeader(QCustomPlot* plot, QString title);
  void set_theme(const Theme* theme) { m_theme = theme; }
  void set_legend(std::vector<LegendEntry> entries) { m_entries = std::move(entries); }
  void set_readout(QString text) { m_readout = std::move(text); }
  void set_title(QString title) { m_title = std::move(title); }
  void set_short_title(QString title) { m_short_title = std::move(title); }
  // Title and legend in words, whole, however narrow the plot is.
  [[nodiscard]] QString legend_text() const;
  [[nodiscard]] QSize minimumOuterSizeHint() const override;
  [[nodiscard]] QSize maximumOuterSizeHint() const override;

 protected:
  void applyDefaultAntialiasingHint(QCPPainter* painter) const override;
  void draw(QCPPainter* painter) override;

 private:
  // How much is shortened so that the legend fits.
  struct Form {
    bool short_title = false;
    bool short_texts = false;
  };
  [[nodiscard]] QString title_in(const Form& form) const;
  [[nodiscard]] static QString text_in(const Form& form, const LegendEntry& entry);
  [[nodiscard]] int width_of(const Form& form) const;
  [[nodiscard]] Form fitting_form(int room, int readout_width) const;
  void draw_legend(QCPPainter* painter, const Form& form, int x) const;
  void draw_mark(QCPPainter* painter, const LegendEntry& entry, QRectF box) const;
  [[nodiscard]] int mark_width(const LegendEntry& entry) const;
  QString m_title;
  QString m_short_title;
  QString m_readout;
  std::vector<LegendEntry> m_entries;
  const Theme* m_theme;
};

}  // namespace driftscope::ui
