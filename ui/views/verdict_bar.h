// SPDX-License-Identifier: GPL-3.0-or-later
// The first thing to read: tier, where the runs part, why, and the figures.
#pragma once

#include <QWidget>

#include "ui/models/verdict_summary.h"

class QLabel;
class QToolButton;

namespace driftscope::ui {

class VerdictBar final : public QWidget {
  Q_OBJECT
 public:
  explicit VerdictBar(QWidget* parent);
  void set_comparison(const ComparisonPointer& comparison);
  // In place of a verdict while there is none.
  void set_note(const QString& note);
  [[nodiscard]] const VerdictSummary& summary() const { return m_summary; }
  void copy_text() const;
  void copy_markdown() const;

 signals:
  void divergence_requested();

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void show_summary();
  [[nodiscard]] QString facts_html() const;
  QLabel* m_tier;
  QLabel* m_headline;
  QLabel* m_reason;
  QLabel* m_facts;
  QToolButton* m_copy;
  QToolButton* m_go;
  VerdictSummary m_summary;
  bool m_has_comparison = false;
};

}  // namespace driftscope::ui
