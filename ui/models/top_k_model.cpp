// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/top_k_model.h"

#include <algorithm>

#include "analysis/compare/value_words.h"
#include "ui/models/navigation.h"
#include "ui/models/token_text.h"

namespace driftscope::ui {

void TopKModel::show(ComparisonPointer comparison, std::int64_t step) {
  beginResetModel();
  m_comparison = std::move(comparison);
  m_step = step;
  m_rows.clear();
  const StepComparison* shown = m_comparison ? step_at(*m_comparison, step) : nullptr;
  if (shown != nullptr) {
    const auto& a = shown->metrics.top_a;
    const auto& b = shown->metrics.top_b;
    for (std::size_t i = 0; i < a.size(); ++i) {
      m_rows.push_back({.token = a[i].token, .rank_a = static_cast<int>(i), .logit_a = a[i].logit});
    }
    for (std::size_t i = 0; i < b.size(); ++i) {
      auto row = std::find_if(m_rows.begin(), m_rows.end(),
                              [&](const Row& r) { return r.token == b[i].token; });
      if (row == m_rows.end()) row = m_rows.insert(m_rows.end(), Row{.token = b[i].token});
      row->rank_b = static_cast<int>(i);
      row->logit_b = b[i].logit;
    }
  }
  endResetModel();
}

QStringList TopKModel::headings() const {
  // Short, as on the page of answers: the columns of both sides must fit beside each other.
  const bool logs = m_comparison && of_log_probabilities(*m_comparison);
  const QString value = logs ? QStringLiteral("Logprob ") : QStringLiteral("Logit ");
  return {QStringLiteral("Token"),  QStringLiteral("Id"),     QStringLiteral("Rank A"),
          QStringLiteral("Rank B"), value + QLatin1Char('A'), value + QLatin1Char('B'),
          QStringLiteral("B − A")};
}

QString TopKModel::empty_text() const {
  if (!m_comparison) return QStringLiteral("Open a capture or start a run to see the best tokens.");
  if (m_comparison->listed()) {
    return QStringLiteral(
               "Step %1 is not compared: no side lists tokens here, or the texts before "
               "it differ.")
        .arg(m_step);
  }
  return QStringLiteral("Step %1 has no logits of both sides: choose a step on the plots.")
      .arg(m_step);
}

TableCell TopKModel::rank_cell(int own, int other) const {
  if (own < 0) {
    return {.text = QStringLiteral("–"),
            .number = true,
            .emphasis = Emphasis::muted,
            .tooltip = m_comparison->listed()
                           ? QStringLiteral("Not among the tokens that this side lists")
                           : QStringLiteral("Below the best %1 of this side").arg(m_rows.size())};
  }
  return {.text = QString::number(own + 1),
          .number = true,
          .emphasis = own == other ? Emphasis::none : Emphasis::alert};
}

TableCell TopKModel::cell(int row, int column) const {
  const Row& r = m_rows[static_cast<std::size_t>(row)];
  const bool both = r.rank_a >= 0 && r.rank_b >= 0;
  switch (static_cast<Column>(column)) {
    case token: {
      const bool best_a = r.rank_a == 0;
      const bool best_b = r.rank_b == 0;
      const Emphasis emphasis = best_a && !best_b   ? Emphasis::side_a
                                : best_b && !best_a ? Emphasis::side_b
                                                    : Emphasis::none;
      return {.text = quoted_token(*m_comparison, r.token), .emphasis = emphasis};
    }
    case id:
      // Places in the list of an import are no ids of the model.
      return {
          .text = interned(*m_comparison) ? QStringLiteral("–") : QString::number(r.token.value),
          .number = true,
          .emphasis = Emphasis::muted};
    case rank_a:
      return rank_cell(r.rank_a, r.rank_b);
    case rank_b:
      return rank_cell(r.rank_b, r.rank_a);
    case logit_a:
      return {.text = r.rank_a < 0 ? QStringLiteral("–") : short_number(double{r.logit_a}, 7),
              .number = true,
              .emphasis = Emphasis::side_a};
    case logit_b:
      return {.text = r.rank_b < 0 ? QStringLiteral("–") : short_number(double{r.logit_b}, 7),
              .number = true,
              .emphasis = Emphasis::side_b};
    case difference:
      return {.text = both && numbers_comparable(*m_comparison)
                          ? short_number(double{r.logit_b} - double{r.logit_a}, 3)
                          : QStringLiteral("–"),
              .number = true};
    case column_total:
      break;
  }
  return {};
}

}  // namespace driftscope::ui
