// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/verdict_bar.h"

#include <QApplication>
#include <QClipboard>
#include <QEvent>
#include <QGridLayout>
#include <QLabel>
#include <QMenu>
#include <QToolButton>
#include <algorithm>

#include "ui/theme/theme.h"

namespace driftscope::ui {
namespace {

constexpr int kBesideBadge = 760;  // pixels from which the headline stands beside the badge

QLabel* make_label(QWidget* parent, const QString& name) {
  auto* label = new QLabel(parent);
  label->setAccessibleName(name);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  label->setWordWrap(true);
  label->setMinimumWidth(80);
  return label;
}

QToolButton* make_button(QWidget* parent, const QString& text, const QString& name) {
  auto* button = new QToolButton(parent);
  button->setText(text);
  button->setAccessibleName(name);
  button->setToolTip(name);
  return button;
}

}  // namespace

VerdictBar::VerdictBar(QWidget* parent)
    : QWidget(parent),
      m_tier(make_label(this, tr("Verdict tier"))),
      m_headline(make_label(this, tr("First divergence"))),
      m_prompt(make_label(this, tr("Prompt"))),
      m_reason(make_label(this, tr("Cause and reason"))),
      m_facts(make_label(this, tr("Figures of the divergence"))),
      m_copy(make_button(this, tr("Copy"), tr("Copy the verdict"))),
      m_go(make_button(this, tr("Go to step"), tr("Select the first divergence (D)"))) {
  setObjectName(QStringLiteral("verdict_bar"));
  setAutoFillBackground(true);
  setBackgroundRole(QPalette::Base);
  QFont large = text_font(11.5);
  large.setBold(true);
  m_headline->setFont(large);
  m_tier->setFont(large);
  m_tier->setWordWrap(false);
  m_tier->setAlignment(Qt::AlignCenter);
  m_tier->setContentsMargins(10, 4, 10, 4);
  m_facts->setTextFormat(Qt::RichText);
  m_prompt->setWordWrap(false);
  m_prompt->setTextFormat(Qt::PlainText);
  m_prompt->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
  m_prompt->setObjectName(QStringLiteral("verdict_prompt"));
  m_layout = new QGridLayout(this);
  m_layout->setContentsMargins(10, 6, 10, 6);
  m_layout->setHorizontalSpacing(12);
  m_layout->setVerticalSpacing(3);
  m_layout->addWidget(m_tier, 0, 0);
  m_layout->addWidget(m_headline, 0, 1);
  m_layout->addWidget(m_go, 0, 2);
  m_layout->addWidget(m_copy, 0, 3);
  m_layout->addWidget(m_prompt, 2, 0, 1, 4);
  m_layout->addWidget(m_reason, 3, 0, 1, 4);
  m_layout->addWidget(m_facts, 4, 0, 1, 4);
  m_layout->setColumnStretch(1, 1);
  auto* menu = new QMenu(m_copy);
  menu->addAction(tr("Copy as text"), this, &VerdictBar::copy_text);
  menu->addAction(tr("Copy as Markdown"), this, &VerdictBar::copy_markdown);
  m_copy->setMenu(menu);
  m_copy->setPopupMode(QToolButton::InstantPopup);
  connect(m_go, &QToolButton::clicked, this, &VerdictBar::divergence_requested);
  set_note(tr("Open a capture or start a run."));
}

void VerdictBar::set_note(const QString& note) {
  m_has_comparison = false;
  m_summary = {};
  m_summary.headline = note;
  show_summary();
}

void VerdictBar::set_comparison(const ComparisonPointer& comparison, bool live) {
  set_summary(verdict_summary(*comparison, live));
}

void VerdictBar::set_summary(const VerdictSummary& summary) {
  m_has_comparison = true;
  m_summary = summary;
  show_summary();
}

QString VerdictBar::facts_html() const {
  const QString muted = theme_of(palette()).muted.name();
  QStringList parts;
  for (const VerdictFact& fact : m_summary.facts) {
    parts << QStringLiteral("<span style='color:%1'>%2</span>&nbsp;<b>%3</b>")
                 .arg(muted, fact.label.toHtmlEscaped().replace(u' ', QStringLiteral("&nbsp;")),
                      fact.value.toHtmlEscaped().replace(u' ', QStringLiteral("&nbsp;")));
  }
  return parts.join(QStringLiteral(" &nbsp;&nbsp; "));
}

void VerdictBar::show_summary() {
  const Theme& theme = theme_of(palette());
  const QColor colour = m_summary.running        ? theme.selection
                        : m_summary.good         ? theme.good
                        : m_summary.inconclusive ? theme.warning
                                                 : theme.divergence;
  m_tier->setText(m_summary.tier);
  m_tier->setVisible(m_has_comparison);
  m_tier->setStyleSheet(QStringLiteral("color:%1; background:%2; border-radius:4px;")
                            .arg(theme.surface.name(), colour.name()));
  m_headline->setText(unbroken_quotes(m_summary.headline));
  show_prompt();
  QString reason = m_summary.reason;
  if (!m_summary.cause.isEmpty()) {
    reason =
        tr("<b>Cause: %1.</b> %2").arg(m_summary.cause.toHtmlEscaped(), reason.toHtmlEscaped());
    m_reason->setTextFormat(Qt::RichText);
  } else {
    m_reason->setTextFormat(Qt::PlainText);
  }
  m_reason->setText(reason);
  m_reason->setVisible(!reason.isEmpty());
  m_facts->setText(facts_html());
  m_facts->setVisible(!m_summary.facts.empty());
  QStringList tooltips;
  for (const VerdictFact& fact : m_summary.facts) {
    tooltips << QStringLiteral("%1: %2").arg(fact.label, fact.tooltip);
  }
  m_facts->setToolTip(tooltips.join(u'\n'));
  m_copy->setEnabled(m_has_comparison);
  place_headline();
  m_go->setVisible(m_has_comparison && !m_summary.cause.isEmpty());
  setAccessibleName(tr("Verdict"));
  setAccessibleDescription(to_text(m_summary));
}

void VerdictBar::show_prompt() {
  m_prompt->setVisible(!m_summary.prompt.isEmpty());
  if (m_summary.prompt.isEmpty()) return;
  const QString text = tr("Prompt %1").arg(m_summary.prompt);
  m_prompt->setText(
      m_prompt->fontMetrics().elidedText(text, Qt::ElideMiddle, std::max(80, width() - 24)));
  m_prompt->setToolTip(m_summary.prompt);
  m_prompt->setAccessibleDescription(m_summary.prompt);
}

void VerdictBar::place_headline() {
  const bool narrow = m_has_comparison && width() < kBesideBadge;
  if (narrow == m_narrow) return;
  m_narrow = narrow;
  m_layout->removeWidget(m_headline);
  if (narrow) {
    m_layout->addWidget(m_headline, 1, 0, 1, 4);
  } else {
    m_layout->addWidget(m_headline, 0, 1);
  }
}

void VerdictBar::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  place_headline();
  show_prompt();
}

void VerdictBar::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) show_summary();
}

void VerdictBar::copy_text() const { QApplication::clipboard()->setText(to_text(m_summary)); }
void VerdictBar::copy_markdown() const {
  QApplication::clipboard()->setText(to_markdown(m_summary));
}

}  // namespace driftscope::ui
