// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/response_plot.h"

#include "ui/models/response_verdict.h"

namespace driftscope::ui {

void ResponsePlot::set_pair(ResponsePairPointer pair) {
  m_pair = std::move(pair);
  m_series = m_pair ? response_series(*m_pair) : ResponseSeries{};
  std::optional<std::int64_t> parting;
  if (m_pair && m_pair->columns.divergence >= 0) parting = m_pair->columns.divergence;
  set_extent(m_pair ? static_cast<std::int64_t>(m_pair->columns.columns.size()) : 0, parting);
  const QString unit = unit_name(m_pair ? m_pair->columns.unit : ColumnUnit::tokens);
  set_step_words(QStringLiteral("%1 as aligned (from 0)").arg(unit), unit);
  rebuild();
  update_now();
}

}  // namespace driftscope::ui
