// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/fact_panels.h"

#include <QHeaderView>
#include <QLabel>
#include <QVBoxLayout>

#include "ui/models/token_text.h"
#include "ui/views/table_view.h"

namespace driftscope::ui {
namespace {

QVBoxLayout* tight_layout(QWidget& panel) {
  auto* layout = new QVBoxLayout(&panel);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  return layout;
}

}  // namespace

FindingsPanel::FindingsPanel(QWidget* parent)
    : QWidget(parent), m_table(new TableView(m_model, 1, tr("Findings"), this)) {
  setObjectName(QStringLiteral("findings"));
  setAccessibleName(tr("Findings"));
  tight_layout(*this)->addWidget(m_table);
  m_table->verticalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
}

void FindingsPanel::set_comparison(const ComparisonPointer& comparison) {
  m_model.show(comparison);
}

DifferencesPanel::DifferencesPanel(QWidget* parent)
    : QWidget(parent),
      m_names(new QLabel(this)),
      m_table(new TableView(m_model, 0, tr("Settings that differ"), this)) {
  setObjectName(QStringLiteral("differences"));
  setAccessibleName(tr("Settings that differ"));
  m_names->setMargin(6);
  m_names->setWordWrap(true);
  m_names->setAccessibleName(tr("Models and configurations"));
  m_names->hide();
  QVBoxLayout* layout = tight_layout(*this);
  layout->addWidget(m_names);
  layout->addWidget(m_table);
  m_table->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  m_table->verticalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
}

void DifferencesPanel::set_comparison(const ComparisonPointer& comparison) {
  m_model.show(comparison);
  m_names->setVisible(comparison != nullptr);
  if (!comparison) return;
  const auto html = [](const std::string& text) { return escaped_text(text).toHtmlEscaped(); };
  QString text = tr("A: <b>%1</b> &nbsp; B: <b>%2</b><br>Model: %3")
                     .arg(html(comparison->config_a_name), html(comparison->config_b_name),
                          html(comparison->model_a));
  if (comparison->model_b != comparison->model_a) {
    text += tr("; B: %1").arg(html(comparison->model_b));
  }
  m_names->setText(text);
}

}  // namespace driftscope::ui
