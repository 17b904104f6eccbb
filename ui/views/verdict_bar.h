// SPDX-License-Identifier: GPL-3.0-or-later
// The first thing to read: tier, where the runs part, why, and the figures.
#pragma once

#include <QWidget>

#include "ui/models/verdict_summary.h"

class QGridLayout;
class QLabel;
class QToolButton;

namespace driftscope::ui {

class VerdictBar final : public QWidget {
  Q_OBJECT
 public:
  explicit VerdictBar(QWidget* parent);
  // `live`: the run is going on, so there is no verdict yet.
  void set_comparison(const ComparisonPointer& comparison, bool live = false);
  void set_summary(const VerdictSummary& summary);
  // In place of a verdict while there is none.
  void set_note(const QString& note);
  [[nodiscard]] const VerdictSummary& summary() const { return m_summary; }
  void copy_text() const;
  void copy_markdown() const;

 signals:
  void divergence_requested();

 protected:
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void show_summary();
  void show_prompt();
  // The headline stands beside the badge where there is room, else below it.
  void place_headline();
  [[nodiscard]] QString facts_html() const;
  QLabel* m_tier;
  QLabel* m_headline;
  QLabel* m_prompt;
  QLabel* m_reason;
  QLabel* m_facts;
  QToolButton* m_copy;
  QToolButton* m_go;
  QGridLayout* m_layout = nullptr;
  bool m_narrow = false;
  VerdictSummary m_summary;
  bool m_has_comparison = false;
};

}  // namespace driftscope::ui
