// SPDX-License-Identifier: Apache-2.0
#include "app/cli/run_sink.h"

#include <algorithm>

#include "analysis/report/events.h"

namespace driftscope::cli {

RunSink::RunSink(CaptureWriter& writer, const ExperimentFacts& facts, const ComparePolicy& policy,
                 const Console* events, InterruptGuard& interrupt)
    : m_writer(writer),
      m_facts(facts),
      m_policy(policy),
      m_builder(facts, policy),
      m_events(events),
      m_interrupt(interrupt) {}

Result<void> RunSink::emit(const std::string& line) {
  if (m_events == nullptr) return {};
  auto printed = m_events->print(line + "\n");
  if (printed) printed = m_events->flush();
  // The reader went away: nobody is left to see the rest, so end cleanly and keep the capture.
  if (!printed) m_interrupt.request_stop();
  return printed;
}

Result<void> RunSink::begin() { return emit(started_event(m_facts, m_policy)); }

Result<void> RunSink::accept(const StepRecord& record) {
  if (auto written = m_writer.accept(record); !written) return written;
  m_any_row = true;
  if (auto compared = m_builder.accept(record); !compared) return compared;
  return emit_new_steps();
}

Result<void> RunSink::emit_new_steps() {
  if (m_events == nullptr) return {};
  for (; m_emitted < m_builder.compared_steps(); ++m_emitted) {
    const auto step = m_builder.step(m_emitted);
    if (auto sent = emit(step_event(*step, m_builder.tap_values(m_emitted), m_facts.piece,
                                    m_builder.route_flips(m_emitted)));
        !sent) {
      return sent;
    }
  }
  return {};
}

void RunSink::progress(std::string_view phase, std::int64_t done, std::int64_t total) {
  (void)emit(progress_event(phase, done, total));
}

Result<ComparisonPointer> RunSink::finish(const Result<LockstepSummary>& summary) {
  const bool failed = !summary.has_value();
  const bool cancelled = !failed && summary->cancelled;
  const TraceState state = failed      ? TraceState::partial
                           : cancelled ? TraceState::interrupted
                                       : TraceState::complete;
  Result<void> written;
  if (!failed) {
    for (const LaneSummary& lane : summary->lanes) {
      const TraceState lane_state =
          lane.stop == StopReason::cancelled ? TraceState::interrupted : TraceState::complete;
      const std::string stop(name_of(lane.stop));
      if (written) written = m_writer.keep_plans(lane.lane, lane.plans);
      if (written) written = m_writer.finish_lane(lane.lane, lane_state, stop);
      m_builder.finish_lane(lane.lane, lane_state, stop);
    }
  }
  auto comparison = m_builder.snapshot(state);
  if (written) written = m_writer.finish(state, comparison.get());
  if (!written) return tl::unexpected(written.error());
  for (const Finding& finding : comparison->findings) (void)emit(finding_event(finding));
  return comparison;
}

}  // namespace driftscope::cli
