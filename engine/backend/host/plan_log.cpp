// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/host/plan_log.h"

#include <fmt/format.h>

#include <algorithm>

namespace driftscope {
namespace {

std::string range_text(std::int64_t least, std::int64_t most) {
  return least == most ? fmt::format("{}", least) : fmt::format("{}..{}", least, most);
}

}  // namespace

void PlanLog::record(Phase phase, std::string_view operation, std::int64_t m, std::int64_t n,
                     std::int64_t k, const ReductionPlan& plan, std::int64_t ranks) {
  for (Entry& entry : m_entries) {
    if (entry.phase != phase || entry.n != n || entry.k != k || entry.operation != operation ||
        entry.ranks != ranks || !(entry.plan == plan)) {
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
                       .ranks = ranks,
                       .plan = plan});
}

void PlanLog::record_message(Phase phase, std::string_view text, std::int64_t elements) {
  for (Message& known : m_messages) {
    if (known.phase != phase || known.text != text) continue;
    known.least = std::min(known.least, elements);
    known.most = std::max(known.most, elements);
    return;
  }
  m_messages.push_back(
      {.phase = phase, .text = std::string(text), .least = elements, .most = elements});
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
    const std::string ranks = entry.ranks > 1 ? fmt::format(" ranks={}", entry.ranks) : "";
    result.push_back(fmt::format("{} {} m={} n={} k={}{}: {}{}{}", name_of(entry.phase),
                                 entry.operation, range_text(entry.m_least, entry.m_most), entry.n,
                                 entry.k, ranks, to_string(entry.plan), m_kernel.empty() ? "" : " ",
                                 m_kernel));
  }
  for (const Message& message : m_messages) {
    result.push_back(fmt::format("{} {} elements={}", name_of(message.phase), message.text,
                                 range_text(message.least, message.most)));
  }
  for (const Note& known : m_notes) {
    result.push_back(fmt::format("{} {}", name_of(known.phase), known.text));
  }
  return result;
}

}  // namespace driftscope
