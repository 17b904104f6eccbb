// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/population_panel.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QSplitter>
#include <QVBoxLayout>

#include "ui/models/token_text.h"
#include "ui/plots/population_plots.h"
#include "ui/views/table_view.h"

namespace driftscope::ui {

PopulationPanel::PopulationPanel(QWidget* parent)
    : QWidget(parent),
      m_sentence(new QLabel(this)),
      m_all(new QPushButton(tr("All prompts"), this)),
      m_save(new QPushButton(tr("Save figures …"), this)),
      m_shown(new QLabel(this)),
      m_plots(new PopulationPlots(this)),
      m_table(new TableView(m_model, PopulationModel::power, tr("Tests of every prompt"), this)) {
  setObjectName(QStringLiteral("populations"));
  setAccessibleName(tr("Populations"));
  m_sentence->setWordWrap(true);
  m_sentence->setMargin(6);
  m_sentence->setTextFormat(Qt::PlainText);
  m_sentence->setAccessibleName(tr("What the samples say"));
  m_shown->setAccessibleName(tr("Prompt of the left figure"));
  m_shown->setTextFormat(Qt::PlainText);
  m_shown->setForegroundRole(QPalette::PlaceholderText);
  m_all->setAccessibleName(tr("Show all prompts together in the left figure"));
  m_save->setObjectName(QStringLiteral("save_populations"));
  m_save->setAccessibleName(tr("Save both figures as PNG, SVG or PDF"));
  m_save->setToolTip(m_save->accessibleName());
  m_table->setObjectName(QStringLiteral("population_table"));
  m_table->setWordWrap(false);
  m_table->horizontalHeader()->setSectionResizeMode(PopulationModel::prompt,
                                                    QHeaderView::Interactive);
  m_table->horizontalHeader()->resizeSection(PopulationModel::prompt, 90);
  auto* row = new QHBoxLayout;
  row->setContentsMargins(6, 0, 6, 2);
  row->setSpacing(8);
  row->addWidget(m_all);
  row->addWidget(m_shown, 1);
  row->addWidget(m_save, 0, Qt::AlignRight);
  auto* splitter = new QSplitter(Qt::Vertical, this);
  splitter->addWidget(m_plots);
  splitter->addWidget(m_table);
  splitter->setSizes({260, 200});
  splitter->setChildrenCollapsible(false);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(m_sentence);
  layout->addLayout(row);
  layout->addWidget(splitter, 1);
  connect(m_table, &QTableView::clicked, this,
          [this](const QModelIndex& index) { show_prompt(index.row()); });
  connect(m_all, &QPushButton::clicked, this, [this] { show_prompt(-1); });
  connect(m_save, &QPushButton::clicked, this, &PopulationPanel::save_requested);
}

QString PopulationPanel::sentence() const { return m_sentence->text(); }

void PopulationPanel::set_population(const PopulationPointer& population) {
  m_population = population;
  m_model.show(population);
  m_sentence->setVisible(!population);  // then the bar above says it
  m_sentence->setText(population ? population_sentence(*population)
                                 : tr("Testing whether both sides answer alike …"));
  show_prompt(-1);
}

void PopulationPanel::show_prompt(int row) {
  m_row = row;
  m_save->setEnabled(m_population != nullptr);
  m_plots->show(m_population, row);
  const bool many = m_population && m_population->comparison.prompts.size() > 1;
  m_all->setVisible(many);
  m_shown->setVisible(many);
  if (!many) return;
  const auto& prompts = m_population->comparison.prompts;
  m_all->setEnabled(row >= 0);
  m_shown->setText(row < 0
                       ? tr("the left figure shows all prompts together; click one in the table")
                       : tr("the left figure shows prompt %1")
                             .arg(escaped_text(prompts[static_cast<std::size_t>(row)].prompt)));
}

}  // namespace driftscope::ui
