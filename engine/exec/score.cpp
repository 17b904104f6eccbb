// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "engine/exec/lane.h"
#include "engine/exec/lockstep.h"

namespace driftscope {
namespace {

// Feeds a given sequence to one lane. The first `prompt` ids go in together; rows are delivered
// from the last of them on.
class ScoreRun {
 public:
  ScoreRun(const LaneInput& input, std::size_t prompt, TraceSink& sink,
           const ProgressFunction& progress)
      : m_ids(input.prompt),
        m_prompt(prompt),
        m_sink(sink),
        m_progress(progress),
        m_lane(Lane::a, input) {}

  Result<LockstepSummary> run(TapLevel taps, const std::stop_token& stop) {
    auto done = score(taps, stop);
    const bool cancelled = !done && done.error().kind == ErrorKind::interrupted;
    if (!done && !cancelled) return tl::unexpected(done.error());
    m_lane.end(cancelled ? StopReason::cancelled : StopReason::steps);
    return LockstepSummary{.lanes = {m_lane.summary()}, .cancelled = cancelled};
  }

 private:
  Result<void> score(TapLevel taps, const std::stop_token& stop) {
    if (m_progress) m_progress({.phase = "load", .done = 0, .total = 1});
    const bool one_pass = m_lane.input().config.scoring == Scoring::prefill;
    m_factory.expect_calls(one_pass ? 1 : rows());
    if (auto done = m_lane.open(m_factory, taps, 0); !done) return done;
    report();
    const auto on_row = [this](std::int64_t, const StepOutput& output) { return deliver(output); };
    if (m_lane.input().config.scoring == Scoring::prefill) {
      return m_lane.engine().score(m_ids, rows(), stop, on_row);
    }
    for (std::size_t i = m_prompt - 1; i < m_ids.size(); ++i) {
      if (stop.stop_requested()) return fail(ErrorKind::interrupted, "stopped on request");
      auto output = i == m_prompt - 1
                        ? m_lane.engine().prefill(std::span(m_ids).first(m_prompt), stop)
                        : m_lane.engine().decode(m_ids[i], stop);
      if (!output) return tl::unexpected(output.error());
      if (auto done = deliver(*output); !done) return done;
    }
    return {};
  }

  Result<void> deliver(const StepOutput& output) {
    const auto step = static_cast<std::size_t>(m_lane.steps_done());
    const bool shared = m_lane.input().config.sampling.seed_scope == SeedScope::shared_worker;
    const std::size_t seen = m_prompt + step;
    const TokenId token = m_sampler.choose(output.logits, std::span(m_ids).first(seen), {},
                                           shared ? output.draw : step);
    const Choice choice{.token = token, .draw = m_sampler.draw()};
    const TokenId emitted = seen < m_ids.size() ? m_ids[seen] : token;
    auto done = m_lane.deliver(m_sink, output, choice, emitted);
    report();
    return done;
  }

  void report() const {
    if (!m_progress) return;
    m_progress({.phase = "score", .done = m_lane.steps_done(), .total = rows()});
  }
  [[nodiscard]] std::int64_t rows() const {
    return static_cast<std::int64_t>(m_ids.size() - m_prompt + 1);
  }

  const std::vector<TokenId>& m_ids;
  std::size_t m_prompt;
  TraceSink& m_sink;
  const ProgressFunction& m_progress;
  BackendFactory m_factory;
  LaneRun m_lane;
  Sampler m_sampler{m_lane.input().config.sampling};
};

}  // namespace

Result<LockstepSummary> score_sequence(const LaneInput& input, TapLevel taps, TraceSink& sink,
                                       const ProgressFunction& progress, std::stop_token stop) {
  if (auto fits = check_lane_input(input, "a"); !fits) return tl::unexpected(fits.error());
  return ScoreRun(input, 1, sink, progress).run(taps, stop);
}

Result<LockstepSummary> score_continuation(const LaneInput& input, std::int64_t prompt_length,
                                           TapLevel taps, TraceSink& sink,
                                           const ProgressFunction& progress, std::stop_token stop) {
  if (auto fits = check_lane_input(input, "a"); !fits) return tl::unexpected(fits.error());
  const auto ids = static_cast<std::int64_t>(input.prompt.size());
  if (prompt_length < 1 || prompt_length > ids) {
    return fail(ErrorKind::usage, "the prompt is at least one id and at most the whole sequence");
  }
  return ScoreRun(input, static_cast<std::size_t>(prompt_length), sink, progress).run(taps, stop);
}

}  // namespace driftscope
