// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analysis/capture/capture.h"
#include "analysis/capture/experiment_json.h"
#include "analysis/capture/listed_comparison.h"
#include "analysis/capture/stored_comparison.h"

namespace driftscope {
namespace {

// Steps of one lane, read one at a time.
class LaneSource {
 public:
  // `with_taps`: whether the records carry taps.
  [[nodiscard]] static Result<LaneSource> open(const CaptureReader& reader, Lane lane,
                                               bool with_taps) {
    LaneSource source(reader, lane);
    const CaptureLaneInfo* info = reader.lane(lane);
    if (info == nullptr) return source;
    source.m_steps = info->steps_complete;
    if (with_taps) source.m_specs = reader.header().taps;
    source.m_with_routes = !reader.header().routes.layers.empty();
    auto tokens = reader.tokens(lane);
    if (!tokens) return tl::unexpected<Error>(tokens.error());
    auto choices = reader.choices(lane);
    if (!choices) return tl::unexpected<Error>(choices.error());
    auto timing = reader.timing_ns(lane);
    if (!timing) return tl::unexpected<Error>(timing.error());
    source.m_tokens = std::move(*tokens);
    source.m_choices = std::move(*choices);
    source.m_timing = std::move(*timing);
    auto notes = reader.notes(lane);
    if (!notes) return tl::unexpected<Error>(notes.error());
    source.m_notes = std::move(*notes);
    return source;
  }
  [[nodiscard]] std::int64_t steps() const { return m_steps; }
  // The lane that the records are to be of.
  void play(Lane lane) { m_played = lane; }
  [[nodiscard]] TokenId token(std::int64_t step) const {
    return m_tokens[static_cast<std::size_t>(step)];
  }
  // The record stays valid until the next call.
  [[nodiscard]] Result<StepRecord> read(std::int64_t step) {
    auto row = m_reader->logits(m_lane, step);
    if (!row) return tl::unexpected<Error>(row.error());
    m_row = std::move(*row);
    m_tap_rows.clear();
    m_taps.clear();
    for (const TapSpec& spec : m_specs) {
      auto tap = m_reader->tap(m_lane, spec, step);
      if (!tap) return tl::unexpected<Error>(tap.error());
      m_tap_rows.push_back(std::move(*tap));
      m_taps.push_back(
          {.layer = spec.layer, .operation = spec.operation, .values = m_tap_rows.back()});
    }
    if (m_with_routes) {
      auto routes = m_reader->routes(m_lane, step);
      if (!routes) return tl::unexpected<Error>(routes.error());
      m_routes = std::move(*routes);
    }
    const auto i = static_cast<std::size_t>(step);
    StepRecord record{.lane = m_played,
                      .step = step,
                      .choice = m_choices[i],
                      .emitted = token(step),
                      .logits = m_row,
                      .taps = m_taps,
                      .timing_ns = m_timing[i],
                      .routes = m_routes.row()};
    if (!m_notes.empty()) {
      record.rows_in_flight = m_notes[i].rows_in_flight;
      record.draw = m_notes[i].draw ? &*m_notes[i].draw : nullptr;
    }
    return record;
  }

 private:
  LaneSource(const CaptureReader& reader, Lane lane)
      : m_reader(&reader), m_lane(lane), m_played(lane) {}
  const CaptureReader* m_reader;
  Lane m_lane;
  Lane m_played;
  std::int64_t m_steps = 0;
  std::vector<TapSpec> m_specs;
  std::vector<TokenId> m_tokens, m_choices;
  std::vector<std::int64_t> m_timing;
  std::vector<StepNote> m_notes;
  std::vector<float> m_row;
  std::vector<std::vector<float>> m_tap_rows;
  std::vector<TensorTap> m_taps;
  bool m_with_routes = false;
  StoredRoutes m_routes;
};

Result<void> feed(LaneSource& source, std::int64_t step, TraceSink& sink) {
  if (step >= source.steps()) return {};
  auto record = source.read(step);
  if (!record) return tl::unexpected<Error>(record.error());
  return sink.accept(*record);
}

// One lane of B's capture plays both lanes of B: the free one, and the forced one as long as both
// sides have emitted the same tokens.
Result<void> feed_as_b(LaneSource& source, std::int64_t step, std::optional<TokenId> token_a,
                       TraceSink& sink) {
  if (step >= source.steps()) return {};
  auto record = source.read(step);
  if (!record) return tl::unexpected<Error>(record.error());
  if (token_a) {
    StepRecord forced = *record;
    forced.lane = Lane::b_forced;
    forced.emitted = *token_a;
    if (auto accepted = sink.accept(forced); !accepted) return accepted;
  }
  record->lane = Lane::b;
  return sink.accept(*record);
}

Result<void> check_pair(const CaptureReader& a, const CaptureReader& b) {
  if (a.lane(Lane::a) == nullptr || b.lane(Lane::a) == nullptr) {
    return fail(ErrorKind::inconclusive, "compare: a capture without lane a cannot be compared");
  }
  if (is_listed({&a, Lane::a}) || is_listed({&b, Lane::a})) return {};  // compares by token
  if (a.header().vocabulary != b.header().vocabulary) {
    return fail(ErrorKind::inconclusive,
                fmt::format("compare: vocabularies of {} and {} tokens cannot be compared; use two "
                            "captures of one tokenizer",
                            a.header().vocabulary, b.header().vocabulary));
  }
  return {};
}

Result<ExperimentFacts> facts_of_pair(const CaptureReader& a, const CaptureReader& b) {
  auto facts = experiment_of(a);
  if (!facts) return facts;
  auto other = experiment_of(b);
  if (!other) return other;
  facts->prompt_b = other->prompt_a;
  // A prompt that an import does not know is not another one.
  const bool imported = is_imported({&a, Lane::a}) || is_imported({&b, Lane::a});
  if (imported && (facts->prompt_a.empty() || facts->prompt_b.empty())) {
    facts->prompt_a.clear();
    facts->prompt_b.clear();
  }
  facts->model_b = other->model_a;
  facts->model_sha256_b = other->model_sha256_a;
  facts->config_b = other->config_a;
  facts->envelope_b = other->envelope_a;
  // Those were about each capture's own two sides; the weights are not here to be compared.
  facts->weight_difference = facts->model_sha256_a == facts->model_sha256_b
                                 ? std::string()
                                 : "where the tensors differ is not known from two captures";
  facts->command.clear();
  facts->planned_steps = std::max(facts->planned_steps, other->planned_steps);
  facts->lanes = {Lane::a, Lane::b, Lane::b_forced};
  if (facts->taps != other->taps) facts->taps.clear();
  if (facts->routes != other->routes) facts->routes = {};
  return facts;
}

TraceState weaker(TraceState a, TraceState b) { return a == TraceState::complete ? b : a; }

// Two lanes of one capture or of two.
Result<ComparisonPointer> compare_lanes(const LanePlace& a, const LanePlace& b,
                                        ExperimentFacts facts, const ComparePolicy& policy) {
  if (is_listed(a) || is_listed(b)) return compare_listed(a, b, std::move(facts), policy);
  const bool with_taps = !facts.taps.empty();
  auto source_a = LaneSource::open(*a.reader, a.lane, with_taps);
  if (!source_a) return tl::unexpected<Error>(source_a.error());
  auto source_b = LaneSource::open(*b.reader, b.lane, with_taps);
  if (!source_b) return tl::unexpected<Error>(source_b.error());
  source_a->play(Lane::a);
  // Rows without tokens of their own stay comparable whatever their best tokens are.
  const bool by_place = rows_by_place(a) && rows_by_place(b);
  facts.lanes = {Lane::a, Lane::b, Lane::b_forced};
  ComparisonBuilder builder(std::move(facts), policy);
  bool parted = false;
  for (std::int64_t step = 0; step < std::max(source_a->steps(), source_b->steps()); ++step) {
    if (auto fed = feed(*source_a, step, builder); !fed) return tl::unexpected<Error>(fed.error());
    const bool both = step < source_a->steps() && step < source_b->steps();
    std::optional<TokenId> token_a;
    if (both && !parted) token_a = source_a->token(step);
    if (auto fed = feed_as_b(*source_b, step, token_a, builder); !fed) {
      return tl::unexpected<Error>(fed.error());
    }
    parted = parted || (both && !by_place && source_a->token(step) != source_b->token(step));
  }
  const CaptureLaneInfo& info_a = *a.reader->lane(a.lane);
  const CaptureLaneInfo& info_b = *b.reader->lane(b.lane);
  builder.finish_lane(Lane::a, info_a.state, info_a.stop);
  builder.finish_lane(Lane::b, info_b.state, info_b.stop);
  builder.finish_lane(Lane::b_forced, info_b.state, parted ? "diverged" : info_b.stop);
  return builder.snapshot(weaker(a.reader->state(), b.reader->state()));
}

}  // namespace

Result<ComparisonPointer> compare_capture(const CaptureReader& reader,
                                          const ComparePolicy& policy) {
  if (is_imported({&reader, Lane::a}) && reader.lane(Lane::b) != nullptr) {
    auto facts = experiment_of(reader);
    if (!facts) return tl::unexpected<Error>(facts.error());
    return compare_lanes({&reader, Lane::a}, {&reader, Lane::b}, std::move(*facts), policy);
  }
  const CaptureLaneInfo* lane_a = reader.lane(Lane::a);
  if (lane_a != nullptr && !lane_a->full_rows) return compare_stored(reader, policy);
  auto facts = experiment_of(reader);
  if (!facts) return tl::unexpected<Error>(facts.error());
  std::vector<LaneSource> sources;
  std::int64_t steps = 0;
  // The order of a run: A, B fed A's tokens, B free, A again.
  for (const Lane lane :
       {Lane::a, Lane::b_forced, Lane::b, Lane::control, Lane::reference, Lane::reference_b}) {
    if (reader.lane(lane) == nullptr) continue;
    auto source = LaneSource::open(reader, lane, !facts->taps.empty());
    if (!source) return tl::unexpected<Error>(source.error());
    steps = std::max(steps, source->steps());
    sources.push_back(std::move(*source));
  }
  ComparisonBuilder builder(std::move(*facts), policy);
  for (std::int64_t step = 0; step < steps; ++step) {
    for (LaneSource& source : sources) {
      if (auto fed = feed(source, step, builder); !fed) return tl::unexpected<Error>(fed.error());
    }
  }
  for (const CaptureLaneInfo& info : reader.lanes()) {
    builder.finish_lane(info.lane.lane, info.state, info.stop);
  }
  return builder.snapshot(reader.state());
}

Result<ComparisonPointer> compare_captures(const CaptureReader& a, const CaptureReader& b,
                                           const ComparePolicy& policy) {
  if (auto pair = check_pair(a, b); !pair) return tl::unexpected<Error>(pair.error());
  auto facts = facts_of_pair(a, b);
  if (!facts) return tl::unexpected<Error>(facts.error());
  return compare_lanes({&a, Lane::a}, {&b, Lane::a}, std::move(*facts), policy);
}

}  // namespace driftscope
