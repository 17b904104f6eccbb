// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/comparison_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "analysis/compare/reference_check.h"
#include "analysis/compare/route_tracker.h"
#include "analysis/compare/row_pairing.h"

namespace driftscope {

namespace {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

// One lane as far as it has come.
struct LaneProgress {
  LaneView view;
  bool started = false;
  bool finished = false;
};

struct TapFigures {
  double max_abs = kNotMeasured, rms = kNotMeasured, relative_rms = kNotMeasured,
         max_ulp = kNotMeasured;
};

// NaN in either row makes the figures NaN: a tap has no metric of its own to say so.
TapFigures compare_taps(std::span<const float> a, std::span<const float> b) {
  TapFigures figures;
  if (a.empty() || a.size() != b.size()) return figures;
  double largest = 0.0, squares = 0.0, squares_a = 0.0;
  std::int64_t ulps = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) || std::isnan(b[i])) return figures;
    const double difference = a[i] == b[i] ? 0.0 : double{b[i]} - double{a[i]};
    largest = std::max(largest, std::abs(difference));
    squares += difference * difference;
    squares_a += double{a[i]} * double{a[i]};
    ulps = std::max(ulps, ulp_distance(a[i], b[i]));
  }
  figures.max_abs = largest;
  figures.rms = std::sqrt(squares / static_cast<double>(a.size()));
  figures.relative_rms = squares == 0.0 ? 0.0 : std::sqrt(squares / squares_a);
  figures.max_ulp = static_cast<double>(ulps);
  return figures;
}

void set_errors(StepComparison& step, const ReferenceErrors& errors) {
  const auto set = [&](std::string_view id, double value) {
    step.metrics.values[*metric_index(id)] = value;
  };
  set("error_a", errors.a.centred_rms);
  set("error_a_max_abs", errors.a.max_abs);
  set("error_a_kl", errors.a.kl);
  set("error_b", errors.b.centred_rms);
  set("error_b_max_abs", errors.b.max_abs);
  set("error_b_kl", errors.b.kl);
  if (!errors.weights) return;
  set("weights_drift", errors.weights->centred_rms);
  set("weights_max_abs", errors.weights->max_abs);
  set("weights_kl", errors.weights->kl);
}

References references_in(const std::vector<Lane>& lanes) {
  const auto comes = [&](Lane lane) {
    return std::find(lanes.begin(), lanes.end(), lane) != lanes.end();
  };
  if (!comes(Lane::reference)) return References::none;
  return comes(Lane::reference_b) ? References::of_each_side : References::shared;
}

ControlCheck::Retention control_retention(const std::vector<Lane>& lanes) {
  using enum ControlCheck::Retention;
  if (lanes.empty()) return digests;
  return std::find(lanes.begin(), lanes.end(), Lane::control) != lanes.end() ? rows : nothing;
}

}  // namespace

Dtype coarsest_dtype(const RunConfig& a, const RunConfig& b) {
  Dtype coarsest = Dtype::f32;
  const auto consider = [&](Dtype dtype) {
    if (significand_bits(dtype) < significand_bits(coarsest)) coarsest = dtype;
  };
  for (const RunConfig* config : {&a, &b}) {
    consider(config->activation_dtype);
    // An 8-bit cache is left out: its values are averaged over keys and rounded to finer types
    // before they reach a logit, so its step is no unit of the logits.
    if (const auto cache = plain_dtype(config->kv_dtype)) consider(*cache);
    consider(config->logits_dtype);
    if (config->matmul_plan.accumulator == Accumulator::bf16) consider(Dtype::bf16);
    if (config->matmul_plan.accumulator == Accumulator::f16) consider(Dtype::f16);
  }
  return coarsest;
}

struct ComparisonBuilder::State {
  ExperimentFacts facts;
  ComparePolicy policy;
  Dtype coarsest = Dtype::f32;
  std::map<Lane, LaneProgress> lanes;
  std::map<std::int64_t, StoredRowPointer> waiting_a;       // for b_forced
  std::map<std::int64_t, StoredRowPointer> waiting_forced;  // for a
  ControlCheck control;
  ReferenceCheck reference;
  std::map<std::int64_t, ReferenceErrors> early_errors;  // of steps that are not paired yet
  std::vector<std::shared_ptr<const StepComparison>> steps;
  std::vector<TapDrift> taps;
  RouteTracker routes;
  std::map<TokenId, std::string> pieces;
  std::int64_t generation = 0;

  State(ExperimentFacts known, ComparePolicy thresholds)
      : facts(std::move(known)),
        policy(thresholds),
        coarsest(coarsest_dtype(facts.config_a, facts.config_b)),
        control(control_retention(facts.lanes)),
        reference(references_in(facts.lanes)),
        routes(facts.routes) {
    for (const TapSpec& spec : facts.taps) taps.emplace_back().spec = spec;
  }

  [[nodiscard]] bool expects(Lane lane) const {
    return facts.lanes.empty() ||
           std::find(facts.lanes.begin(), facts.lanes.end(), lane) != facts.lanes.end();
  }
  [[nodiscard]] Result<void> check(const StepRecord& record);
  void pair(std::int64_t step, const StoredRow& a, const StoredRow& forced);
  void add_taps(const StoredRow& a, const StoredRow& forced);
  void note_free_token(std::int64_t step, TokenId token);
  void note_errors(Lane lane, std::int64_t step, const StoredRowPointer& row);
  void note_piece(TokenId token);
  void accept_a(const StepRecord& record);
  void accept_forced(const StepRecord& record);
};

Result<void> ComparisonBuilder::State::check(const StepRecord& record) {
  LaneProgress& progress = lanes[record.lane];
  const auto expected = static_cast<std::int64_t>(progress.view.tokens.size());
  if (record.step != expected) {
    return fail(ErrorKind::malformed,
                fmt::format("lane {}: step {} came where step {} was due; a lane's steps must come "
                            "in order without gaps",
                            lane_name(record.lane), record.step, expected));
  }
  const auto length = static_cast<std::int64_t>(record.logits.size());
  if (facts.vocabulary == 0) facts.vocabulary = length;
  if (length != facts.vocabulary) {
    return fail(
        ErrorKind::inconclusive,
        fmt::format("lane {}: {} logits where the other rows have {}; models with different "
                    "vocabularies cannot be compared row by row",
                    lane_name(record.lane), length, facts.vocabulary));
  }
  progress.view.lane = record.lane;
  progress.view.tokens.push_back(record.emitted);
  progress.started = true;
  note_piece(record.emitted);
  return {};
}

void ComparisonBuilder::State::note_piece(TokenId token) {
  if (facts.piece && !pieces.contains(token)) pieces.emplace(token, facts.piece(token));
}

void ComparisonBuilder::State::pair(std::int64_t step, const StoredRow& a,
                                    const StoredRow& forced) {
  StepMeasurement measured = measure_step(MetricInput{.a = baseline(LogitsRow(a.logits)),
                                                      .b = candidate(LogitsRow(forced.logits)),
                                                      .emitted = a.emitted,
                                                      .top_k = policy.top_k,
                                                      .coarsest_dtype = coarsest});
  auto comparison = std::make_shared<StepComparison>();
  comparison->step = step;
  comparison->token_a = a.emitted;
  comparison->choice_b = forced.choice;
  comparison->flipped = forced.choice != a.choice;
  comparison->rows_a = a.rows_in_flight;
  comparison->rows_b = forced.rows_in_flight;
  comparison->draw_a = a.draw;
  comparison->draw_b = forced.draw;
  comparison->metrics = std::move(measured.metrics);
  comparison->flips = std::move(measured.flips);
  if (const auto free = lanes.find(Lane::b); free != lanes.end()) {
    const auto& tokens = free->second.view.tokens;
    if (static_cast<std::size_t>(step) < tokens.size()) {
      comparison->token_b = tokens[static_cast<std::size_t>(step)];
    }
  }
  if (const auto early = early_errors.find(step); early != early_errors.end()) {
    set_errors(*comparison, early->second);
    early_errors.erase(early);
  }
  note_piece(forced.choice);
  for (const RankedToken& entry : comparison->metrics.top_a) note_piece(entry.token);
  for (const RankedToken& entry : comparison->metrics.top_b) note_piece(entry.token);
  steps.push_back(std::move(comparison));
  add_taps(a, forced);
}

void ComparisonBuilder::State::add_taps(const StoredRow& a, const StoredRow& forced) {
  for (std::size_t i = 0; i < taps.size(); ++i) {
    const TapFigures figures = compare_taps(a.taps[i], forced.taps[i]);
    taps[i].max_abs.push_back(figures.max_abs);
    taps[i].rms.push_back(figures.rms);
    taps[i].relative_rms.push_back(figures.relative_rms);
    taps[i].max_ulp.push_back(figures.max_ulp);
  }
}

void ComparisonBuilder::State::note_free_token(std::int64_t step, TokenId token) {
  const auto index = static_cast<std::size_t>(step);
  if (index >= steps.size()) return;
  auto updated = std::make_shared<StepComparison>(*steps[index]);
  updated->token_b = token;
  steps[index] = std::move(updated);
}

// Into the step's metrics, at once or when the step is paired.
void ComparisonBuilder::State::note_errors(Lane lane, std::int64_t step,
                                           const StoredRowPointer& row) {
  const auto errors = reference.accept(lane, step, row);
  if (!errors) return;
  const auto index = static_cast<std::size_t>(step);
  if (index >= steps.size()) {
    early_errors[step] = *errors;
    return;
  }
  auto updated = std::make_shared<StepComparison>(*steps[index]);
  set_errors(*updated, *errors);
  steps[index] = std::move(updated);
}

void ComparisonBuilder::State::accept_a(const StepRecord& record) {
  const StoredRowPointer row = store_row(record, facts.taps);
  note_errors(Lane::a, record.step, row);
  control.accept_a(record.step, row);
  if (const auto forced = waiting_forced.find(record.step); forced != waiting_forced.end()) {
    pair(record.step, *row, *forced->second);
    waiting_forced.erase(forced);
  } else if (expects(Lane::b_forced) && !lanes[Lane::b_forced].finished) {
    waiting_a.emplace(record.step, row);
  }
}

void ComparisonBuilder::State::accept_forced(const StepRecord& record) {
  const StoredRowPointer row = store_row(record, facts.taps);
  note_errors(Lane::b_forced, record.step, row);
  if (const auto a = waiting_a.find(record.step); a != waiting_a.end()) {
    pair(record.step, *a->second, *row);
    waiting_a.erase(a);
  } else if (!lanes[Lane::a].finished) {
    waiting_forced.emplace(record.step, row);
  }
}

ComparisonBuilder::ComparisonBuilder(ExperimentFacts facts, ComparePolicy policy)
    : m_state(std::make_unique<State>(std::move(facts), policy)) {}
ComparisonBuilder::~ComparisonBuilder() = default;

Result<void> ComparisonBuilder::accept(const StepRecord& record) {
  if (auto checked = m_state->check(record); !checked) return checked;
  if (auto tracked = m_state->routes.accept(record); !tracked) return tracked;
  switch (record.lane) {
    case Lane::a:
      m_state->accept_a(record);
      break;
    case Lane::b_forced:
      m_state->accept_forced(record);
      break;
    case Lane::b:
      m_state->note_free_token(record.step, record.emitted);
      break;
    case Lane::control:
      m_state->control.accept_control(record.step, store_row(record, {}));
      break;
    case Lane::reference:
    case Lane::reference_b:
      m_state->note_errors(record.lane, record.step, store_row(record, {}));
      break;
  }
  return {};
}

void ComparisonBuilder::finish_lane(Lane lane, TraceState state, std::string stop) {
  LaneProgress& progress = m_state->lanes[lane];
  progress.view.lane = lane;
  progress.view.state = state;
  progress.view.stop = std::move(stop);
  progress.started = true;
  progress.finished = true;
  if (lane == Lane::b_forced) m_state->waiting_a.clear();
  if (lane == Lane::a) m_state->waiting_forced.clear();
  if (lane == Lane::control) m_state->control.stop_waiting();
  if (lane != Lane::b && lane != Lane::control) {
    m_state->reference.stop_waiting(lane);
  }
}

std::int64_t ComparisonBuilder::compared_steps() const {
  return static_cast<std::int64_t>(m_state->steps.size());
}

std::size_t ComparisonBuilder::rows_waiting() const {
  return m_state->waiting_a.size() + m_state->waiting_forced.size() +
         m_state->control.rows_waiting() + m_state->reference.rows_waiting();
}

std::shared_ptr<const StepComparison> ComparisonBuilder::step(std::int64_t index) const {
  if (index < 0 || index >= compared_steps()) return nullptr;
  return m_state->steps[static_cast<std::size_t>(index)];
}

std::vector<StepTapValues> ComparisonBuilder::tap_values(std::int64_t index) const {
  const auto at = static_cast<std::size_t>(index);
  std::vector<StepTapValues> values;
  for (const TapDrift& tap : m_state->taps) {
    values.push_back({.max_abs = tap.max_abs[at],
                      .rms = tap.rms[at],
                      .relative_rms = tap.relative_rms[at],
                      .max_ulp = tap.max_ulp[at]});
  }
  return values;
}

std::vector<RouteFlip> ComparisonBuilder::route_flips(std::int64_t index) const {
  std::vector<RouteFlip> flips;
  for (const RouteFlip& flip : m_state->routes.result().flips) {
    if (flip.step == index) flips.push_back(flip);
  }
  return flips;
}

ComparisonPointer ComparisonBuilder::snapshot(TraceState state) const {
  auto comparison = std::make_shared<Comparison>();
  comparison->generation = ++m_state->generation;
  comparison->state = state;
  comparison->policy = m_state->policy;
  comparison->steps = m_state->steps;
  comparison->taps = m_state->taps;
  comparison->routes = m_state->routes.result();
  for (const auto& [lane, progress] : m_state->lanes) {
    if (progress.started) comparison->lanes.push_back(progress.view);
  }
  const ControlCheck& control = m_state->control;
  comparison->control = {.present = control.present(),
                         .steps = control.compared(),
                         .max_abs = control.max_abs(),
                         .bits_equal = control.present() && control.bits_equal()};
  for (const auto& [id, bytes] : m_state->pieces) comparison->pieces.push_back({id, bytes});
  conclude(*comparison, m_state->facts);
  return comparison;
}

}  // namespace driftscope
