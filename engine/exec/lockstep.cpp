// SPDX-License-Identifier: Apache-2.0
#include "engine/exec/lockstep.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "engine/exec/lane.h"

namespace driftscope {
namespace {

Result<void> check_request(const LockstepRequest& request) {
  if (request.steps < 1) {
    return fail(ErrorKind::usage,
                fmt::format("steps {}: give a number of at least 1", request.steps));
  }
  if (auto fits = check_lane_input(request.a, "a"); !fits) return fits;
  if (auto fits = check_lane_input(request.b, "b"); !fits) return fits;
  const std::int64_t a_size = request.a.model->description().vocabulary;
  const std::int64_t b_size = request.b.model->description().vocabulary;
  if (a_size != b_size) {
    return fail(ErrorKind::inconclusive,
                fmt::format("the vocabularies have {} (a) and {} (b) entries; compare models that "
                            "share a tokenizer",
                            a_size, b_size));
  }
  const bool stop_strings = !request.a.config.sampling.stop_strings.empty() ||
                            !request.b.config.sampling.stop_strings.empty();
  if (stop_strings && !request.decode_text) {
    return fail(ErrorKind::usage,
                "stop_strings need a tokenizer to turn ids into text; use stop_tokens");
  }
  return {};
}

// The lanes of one run. b_forced holds no caches of its own while it is one execution with b.
class LockstepRun {
 public:
  LockstepRun(const LockstepRequest& request, TraceSink& sink, const ProgressFunction& progress,
              std::stop_token stop)
      : m_request(request),
        m_sink(sink),
        m_progress(progress),
        m_stop(std::move(stop)),
        m_a(Lane::a, request.a),
        m_b(Lane::b, request.b),
        m_forced(Lane::b_forced, request.b) {
    if (request.control) m_control.emplace(Lane::control, request.a);
    if (request.reference) {
      m_reference_input = reference_input(request.a);
      m_reference.emplace(Lane::reference, m_reference_input);
    }
    if (request.reference_b) {
      m_reference_b_input = reference_input(request.b);
      m_reference_b.emplace(Lane::reference_b, m_reference_b_input);
    }
    m_forced_at_end =
        request.b.config.scoring == Scoring::prefill && request.a.config.scoring == Scoring::decode;
    m_shared = !m_forced_at_end;
  }

  Result<LockstepSummary> run() {
    auto done = run_all();
    if (!done && done.error().kind == ErrorKind::interrupted) {
      for_each_lane([](LaneRun& lane) {
        if (!lane.ended()) lane.end(StopReason::cancelled);
      });
      return summary(true);
    }
    if (!done) return tl::unexpected(done.error());
    return summary(false);
  }

 private:
  static LaneInput reference_input(const LaneInput& side) {
    LaneInput input{.model = side.model, .prompt = side.prompt};
    input.config.threads = side.config.threads;
    return input;
  }

  Result<void> run_all() {
    if (auto done = open(); !done) return done;
    for (std::int64_t step = 0; step < m_request.steps && anyone_runs(); ++step) {
      if (m_stop.stop_requested()) return fail(ErrorKind::interrupted, "stopped on request");
      report(step == 0 ? "prefill" : "decode", step);
      if (auto done = run_step(); !done) return done;
      report("decode", step + 1);
    }
    if (m_forced_at_end) return run_forced_pass();
    return {};
  }

  Result<void> open() {
    if (m_progress) m_progress({.phase = "load", .done = 0, .total = 1});
    m_factory.expect_calls(m_request.steps);
    for (LaneRun* lane :
         {&m_a, &m_b, m_control ? &*m_control : nullptr, m_reference ? &*m_reference : nullptr,
          m_reference_b ? &*m_reference_b : nullptr}) {
      if (lane == nullptr) continue;
      if (m_stop.stop_requested()) return fail(ErrorKind::interrupted, "stopped on request");
      if (auto done = lane->open(m_factory, m_request.taps, m_request.steps); !done) return done;
    }
    if (m_progress) m_progress({.phase = "load", .done = 1, .total = 1});
    return {};
  }

  [[nodiscard]] bool anyone_runs() const {
    const bool forced = !m_forced_at_end && !m_forced.ended();
    // The reference ends with A.
    return !m_a.ended() || !m_b.ended() || forced || (m_control && !m_control->ended());
  }

  void report(std::string_view phase, std::int64_t done) const {
    if (m_progress) {
      m_progress({.phase = std::string(phase), .done = done, .total = m_request.steps});
    }
  }

  // One step of every lane that still runs. order: a, references, b_forced, b, control
  Result<void> run_step() {
    if (auto done = run_free(m_a); !done) return done;
    for (auto* reference : {&m_reference, &m_reference_b}) {
      if (!reference->has_value() || (*reference)->ended()) continue;
      if (auto done = run_reference(**reference); !done) return done;
    }
    if (m_shared) {
      if (auto done = run_shared(); !done) return done;
    } else {
      if (!m_forced_at_end) {
        if (auto done = run_forced(); !done) return done;
      }
      if (auto done = run_free(m_b); !done) return done;
    }
    if (m_control) return run_free(*m_control);
    return {};
  }

  Result<void> run_free(LaneRun& lane) {
    if (lane.ended()) return {};
    auto output = lane.forward(m_stop);
    if (!output) return tl::unexpected(output.error());
    const Choice choice = lane.choose(*output);
    if (auto done = lane.deliver(m_sink, *output, choice, choice.token); !done) return done;
    lane.check_end(m_request.steps, m_request.decode_text);
    return {};
  }

  // Exact arithmetic, fed A's tokens; ends with A.
  Result<void> run_reference(LaneRun& reference) {
    auto output = reference.forward(m_stop);
    if (!output) return tl::unexpected(output.error());
    const auto step = static_cast<std::size_t>(reference.steps_done());
    const TokenId emitted = m_a.emitted()[step];
    const Choice choice = reference.choose(*output);
    if (auto done = reference.deliver(m_sink, *output, choice, emitted); !done) return done;
    if (m_a.ended() && reference.steps_done() == m_a.steps_done()) {
      reference.end(m_a.reason());
    } else if (reference.context_is_full()) {  // B's checkpoint may have less room than A's
      reference.end(StopReason::context_full);
    }
    return {};
  }

  // Both lanes of B from one execution: so far they were fed the same tokens.
  Result<void> run_shared() {
    auto output = m_b.forward(m_stop);
    if (!output) return tl::unexpected(output.error());
    const Choice choice = m_b.choose(*output);
    if (auto done = deliver_forced(*output, choice); !done) return done;
    if (auto done = m_b.deliver(m_sink, *output, choice, choice.token); !done) return done;
    m_b.check_end(m_request.steps, m_request.decode_text);
    return part_if_needed();
  }

  Result<void> run_forced() {
    if (m_forced.ended()) return {};
    auto output = m_forced.forward(m_stop);
    if (!output) return tl::unexpected(output.error());
    return deliver_forced(*output, m_forced.choose(*output));
  }

  Result<void> deliver_forced(const StepOutput& output, const Choice& choice) {
    const auto step = static_cast<std::size_t>(m_forced.steps_done());
    const TokenId emitted = m_a.emitted()[step];
    if (auto done = m_forced.deliver(m_sink, output, choice, emitted); !done) return done;
    if (m_a.ended() && m_forced.steps_done() == m_a.steps_done()) {
      m_forced.end(m_a.reason());
    } else if (m_forced.context_is_full()) {
      m_forced.end(StopReason::context_full);
    }
    return {};
  }

  // Different next tokens, or one of the two has ended: each goes on alone from here.
  Result<void> part_if_needed() {
    if (m_b.ended() && m_forced.ended()) return {};
    if (!m_b.ended() && !m_forced.ended() && m_b.emitted().back() == m_forced.emitted().back()) {
      return {};
    }
    m_shared = false;
    if (m_forced.ended()) return {};
    if (m_b.ended()) {
      m_forced.adopt(m_b);
      return {};
    }
    return m_forced.fork_from(m_b);
  }

  // What a trainer recomputes: prompt and all of A's tokens in one pass.
  Result<void> run_forced_pass() {
    std::vector<TokenId> sequence = m_request.b.prompt;
    const std::vector<TokenId>& emitted = m_a.emitted();
    sequence.insert(sequence.end(), emitted.begin(), emitted.end() - 1);
    const auto context = static_cast<std::size_t>(m_request.b.model->description().max_positions);
    const bool cut = sequence.size() > context;
    if (cut) sequence.resize(context);
    const auto rows = static_cast<std::int64_t>(sequence.size() - m_request.b.prompt.size()) + 1;
    m_forced.adopt(m_b);
    report("score", 0);
    const auto on_row = [&](std::int64_t, const StepOutput& output) -> Result<void> {
      const Choice choice = m_forced.choose(output);
      const auto step = static_cast<std::size_t>(m_forced.steps_done());
      auto done = m_forced.deliver(m_sink, output, choice, emitted[step]);
      report("score", m_forced.steps_done());
      return done;
    };
    if (auto done = m_forced.engine().score(sequence, rows, m_stop, on_row); !done) return done;
    m_forced.end(cut ? StopReason::context_full : m_a.reason());
    return {};
  }

  template <class Function>
  void for_each_lane(Function function) {
    function(m_a);
    function(m_b);
    function(m_forced);
    if (m_control) function(*m_control);
    if (m_reference) function(*m_reference);
    if (m_reference_b) function(*m_reference_b);
  }

  LockstepSummary summary(bool cancelled) {
    LockstepSummary result;
    result.cancelled = cancelled;
    for_each_lane([&](const LaneRun& lane) { result.lanes.push_back(lane.summary()); });
    // While b_forced was one execution with b it had no backend of its own to ask.
    LaneSummary& forced = result.lanes[2];
    if (forced.plans.empty()) forced.plans = result.lanes[1].plans;
    if (forced.storage.empty()) forced.storage = result.lanes[1].storage;
    return result;
  }

  const LockstepRequest& m_request;
  TraceSink& m_sink;
  const ProgressFunction& m_progress;
  std::stop_token m_stop;
  BackendFactory m_factory;
  LaneRun m_a;
  LaneRun m_b;
  LaneRun m_forced;
  std::optional<LaneRun> m_control;
  LaneInput m_reference_input;  // outlives m_reference
  std::optional<LaneRun> m_reference;
  LaneInput m_reference_b_input;  // outlives m_reference_b
  std::optional<LaneRun> m_reference_b;
  bool m_shared = true;          // b and b_forced are one execution
  bool m_forced_at_end = false;  // one pass over all of A's tokens
};

}  // namespace

std::string_view name_of(StopReason reason) {
  switch (reason) {
    case StopReason::steps:
      return "steps";
    case StopReason::end_of_sequence:
      return "end_of_sequence";
    case StopReason::stop_string:
      return "stop_string";
    case StopReason::context_full:
      return "context_full";
    case StopReason::cancelled:
      return "cancelled";
  }
  return "?";
}

Result<LockstepSummary> run_lockstep(const LockstepRequest& request, TraceSink& sink,
                                     const ProgressFunction& progress, std::stop_token stop) {
  if (auto fits = check_request(request); !fits) return tl::unexpected(fits.error());
  return LockstepRun(request, sink, progress, std::move(stop)).run();
}

}  // namespace driftscope
