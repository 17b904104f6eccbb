// SPDX-License-Identifier: Apache-2.0
// Keeps what a run emits, and short forms of starting one.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/exec/lockstep.h"

namespace driftscope::test {

struct RecordedTap {
  int layer = 0;
  std::string operation;
  std::vector<float> values;
};

struct RecordedStep {
  Lane lane = Lane::a;
  std::int64_t step = 0;
  TokenId choice{};
  TokenId emitted{};
  std::vector<float> logits;
  std::vector<RecordedTap> taps;
  std::int64_t rows_in_flight = 0;
  std::optional<Draw> draw;
  StoredRoutes routes = {};
};

class RecordingSink final : public TraceSink {
 public:
  [[nodiscard]] Result<void> accept(const StepRecord& record) override {
    RecordedStep step{.lane = record.lane,
                      .step = record.step,
                      .choice = record.choice,
                      .emitted = record.emitted,
                      .logits = {record.logits.begin(), record.logits.end()},
                      .taps = {},
                      .rows_in_flight = record.rows_in_flight,
                      .draw = {},
                      .routes = StoredRoutes(record.routes)};
    if (record.draw != nullptr) step.draw = *record.draw;
    for (const TensorTap& tap : record.taps) {
      step.taps.push_back({.layer = tap.layer,
                           .operation = std::string(tap.operation),
                           .values = {tap.values.begin(), tap.values.end()}});
    }
    steps.push_back(std::move(step));
    return {};
  }
  [[nodiscard]] std::vector<RecordedStep> lane(Lane wanted) const {
    std::vector<RecordedStep> result;
    for (const RecordedStep& step : steps) {
      if (step.lane == wanted) result.push_back(step);
    }
    return result;
  }
  std::vector<RecordedStep> steps;  // in the order of arrival
};

// Bits, so that -0 and +0 differ and NaN equals itself.
[[nodiscard]] inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) return false;
  }
  return true;
}

[[nodiscard]] inline bool same_logits(const std::vector<RecordedStep>& a,
                                      const std::vector<RecordedStep>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!same_bits(a[i].logits, b[i].logits)) return false;
  }
  return true;
}

[[nodiscard]] inline std::vector<TokenId> ids(std::initializer_list<std::int32_t> values) {
  std::vector<TokenId> result;
  for (const std::int32_t value : values) result.push_back(TokenId{value});
  return result;
}
// `count` ids below `vocabulary`, a function of the seed.
[[nodiscard]] inline std::vector<TokenId> some_ids(std::int64_t count, std::int64_t vocabulary,
                                                   std::uint64_t seed) {
  std::vector<TokenId> result;
  std::uint64_t state = seed * 2654435761U + 12345U;
  for (std::int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    result.push_back(TokenId{
        static_cast<std::int32_t>((state >> 33U) % static_cast<std::uint64_t>(vocabulary))});
  }
  return result;
}

[[nodiscard]] inline std::vector<RecordedStep> score(const LaneInput& input,
                                                     TapLevel taps = TapLevel::logits) {
  RecordingSink sink;
  const auto done = score_sequence(input, taps, sink, {}, {});
  EXPECT_TRUE(done) << (done ? "" : done.error().message);
  return sink.steps;
}

// Lane A alone (B is A): greedy or sampled continuation.
[[nodiscard]] inline std::vector<RecordedStep> generate(const LaneInput& input, std::int64_t steps,
                                                        TapLevel taps = TapLevel::logits) {
  RecordingSink sink;
  const auto done = run_lockstep(
      {.a = input, .b = input, .steps = steps, .control = false, .taps = taps, .decode_text = {}},
      sink, {}, {});
  EXPECT_TRUE(done) << (done ? "" : done.error().message);
  return sink.lane(Lane::a);
}

[[nodiscard]] inline std::vector<TokenId> emitted_of(const std::vector<RecordedStep>& steps) {
  std::vector<TokenId> result;
  for (const RecordedStep& step : steps) result.push_back(step.emitted);
  return result;
}

}  // namespace driftscope::test
