// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/inspector.h"

#include <QHeaderView>
#include <QLabel>
#include <QVBoxLayout>

#include "ui/models/fitting_words.h"
#include "ui/models/navigation.h"
#include "ui/models/token_text.h"
#include "ui/views/table_view.h"

namespace driftscope::ui {
namespace {

QString heading_of(const Comparison& comparison, std::int64_t step) {
  const StepComparison* row = step_at(comparison, step);
  if (row == nullptr) return QStringLiteral("<b>Step %1</b>").arg(step);
  const QString a = quoted_token(comparison, row->token_a).toHtmlEscaped();
  QString text = QStringLiteral("<b>Step %1</b> &nbsp; A emits %2").arg(step).arg(a);
  if (is_import(comparison)) {  // nothing was fed to either side
    return text + (row->flipped ? QStringLiteral("; B %1").arg(
                                      quoted_token(comparison, row->choice_b).toHtmlEscaped())
                                : QStringLiteral("; B the same"));
  }
  text += row->flipped ? QStringLiteral("; B, fed A's tokens, would take %1")
                             .arg(quoted_token(comparison, row->choice_b).toHtmlEscaped())
                       : QStringLiteral("; B, fed A's tokens, agrees");
  if (row->token_b && *row->token_b != row->choice_b) {
    text += QStringLiteral("; on its own text B emits %1")
                .arg(quoted_token(comparison, *row->token_b).toHtmlEscaped());
  }
  return text;
}

constexpr int kMetricNameWidth = 190;  // pixels

void fill(QWidget& panel, std::initializer_list<QWidget*> widgets) {
  auto* layout = new QVBoxLayout(&panel);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  for (QWidget* widget : widgets) layout->addWidget(widget);
}

}  // namespace

TopKInspector::TopKInspector(QWidget* parent)
    : QWidget(parent),
      m_heading(new QLabel(this)),
      m_table(new TableView(m_model, TopKModel::token, tr("Best tokens of A and B"), this)) {
  setObjectName(QStringLiteral("inspector"));
  setAccessibleName(tr("Top-K inspector"));
  m_heading->setWordWrap(true);
  m_heading->setMargin(6);
  m_heading->setAccessibleName(tr("Selected step"));
  fill(*this, {m_heading, m_table});
}

void TopKInspector::show_step(const ComparisonPointer& comparison, std::int64_t step) {
  m_model.show(comparison, step);
  m_heading->setText(comparison && step >= 0 ? heading_of(*comparison, step) : QString());
  m_heading->setVisible(!m_heading->text().isEmpty());
}

QString TopKInspector::heading() const { return m_heading->text(); }

MetricPanel::MetricPanel(QWidget* parent)
    : QWidget(parent),
      m_table(new TableView(m_model, MetricTableModel::title, tr("Metrics"), this)) {
  setObjectName(QStringLiteral("metrics"));
  setAccessibleName(tr("Metrics of the selected step and the run"));
  // The name keeps its width, in two lines where it is long; the last columns scroll into view.
  m_table->horizontalHeader()->setSectionResizeMode(MetricTableModel::title,
                                                    QHeaderView::Interactive);
  m_table->horizontalHeader()->resizeSection(MetricTableModel::title, kMetricNameWidth);
  m_table->verticalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  fill(*this, {m_table});
}

void MetricPanel::show_step(const ComparisonPointer& comparison, std::int64_t step) {
  m_model.show(comparison, step);
}

}  // namespace driftscope::ui
