// SPDX-License-Identifier: Apache-2.0
// Synthetic runs for the tests of the comparison: rows by hand, no model.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/comparison_builder.h"

namespace driftscope::test {

using Row = std::vector<float>;

inline TokenId best_of(const Row& row) {
  const auto best = top_tokens(row, 1);
  return best.empty() ? TokenId{0} : best.front().token;
}

inline ExperimentFacts facts_of(std::int64_t vocabulary, std::int64_t steps) {
  ExperimentFacts facts;
  facts.vocabulary = vocabulary;
  facts.planned_steps = steps;
  facts.prompt_a = facts.prompt_b = {TokenId{1}, TokenId{2}};
  facts.prompt_text = "In the";
  facts.model_a = facts.model_b = "synthetic";
  facts.model_sha256_a = facts.model_sha256_b = std::string(64, 'a');
  facts.layers = 2;
  facts.hidden = 64;
  facts.intermediate = 128;
  facts.command = "driftscope run --model m --prompt 'In the'";
  facts.piece = [](TokenId id) { return std::string(1, static_cast<char>('a' + id.value % 26)); };
  return facts;
}

// What one lane gives at one step.
struct Record {
  Row logits;
  TokenId choice{};
  TokenId emitted{};
  std::map<std::pair<int, std::string>, Row> taps;
  std::int64_t rows_in_flight = 0;
  std::optional<Draw> draw = {};
};

inline Result<void> deliver(ComparisonBuilder& builder, Lane lane, std::int64_t step,
                            const Record& record) {
  std::vector<TensorTap> taps;
  for (const auto& [place, values] : record.taps) {
    taps.push_back({.layer = place.first, .operation = place.second, .values = values});
  }
  return builder.accept(StepRecord{.lane = lane,
                                   .step = step,
                                   .choice = record.choice,
                                   .emitted = record.emitted,
                                   .logits = record.logits,
                                   .taps = taps,
                                   .timing_ns = 0,
                                   .rows_in_flight = record.rows_in_flight,
                                   .draw = record.draw ? &*record.draw : nullptr});
}

// A pair of runs, greedy unless choices are set by hand.
struct Script {
  ExperimentFacts facts;
  ComparePolicy policy;
  std::vector<Record> a, forced, b, control, reference, reference_b;
  TraceState state = TraceState::complete;
  std::string stop_a = "steps", stop_b = "steps";

  // One more step of every lane: A's row and B's row after A's tokens. B's free lane takes B's
  // choice; rows of later steps stand for whatever it then computes.
  void add(const Row& row_a, const Row& row_b) {
    const TokenId choice_a = best_of(row_a);
    const TokenId choice_b = best_of(row_b);
    a.push_back({row_a, choice_a, choice_a, {}, 0, {}});
    forced.push_back({row_b, choice_b, choice_a, {}, 0, {}});
    b.push_back({row_b, choice_b, choice_b, {}, 0, {}});
    control.push_back({row_a, choice_a, choice_a, {}, 0, {}});
  }

  [[nodiscard]] std::unique_ptr<ComparisonBuilder> builder() const {
    auto made = std::make_unique<ComparisonBuilder>(facts, policy);
    const std::size_t steps = std::max({a.size(), forced.size(), b.size(), control.size()});
    for (std::size_t i = 0; i < steps; ++i) {
      const auto step = static_cast<std::int64_t>(i);
      const auto give = [&](Lane lane, const std::vector<Record>& records) {
        if (i < records.size() && !deliver(*made, lane, step, records[i])) std::abort();
      };
      give(Lane::a, a);
      give(Lane::b_forced, forced);
      give(Lane::b, b);
      give(Lane::control, control);
      give(Lane::reference, reference);
      give(Lane::reference_b, reference_b);
    }
    const auto finish = [&](Lane lane, const std::vector<Record>& records,
                            const std::string& stop) {
      if (!records.empty()) made->finish_lane(lane, state, stop);
    };
    finish(Lane::a, a, stop_a);
    finish(Lane::b_forced, forced, stop_a);
    finish(Lane::b, b, stop_b);
    finish(Lane::control, control, stop_a);
    finish(Lane::reference, reference, stop_a);
    finish(Lane::reference_b, reference_b, stop_a);
    return made;
  }
  [[nodiscard]] ComparisonPointer run() const { return builder()->snapshot(state); }
};

inline const Finding* find(const Comparison& comparison, std::string_view id) {
  for (const Finding& finding : comparison.findings) {
    if (finding.id == id) return &finding;
  }
  return nullptr;
}

inline const TierCheck* find(const Comparison& comparison, Tier tier) {
  for (const TierCheck& check : comparison.tiers) {
    if (check.tier == tier) return &check;
  }
  return nullptr;
}

}  // namespace driftscope::test
