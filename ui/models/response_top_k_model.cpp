// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/response_top_k_model.h"

#include <algorithm>
#include <cmath>

#include "analysis/responses/response_lint.h"
#include "ui/models/response_series.h"
#include "ui/models/token_text.h"

namespace driftscope::ui {
namespace {

const ResponseStep* step_in(const std::vector<ResponseStep>& steps, std::int64_t index) {
  return index < 0 ? nullptr : &steps[static_cast<std::size_t>(index)];
}

QString quoted(const TokenText& token) {
  ResponseStep step;
  step.token = token;
  return quoted_response_token(step);
}

}  // namespace

void ResponseTopKModel::add_side(const ResponseStep& step, Side Row::*side) {
  const auto add = [&](const TokenText& text, const Logprob& logprob, bool chosen) {
    auto row = std::find_if(m_rows.begin(), m_rows.end(), [&](const Row& r) {
      return !(r.*side).listed && same_token(r.token, text);
    });
    if (row == m_rows.end()) {
      row = m_rows.insert(m_rows.end(), Row{.token = text, .a = {}, .b = {}});
    }
    (*row).*side = {.listed = true, .chosen = chosen, .rank = 0, .logprob = logprob};
  };
  // The chosen token's own value counts. A list may hold the same text with another value, where
  // two tokens share it as a key: that is a row of its own.
  Logprob own = step.logprob;
  bool listed = false;
  const auto is_chosen = [&](const TokenAlternative& other) {
    if (listed || !same_token(other.token, step.token)) return false;
    if (!own.usable() || !other.logprob.usable()) return true;
    const double tolerance = std::max(print_tolerance(own), print_tolerance(other.logprob));
    return std::abs(other.logprob.value - own.value) <= 2.0 * tolerance;
  };
  std::vector<const TokenAlternative*> others;
  for (const TokenAlternative& other : step.alternatives) {
    if (!is_chosen(other)) {
      others.push_back(&other);
      continue;
    }
    listed = true;
    if (!own.usable()) own = other.logprob;
  }
  add(step.token, own, true);
  for (const TokenAlternative* other : others) add(other->token, other->logprob, false);
  rank_side(side);
}

void ResponseTopKModel::rank_side(Side Row::*side) {
  for (Row& row : m_rows) {
    Side& own = row.*side;
    if (!own.listed || !own.logprob.usable()) continue;
    own.rank =
        1 + static_cast<int>(std::count_if(m_rows.begin(), m_rows.end(), [&](const Row& r) {
          const Side& other = r.*side;
          return other.listed && other.logprob.usable() && other.logprob.value > own.logprob.value;
        }));
  }
}

void ResponseTopKModel::show(ResponsePairPointer pair, std::int64_t column) {
  beginResetModel();
  m_pair = std::move(pair);
  m_column = column;
  m_rows.clear();
  m_comparable = false;
  const bool inside =
      m_pair && column >= 0 && column < static_cast<std::int64_t>(m_pair->columns.columns.size());
  if (inside && m_pair->columns.unit != ColumnUnit::words) {
    const ResponseColumns& columns = m_pair->columns;
    const ResponseColumn& shown = columns.columns[static_cast<std::size_t>(column)];
    const ResponseStep* a = step_in(columns.steps_a, shown.a);
    const ResponseStep* b = step_in(columns.steps_b, shown.b);
    if (a != nullptr) add_side(*a, &Row::a);
    if (b != nullptr) add_side(*b, &Row::b);
    const bool drift_known =
        m_pair->comparison.drift.count > 0 || m_pair->comparison.prompt_drift.count > 0;
    m_comparable =
        drift_known && (shown.state == ColumnState::equal || column == columns.divergence);
    const auto order = [](const Side& side) { return side.rank > 0 ? side.rank : 1 << 20; };
    std::stable_sort(m_rows.begin(), m_rows.end(), [&](const Row& x, const Row& y) {
      return std::min(order(x.a), order(x.b)) < std::min(order(y.a), order(y.b));
    });
  }
  endResetModel();
}

QStringList ResponseTopKModel::headings() const {
  return {QStringLiteral("Token"), QStringLiteral("Id"),        QStringLiteral("# A"),
          QStringLiteral("# B"),   QStringLiteral("Logprob A"), QStringLiteral("Logprob B"),
          QStringLiteral("B − A")};
}

QString ResponseTopKModel::empty_text() const {
  if (!m_pair) return QStringLiteral("Open two answers to see what else they might have said.");
  if (m_pair->columns.columns.empty()) {
    return m_pair->alone ? QStringLiteral("The answer holds no tokens.")
                         : QStringLiteral("The answers hold no tokens.");
  }
  const bool one = m_pair->alone || m_pair->failed();
  if (one && m_pair->columns.unit == ColumnUnit::words) {
    return QStringLiteral(
        "The answer lists no tokens. Ask the server for logprobs with top_logprobs.");
  }
  if (m_pair->columns.unit == ColumnUnit::words) {
    return QStringLiteral(
               "%1, so there are no alternatives to compare. Ask the server for logprobs with "
               "top_logprobs.")
        .arg(neither_lists_tokens(*m_pair) ? QStringLiteral("Neither side lists tokens")
                                           : QStringLiteral("One side lists no tokens"));
  }
  return QStringLiteral("Choose a token in the ribbons or on the plots.");
}

TableCell ResponseTopKModel::absent_cell(const QString& text) const {
  const bool one = m_pair->alone || m_pair->failed();
  return {.text = one ? QStringLiteral("–") : text,
          .number = true,
          .emphasis = Emphasis::muted,
          .tooltip = m_pair->alone ? QStringLiteral("There is no second file")
                     : m_pair->failed()
                         ? QStringLiteral("This side is an error, not an answer")
                         : QStringLiteral("Not among the tokens that this side lists")};
}

TableCell ResponseTopKModel::rank_cell(const Side& own, const Side& other) const {
  if (!own.listed) return absent_cell(QStringLiteral("–"));
  if (own.rank == 0) {
    return {.text = QStringLiteral("?"),
            .number = true,
            .emphasis = Emphasis::muted,
            .tooltip = QStringLiteral("Without a number there is no rank")};
  }
  const bool moved = other.rank > 0 && own.rank != other.rank;
  return {.text = QString::number(own.rank),
          .number = true,
          .emphasis = moved ? Emphasis::alert : Emphasis::none};
}

TableCell ResponseTopKModel::value_cell(const Side& side, Emphasis emphasis) const {
  if (!side.listed) return absent_cell(QStringLiteral("not listed"));
  const bool number = side.logprob.usable();
  return {.text = logprob_text(side.logprob, 5),
          .number = true,
          .emphasis = number ? emphasis : Emphasis::warning,
          .tooltip = logprob_meaning(side.logprob)};
}

TableCell ResponseTopKModel::cell(int row, int column) const {
  const Row& r = m_rows[static_cast<std::size_t>(row)];
  const bool both = r.a.listed && r.b.listed && r.a.logprob.usable() && r.b.logprob.usable();
  switch (static_cast<Column>(column)) {
    case token: {
      const Emphasis emphasis = r.a.chosen && !r.b.chosen   ? Emphasis::side_a
                                : r.b.chosen && !r.a.chosen ? Emphasis::side_b
                                                            : Emphasis::none;
      const QString mark = r.a.chosen && r.b.chosen ? QStringLiteral("  ◂ A B")
                           : r.a.chosen             ? QStringLiteral("  ◂ A")
                           : r.b.chosen             ? QStringLiteral("  ◂ B")
                                                    : QString();
      return {.text = quoted(r.token) + mark,
              .emphasis = emphasis,
              .tooltip = mark.isEmpty() ? QString() : QStringLiteral("◂ marks the chosen token")};
    }
    case id:
      return {.text = r.token.id ? QString::number(*r.token.id) : QStringLiteral("–"),
              .number = true,
              .emphasis = Emphasis::muted};
    case rank_a:
      return rank_cell(r.a, r.b);
    case rank_b:
      return rank_cell(r.b, r.a);
    case logprob_a:
      return value_cell(r.a, Emphasis::side_a);
    case logprob_b:
      return value_cell(r.b, Emphasis::side_b);
    case difference:
      if (both && m_comparable) {
        return {.text = short_number(r.b.logprob.value - r.a.logprob.value, 3), .number = true};
      }
      return {.text = QStringLiteral("–"),
              .number = true,
              .emphasis = Emphasis::muted,
              .tooltip = both ? QStringLiteral("The texts before this token differ, or the numbers "
                                               "are not of one kind: not subtracted")
                              : QString()};
    case column_total:
      break;
  }
  return {};
}

}  // namespace driftscope::ui
