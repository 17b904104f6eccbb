// SPDX-License-Identifier: GPL-3.0-or-later
// The alternatives that both answers list at one column.
#pragma once

#include <vector>

#include "ui/models/response_snapshot.h"
#include "ui/models/table_model.h"

namespace driftscope::ui {

class ResponseTopKModel final : public TableModel {
  Q_OBJECT
 public:
  using TableModel::TableModel;
  enum Column { token, id, rank_a, rank_b, logprob_a, logprob_b, difference, column_total };
  void show(ResponsePairPointer pair, std::int64_t column);
  [[nodiscard]] TableCell cell(int row, int column) const override;
  [[nodiscard]] QString empty_text() const override;

 protected:
  [[nodiscard]] int row_total() const override { return static_cast<int>(m_rows.size()); }
  [[nodiscard]] QStringList headings() const override;

 private:
  struct Side {
    bool listed = false;
    bool chosen = false;
    int rank = 0;  // from 1 by falling value, equal values share one; 0: not known
    Logprob logprob;
  };
  struct Row {
    TokenText token;
    Side a, b;
  };
  void add_side(const ResponseStep& step, Side Row::*side);
  void rank_side(Side Row::*side);
  [[nodiscard]] TableCell rank_cell(const Side& own, const Side& other) const;
  [[nodiscard]] TableCell value_cell(const Side& side, Emphasis emphasis) const;
  [[nodiscard]] TableCell absent_cell(const QString& text) const;
  ResponsePairPointer m_pair;
  std::int64_t m_column = -1;
  bool m_comparable = false;  // the column's numbers were made by the same tokens before
  std::vector<Row> m_rows;
};

}  // namespace driftscope::ui
