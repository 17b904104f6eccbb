// SPDX-License-Identifier: GPL-3.0-or-later
// What both servers said of themselves and of the answer: model, fingerprint, usage, headers, ….
#pragma once

#include <vector>

#include "ui/models/response_snapshot.h"
#include "ui/models/table_model.h"

namespace driftscope::ui {

struct ResponseFact {
  QString field;
  QString a;  // empty: not said
  QString b;
  bool expected = false;  // differs from call to call by its nature: an id, a time
  QString meaning = {};   // what an equal or another value can prove
  QString grade = {};     // "good", "medium", "weak", "none"; empty: no evidence of a version
  bool alone = false;     // there is no B; `b` repeats `a`
  [[nodiscard]] bool differs() const { return a != b; }
  // Not by its nature: ids and times of the calls do not count.
  [[nodiscard]] bool tells_apart() const { return differs() && !expected; }
};
[[nodiscard]] std::vector<ResponseFact> response_facts(const ResponsePairView& pair);

class ResponseFactModel final : public TableModel {
  Q_OBJECT
 public:
  using TableModel::TableModel;
  enum Column { field, side_a, side_b, proves, column_total };
  void show(ResponsePairPointer pair);
  void set_differences_only(bool on);
  [[nodiscard]] int difference_count() const;
  [[nodiscard]] TableCell cell(int row, int column) const override;
  [[nodiscard]] QString empty_text() const override;

 protected:
  [[nodiscard]] int row_total() const override { return static_cast<int>(m_rows.size()); }
  [[nodiscard]] QStringList headings() const override;

 private:
  void choose_rows();
  ResponsePairPointer m_pair;
  bool m_differences_only = false;
  std::vector<ResponseFact> m_all;
  std::vector<std::size_t> m_rows;  // into m_all
};

}  // namespace driftscope::ui
