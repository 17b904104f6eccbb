// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/host/plan_log.h"

#include <fmt/format.h>

#include <algorithm>

namespace driftscope {

void PlanLog::record(Phase phase, std::string_view operation, std::int64_t m, std::int64_t n,
                     std::int64_t k, const ReductionPlan& plan) {
  for (Entry& entry : m_entries) {
    if (entry.phase != phase || entry.n != n || entry.k != k || entry.operation != operation ||
        !(entry.plan == plan)) {
      continue;
    }
    entry.m_least = std::min(entry.m_least, m);
    entry.m_most = std::max(entry.m_most, m);
    return;
  }
  m_entries.push_back({.phase = phase,
                       .operation = operation,
                       .m_least = m,
                       .m_most = m,
                       .n = n,
                       .k = k,
                       .plan = plan});
}

void PlanLog::note(Phase phase, std::string_view text) {
  for (const Note& known : m_notes) {
    if (known.phase == phase && known.text == text) return;
  }
  m_notes.push_back({.phase = phase, .text = std::string(text)});
}

std::vector<std::string> PlanLog::lines() const {
  std::vector<std::string> result;
  result.reserve(m_entries.size());
  for (const Entry& entry : m_entries) {
    const std::string rows = entry.m_least == entry.m_most
                                 ? fmt::format("{}", entry.m_least)
                                 : fmt::format("{}..{}", entry.m_least, entry.m_most);
    result.push_back(fmt::format("{} {} m={} n={} k={}: {}", name_of(entry.phase), entry.operation,
                                 rows, entry.n, entry.k, to_string(entry.plan)));
  }
  for (const Note& known : m_notes) {
    result.push_back(fmt::format("{} {}", name_of(known.phase), known.text));
  }
  return result;
}

}  // namespace driftscope
