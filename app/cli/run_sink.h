// SPDX-License-Identifier: Apache-2.0
// Hands each row of a run to the capture, the comparison and the event stream, in this order:
// a step is reported only after it was written.
#pragma once

#include "analysis/capture/capture.h"
#include "analysis/compare/comparison_builder.h"
#include "app/cli/console.h"
#include "app/cli/interrupt.h"
#include "engine/exec/lockstep.h"
#include "engine/trace/trace.h"

namespace driftscope::cli {

class RunSink final : public TraceSink {
 public:
  // `events`: null, or where event lines go.
  RunSink(CaptureWriter& writer, const ExperimentFacts& facts, const ComparePolicy& policy,
          const Console* events, InterruptGuard& interrupt);
  [[nodiscard]] Result<void> begin();
  [[nodiscard]] Result<void> accept(const StepRecord& record) override;
  [[nodiscard]] bool has_rows() const { return m_any_row; }
  void progress(std::string_view phase, std::int64_t done, std::int64_t total);
  // Closes capture and comparison, also when the run failed: what was captured is kept.
  [[nodiscard]] Result<ComparisonPointer> finish(const Result<LockstepSummary>& summary);

 private:
  [[nodiscard]] Result<void> emit(const std::string& line);
  [[nodiscard]] Result<void> emit_new_steps();

  CaptureWriter& m_writer;
  const ExperimentFacts& m_facts;
  ComparePolicy m_policy;
  ComparisonBuilder m_builder;
  const Console* m_events;
  InterruptGuard& m_interrupt;
  std::int64_t m_emitted = 0;
  bool m_any_row = false;
};

}  // namespace driftscope::cli
