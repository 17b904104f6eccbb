// SPDX-License-Identifier: Apache-2.0
#include "analysis/capture/stored_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "analysis/capture/experiment_json.h"
#include "analysis/compare/listed_step.h"
#include "analysis/compare/route_tracker.h"

namespace driftscope {
namespace {

struct LaneColumns {
  std::vector<TokenId> tokens, choices;
  std::vector<StepNote> notes;  // empty: none were kept
};

Result<LaneColumns> read_columns(const CaptureReader& reader, Lane lane) {
  if (reader.lane(lane) == nullptr) return LaneColumns{};
  auto tokens = reader.tokens(lane);
  if (!tokens) return tl::unexpected<Error>(tokens.error());
  auto choices = reader.choices(lane);
  if (!choices) return tl::unexpected<Error>(choices.error());
  auto notes = reader.notes(lane);
  if (!notes) return tl::unexpected<Error>(notes.error());
  return LaneColumns{std::move(*tokens), std::move(*choices), std::move(*notes)};
}

class StoredComparison {
 public:
  StoredComparison(const CaptureReader& reader, const ComparePolicy& policy)
      : m_reader(reader), m_policy(policy) {}

  Result<ComparisonPointer> build() {
    auto facts = experiment_of(m_reader);
    if (!facts) return tl::unexpected<Error>(facts.error());
    facts->taps.clear();
    if (auto read = read_lanes(); !read) return tl::unexpected<Error>(read.error());
    auto comparison = std::make_shared<Comparison>();
    comparison->generation = 1;
    comparison->state = m_reader.state();
    comparison->policy = m_policy;
    if (auto added = add_steps(*comparison); !added) return tl::unexpected<Error>(added.error());
    if (auto added = add_routes(*comparison, facts->routes); !added) {
      return tl::unexpected<Error>(added.error());
    }
    add_lanes(*comparison, *facts);
    if (facts->piece) {
      for (const auto& [id, unused] : m_seen) {
        comparison->pieces.push_back({.id = id, .bytes = facts->piece(id)});
      }
    }
    conclude(*comparison, *facts);
    comparison->findings.push_back(
        {.id = "top_k_only",
         .severity = Severity::notice,
         .text = "The capture kept the best logits of each row only: metrics are those stored when "
                 "the run ended, taps and the repeat of A are left out.",
         .evidence = "{}"});
    return ComparisonPointer(comparison);
  }

 private:
  Result<void> read_lanes() {
    for (const auto& [lane, target] : {std::pair{Lane::a, &m_a}, std::pair{Lane::b, &m_b},
                                       std::pair{Lane::b_forced, &m_forced}}) {
      auto columns = read_columns(m_reader, lane);
      if (!columns) return tl::unexpected<Error>(columns.error());
      *target = std::move(*columns);
    }
    auto metrics = m_reader.stored_metrics();
    if (!metrics) return tl::unexpected<Error>(metrics.error());
    m_metrics = std::move(*metrics);
    return {};
  }

  Result<void> add_steps(Comparison& comparison) {
    const std::size_t steps = std::min(m_a.tokens.size(), m_forced.tokens.size());
    const auto k = static_cast<std::size_t>(std::max<std::int64_t>(m_policy.top_k, 0));
    for (std::size_t i = 0; i < steps; ++i) {
      const auto index = static_cast<std::int64_t>(i);
      auto top_a = m_reader.top(Lane::a, index);
      if (!top_a) return tl::unexpected<Error>(top_a.error());
      auto top_b = m_reader.top(Lane::b_forced, index);
      if (!top_b) return tl::unexpected<Error>(top_b.error());
      auto step = std::make_shared<StepComparison>();
      step->step = index;
      step->token_a = m_a.tokens[i];
      step->choice_b = m_forced.choices[i];
      if (i < m_b.tokens.size()) step->token_b = m_b.tokens[i];
      step->flipped = step->choice_b != m_a.choices[i];
      step->flips = flips_between(*top_a, *top_b, k);
      if (i < m_a.notes.size() && i < m_forced.notes.size()) {
        step->rows_a = m_a.notes[i].rows_in_flight;
        step->rows_b = m_forced.notes[i].rows_in_flight;
        step->draw_a = m_a.notes[i].draw;
        step->draw_b = m_forced.notes[i].draw;
      }
      if (i < m_metrics.size()) step->metrics = m_metrics[i];
      step->metrics.values.resize(metric_registry().size(),
                                  std::numeric_limits<double>::quiet_NaN());
      top_a->resize(std::min(top_a->size(), k));
      top_b->resize(std::min(top_b->size(), k));
      step->metrics.top_a = std::move(*top_a);
      step->metrics.top_b = std::move(*top_b);
      note(*step);
      comparison.steps.push_back(std::move(step));
    }
    return {};
  }

  // Routes are kept whole, whatever is kept of the logits.
  Result<void> add_routes(Comparison& comparison, const RouteSpec& spec) {
    if (spec.layers.empty()) return {};
    RouteTracker tracker(spec);
    for (const auto& [lane, columns] : {std::pair{Lane::a, &m_a}, std::pair{Lane::b, &m_b},
                                        std::pair{Lane::b_forced, &m_forced}}) {
      for (std::size_t i = 0; i < columns->tokens.size(); ++i) {
        const auto step = static_cast<std::int64_t>(i);
        auto routes = m_reader.routes(lane, step);
        if (!routes) return tl::unexpected<Error>(routes.error());
        StepRecord record;
        record.lane = lane;
        record.step = step;
        record.emitted = columns->tokens[i];
        record.routes = routes->row();
        if (auto tracked = tracker.accept(record); !tracked) return tracked;
      }
    }
    comparison.routes = tracker.result();
    return {};
  }

  void note(const StepComparison& step) {
    m_seen[step.choice_b] = true;
    for (const RankedToken& entry : step.metrics.top_a) m_seen[entry.token] = true;
    for (const RankedToken& entry : step.metrics.top_b) m_seen[entry.token] = true;
  }

  void add_lanes(Comparison& comparison, ExperimentFacts& facts) {
    std::erase(facts.lanes, Lane::control);
    for (const CaptureLaneInfo& info : m_reader.lanes()) {
      const Lane lane = info.lane.lane;
      if (lane != Lane::a && lane != Lane::b && lane != Lane::b_forced) continue;
      const LaneColumns& columns = lane == Lane::a ? m_a : lane == Lane::b ? m_b : m_forced;
      comparison.lanes.push_back(
          {.lane = lane, .state = info.state, .tokens = columns.tokens, .stop = info.stop});
      for (const TokenId id : columns.tokens) m_seen[id] = true;
    }
  }

  const CaptureReader& m_reader;
  ComparePolicy m_policy;
  LaneColumns m_a, m_b, m_forced;
  std::vector<StepMetrics> m_metrics;
  std::map<TokenId, bool> m_seen;
};

}  // namespace

Result<ComparisonPointer> compare_stored(const CaptureReader& reader, const ComparePolicy& policy) {
  return StoredComparison(reader, policy).build();
}

}  // namespace driftscope
