// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/pair_matrix_view.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <array>

#include "ui/models/response_set_models.h"
#include "ui/models/response_verdict.h"
#include "ui/models/token_text.h"
#include "ui/theme/theme.h"

namespace driftscope::ui {
namespace {

constexpr int kNumberRoom = 30;  // row and column numbers
constexpr int kLegendLine = 18;
constexpr int kLargestCell = 34;
constexpr int kSmallestForMarks = 13;
constexpr std::array kTiers{Tier::bitwise,  Tier::tolerance, Tier::token,
                            Tier::semantic, Tier::different, Tier::inconclusive};

// Of answers to other questions.
QColor unrelated_colour(const Theme& theme) { return mix(theme.surface, theme.muted, 0.45); }

}  // namespace

QColor tier_colour(const Theme& theme, Tier tier) {
  switch (tier) {
    case Tier::bitwise:
      return theme.good;
    case Tier::tolerance:
      return mix(theme.good, theme.series_three, 0.7);
    case Tier::token:
      return theme.selection;
    case Tier::semantic:
      return theme.series_two;
    case Tier::different:
      return theme.divergence;
    case Tier::inconclusive:
      return theme.warning;
  }
  return theme.muted;
}

PairMatrixView::PairMatrixView(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("pair_matrix"));
  setAccessibleName(tr("Matrix of pairs"));
  setFocusPolicy(Qt::StrongFocus);
  setAutoFillBackground(true);
  setBackgroundRole(QPalette::Base);
  describe();
}

QSize PairMatrixView::sizeHint() const { return {360, 300}; }

void PairMatrixView::set_survey(const PairSurveyPointer& survey) {
  m_survey = survey;
  describe();
  update();
}

void PairMatrixView::set_choice(AnswerChoice choice) {
  m_choice = choice;
  describe();
  update();
}

void PairMatrixView::describe() {
  const bool shown = m_survey && m_survey->shown > 0;
  setAccessibleDescription(shown ? survey_text(*m_survey) : tr("No matrix"));
}

PairMatrixView::Grid PairMatrixView::grid() const {
  const auto count = static_cast<int>(m_survey ? std::max<std::size_t>(1, m_survey->shown) : 1);
  const int room_x = width() - kNumberRoom - 6;
  const int room_y = height() - kNumberRoom - legend_height();
  const int cell = std::clamp(std::min(room_x, room_y) / count, 3, kLargestCell);
  return {.left = kNumberRoom, .top = kNumberRoom - 8, .cell = cell};
}

QPoint PairMatrixView::cell_centre(std::size_t i, std::size_t j) const {
  const Grid g = grid();
  return {g.left + static_cast<int>(j) * g.cell + g.cell / 2,
          g.top + static_cast<int>(i) * g.cell + g.cell / 2};
}

std::optional<AnswerChoice> PairMatrixView::pair_at(QPoint position) const {
  if (!m_survey || m_survey->shown == 0) return std::nullopt;
  const Grid g = grid();
  const int x = position.x() - g.left;
  const int y = position.y() - g.top;
  const int limit = g.cell * static_cast<int>(m_survey->shown);
  if (x < 0 || y < 0 || x >= limit || y >= limit) return std::nullopt;
  const AnswerChoice choice{static_cast<std::size_t>(y / g.cell),
                            static_cast<std::size_t>(x / g.cell)};
  if (choice.a == choice.b) return std::nullopt;
  return choice;
}

QString PairMatrixView::pair_text(AnswerChoice choice) const {
  const PairOutcome* outcome = m_survey->at(choice.a, choice.b);
  if (outcome == nullptr) return {};
  if (outcome->other_questions) {
    return tr("A %1\nB %2\n%3")
        .arg(m_survey->files->label(choice.a), m_survey->files->label(choice.b),
             other_questions_text(*m_survey->files, choice));
  }
  const QStringList& names = m_survey->files->names;
  QString text =
      tr("A %1\nB %2\n%3: %4")
          .arg(names[static_cast<qsizetype>(choice.a)], names[static_cast<qsizetype>(choice.b)],
               tier_name(outcome->tier), tier_meaning(outcome->tier));
  if (outcome->step >= 0) text += tr("\nparts at token %1").arg(outcome->step);
  if (outcome->byte) text += tr("\nparts at byte %1 of the text").arg(*outcome->byte);
  if (outcome->cause) text += tr(" (%1)").arg(cause_name(*outcome->cause));
  if (outcome->max_abs) {
    text += tr("\nlargest logprob difference %1").arg(short_number(*outcome->max_abs, 3));
  }
  return text;
}

void PairMatrixView::mousePressEvent(QMouseEvent* event) {
  if (const auto choice = pair_at(event->position().toPoint())) emit pair_chosen(*choice);
}

void PairMatrixView::keyPressEvent(QKeyEvent* event) {
  if (!m_survey || !m_choice || m_survey->shown < 2) return QWidget::keyPressEvent(event);
  auto a = static_cast<std::ptrdiff_t>(m_choice->a);
  auto b = static_cast<std::ptrdiff_t>(m_choice->b);
  const auto last = static_cast<std::ptrdiff_t>(m_survey->shown) - 1;
  const auto step = [&](std::ptrdiff_t& own, std::ptrdiff_t other, std::ptrdiff_t by) {
    std::ptrdiff_t next = own + by;
    if (next == other) next += by;
    if (next >= 0 && next <= last) own = next;
  };
  switch (event->key()) {
    case Qt::Key_Up:
      step(a, b, -1);
      break;
    case Qt::Key_Down:
      step(a, b, 1);
      break;
    case Qt::Key_Left:
      step(b, a, -1);
      break;
    case Qt::Key_Right:
      step(b, a, 1);
      break;
    default:
      return QWidget::keyPressEvent(event);
  }
  emit pair_chosen({static_cast<std::size_t>(a), static_cast<std::size_t>(b)});
}

bool PairMatrixView::event(QEvent* event) {
  // The arrows belong to the cells while the matrix has the focus, not to the window's menu.
  if (event->type() == QEvent::ShortcutOverride) {
    const int key = static_cast<QKeyEvent*>(event)->key();
    if (key == Qt::Key_Left || key == Qt::Key_Right || key == Qt::Key_Up || key == Qt::Key_Down) {
      event->accept();
      return true;
    }
  }
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    if (const auto choice = pair_at(help->pos())) {
      QToolTip::showText(help->globalPos(), pair_text(*choice), this);
    } else {
      QToolTip::hideText();
    }
    return true;
  }
  return QWidget::event(event);
}

void PairMatrixView::draw_cells(QPainter& painter, const Theme& theme, const Grid& g) const {
  const bool marks = g.cell >= kSmallestForMarks;
  const int gap = g.cell > 6 ? 1 : 0;
  QFont font = text_font(std::clamp(g.cell / 2.4, 7.0, 11.0));
  font.setBold(true);
  painter.setFont(font);
  for (std::size_t i = 0; i < m_survey->shown; ++i) {
    for (std::size_t j = 0; j < m_survey->shown; ++j) {
      const QRect box(g.left + static_cast<int>(j) * g.cell, g.top + static_cast<int>(i) * g.cell,
                      g.cell - gap, g.cell - gap);
      const PairOutcome* outcome = m_survey->at(i, j);
      if (outcome == nullptr) {
        painter.fillRect(box, theme.grid);
        continue;
      }
      if (outcome->other_questions) {
        painter.fillRect(box, unrelated_colour(theme));
        continue;
      }
      const QColor colour = tier_colour(theme, outcome->tier);
      painter.fillRect(box, mix(theme.surface, colour, marks ? 0.30 : 0.75));
      if (!marks) continue;
      painter.setPen(theme.text);
      painter.drawText(box, Qt::AlignCenter, tier_mark(outcome->tier));
    }
  }
  if (!m_choice || m_choice->a >= m_survey->shown || m_choice->b >= m_survey->shown) return;
  painter.setPen(QPen(theme.selection, 2));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(QRect(g.left + static_cast<int>(m_choice->b) * g.cell,
                         g.top + static_cast<int>(m_choice->a) * g.cell, g.cell - 1, g.cell - 1));
}

void PairMatrixView::draw_labels(QPainter& painter, const Theme& theme, const Grid& g) const {
  painter.setFont(text_font(7.5));
  const int every = std::max(1, (18 + g.cell - 1) / g.cell);
  for (int i = 0; i < static_cast<int>(m_survey->shown); i += every) {
    const bool row = m_choice && m_choice->a == static_cast<std::size_t>(i);
    const bool column = m_choice && m_choice->b == static_cast<std::size_t>(i);
    painter.setPen(row ? theme.side_a : theme.muted);
    painter.drawText(QRect(0, g.top + i * g.cell, g.left - 4, g.cell),
                     Qt::AlignRight | Qt::AlignVCenter, QString::number(i + 1));
    painter.setPen(column ? theme.side_b : theme.muted);
    painter.drawText(QRect(g.left + i * g.cell - 10, 0, g.cell + 20, g.top - 2),
                     Qt::AlignHCenter | Qt::AlignBottom, QString::number(i + 1));
  }
  painter.setPen(theme.muted);
  painter.drawText(QRect(0, 0, g.left - 4, g.top - 2), Qt::AlignRight | Qt::AlignBottom, tr("A╲B"));
}

// Only what occurs, in as many lines as it needs.
std::vector<PairMatrixView::LegendEntry> PairMatrixView::legend() const {
  std::vector<LegendEntry> entries;
  const QFontMetrics metrics(text_font(8.5));
  int x = 6;
  int line = 0;
  const auto add = [&](std::optional<Tier> tier, const QString& text) {
    const int room = 20 + metrics.horizontalAdvance(text) + 10;
    if (x + room > width() && x > 6) {
      x = 6;
      ++line;
    }
    entries.push_back({.tier = tier, .text = text, .x = x, .line = line, .width = room});
    x += room;
  };
  for (const Tier tier : kTiers) {
    const bool occurs =
        std::any_of(m_survey->outcomes.begin(), m_survey->outcomes.end(),
                    [tier](const PairOutcome& o) { return !o.other_questions && o.tier == tier; });
    if (occurs) add(tier, tier_name(tier));
  }
  const bool unrelated = std::any_of(m_survey->outcomes.begin(), m_survey->outcomes.end(),
                                     [](const PairOutcome& o) { return o.other_questions; });
  if (unrelated) add(std::nullopt, tr("other questions"));
  return entries;
}

int PairMatrixView::legend_height() const {
  const auto entries = m_survey ? legend() : std::vector<LegendEntry>{};
  return entries.empty() ? 0 : (entries.back().line + 1) * kLegendLine + 4;
}

// The mark stands in its box, as in the cells.
void PairMatrixView::draw_legend(QPainter& painter, const Theme& theme) const {
  QFont bold = text_font(8);
  bold.setBold(true);
  const int top = height() - legend_height() + 2;
  for (const LegendEntry& entry : legend()) {
    const int y = top + entry.line * kLegendLine;
    const QRect box(entry.x, y, 15, 15);
    painter.fillRect(box, entry.tier ? mix(theme.surface, tier_colour(theme, *entry.tier), 0.45)
                                     : unrelated_colour(theme));
    painter.setPen(theme.text);
    painter.setFont(bold);
    if (entry.tier) painter.drawText(box, Qt::AlignCenter, tier_mark(*entry.tier));
    painter.setFont(text_font(8.5));
    painter.drawText(QRect(entry.x + 20, y, entry.width - 20, 15), Qt::AlignLeft | Qt::AlignVCenter,
                     entry.text);
  }
}

void PairMatrixView::paintEvent(QPaintEvent*) {
  const Theme& theme = theme_of(palette());
  QPainter painter(this);
  if (!m_survey || m_survey->shown == 0) {
    painter.setPen(theme.muted);
    painter.drawText(rect().adjusted(12, 8, -12, -8), Qt::AlignCenter | Qt::TextWordWrap,
                     m_survey ? tr("Two files of many answers: their partners are in the table.")
                              : tr("Every pair of answers appears here."));
    return;
  }
  const Grid g = grid();
  draw_labels(painter, theme, g);
  draw_cells(painter, theme, g);
  draw_legend(painter, theme);
  if (!hasFocus()) return;
  painter.setPen(QPen(theme.muted, 1, Qt::DotLine));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

}  // namespace driftscope::ui
