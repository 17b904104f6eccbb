// SPDX-License-Identifier: Apache-2.0
// The timetable: rows in flight at each step, worked out by hand from schedule.h.
#include "engine/exec/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/exec/drafter.h"
#include "engine/exec/philox.h"
#include "tests/exec/recording.h"
#include "tests/exec/tiny_checkpoint.h"

namespace driftscope::test {
namespace {

using testing::ElementsAre;

constexpr std::int64_t kVocabulary = 160;

// A prompt of 40 tokens; neighbours with prompts of 3, 8, 13 … tokens.
LaneInput input_of(const RunConfig& config) {
  static const auto model = tiny_checkpoint({.type = "qwen2"});
  LaneInput input{.model = model, .config = config, .prompt = some_ids(40, kVocabulary, 1)};
  for (std::int64_t i = 0; i < config.neighbours; ++i) {
    input.neighbour_prompts.push_back(
        some_ids(3 + 5 * i, kVocabulary, 20 + static_cast<unsigned>(i)));
  }
  return input;
}

RunConfig config_of(std::int64_t neighbours) {
  RunConfig config;
  config.neighbours = neighbours;
  config.sampling.ignore_eos = true;
  config.threads = 1;
  return config;
}

std::vector<std::int64_t> rows_of(const RunConfig& config, std::int64_t steps) {
  std::vector<std::int64_t> rows;
  for (const RecordedStep& step : generate(input_of(config), steps)) {
    rows.push_back(step.rows_in_flight);
  }
  return rows;
}

TEST(RowsInFlight, Alone) { EXPECT_THAT(rows_of(config_of(0), 3), ElementsAre(40, 1, 1)); }

TEST(RowsInFlight, TogetherAllPromptsAreOneCall) {
  EXPECT_THAT(rows_of(config_of(2), 4), ElementsAre(40 + 3 + 8, 3, 3, 3));
}

TEST(RowsInFlight, FirstNeighboursJoinOnePerStepWithTheirPrompts) {
  RunConfig config = config_of(2);
  config.arrival_order = ArrivalOrder::first;
  EXPECT_THAT(rows_of(config, 5), ElementsAre(40, 1 + 3, 1 + 1 + 8, 3, 3));
}

TEST(RowsInFlight, LastThePromptRunsBesideTheDecodeRowsOfTheNeighbours) {
  RunConfig config = config_of(2);
  config.arrival_order = ArrivalOrder::last;
  EXPECT_THAT(rows_of(config, 3), ElementsAre(40 + 1 + 1, 3, 3));
}

TEST(RowsInFlight, NeighboursLeaveOnePerStep) {
  RunConfig config = config_of(2);
  config.neighbour_steps = 2;  // neighbour 0 is gone from step 3 on, neighbour 1 from step 4 on
  EXPECT_THAT(rows_of(config, 6), ElementsAre(51, 3, 3, 2, 1, 1));
}

TEST(RowsInFlight, NeighboursThatJoinAlsoLeave) {
  RunConfig config = config_of(2);
  config.arrival_order = ArrivalOrder::first;
  config.neighbour_steps = 2;  // neighbour 0 is there at steps 1 and 2, neighbour 1 at 2 and 3
  EXPECT_THAT(rows_of(config, 6), ElementsAre(40, 1 + 3, 1 + 1 + 8, 1 + 1, 1, 1));
}

TEST(RowsInFlight, PromptChunksRunBesideDecodeRows) {
  RunConfig config = config_of(2);
  config.prefill_chunk = 16;
  // Calls: 16 of this prompt; 16; its last 8, 3 and 5 of the 8. Then 1, 1 and the last 3; then 1
  // each.
  EXPECT_THAT(rows_of(config, 4), ElementsAre(8 + 3 + 5, 1 + 1 + 3, 3, 3));
  config.batch_position = 2;
  // Calls: 3, 8 and 5; 1, 1 and 16; 1, 1 and 16; 1, 1 and the last 3.
  EXPECT_THAT(rows_of(config, 3), ElementsAre(1 + 1 + 3, 3, 3));
}

TEST(RowsInFlight, ChunksOfALatePrompt) {
  RunConfig config = config_of(2);
  config.prefill_chunk = 5;
  config.arrival_order = ArrivalOrder::last;
  // 8 calls of 5 rows and the decode rows of both neighbours.
  EXPECT_THAT(rows_of(config, 2), ElementsAre(5 + 1 + 1, 3));
}

TEST(RowsInFlight, AWarmPrefixLeavesTheRest) {
  RunConfig config = config_of(1);
  config.prefix_cache = PrefixCache::warm;  // 32 of 40
  EXPECT_THAT(rows_of(config, 2), ElementsAre(8 + 3, 2));
}

TEST(RowsInFlight, DecodeCallsArePaddedToTheNextGraphSize) {
  RunConfig config = config_of(2);
  config.graph_sizes = {8, 4};
  EXPECT_THAT(rows_of(config, 3), ElementsAre(51, 4, 4));
  config.neighbours = 5;  // prompts of 3, 8, 13, 18, 23
  EXPECT_THAT(rows_of(config, 2), ElementsAre(40 + 65, 8));
  config.neighbours = 8;  // and 28, 33, 38: 9 rows, beyond the largest size
  EXPECT_THAT(rows_of(config, 2), ElementsAre(40 + 65 + 99, 9));
}

TEST(RowsInFlight, PaddingLongerThanTheContext) {
  RunConfig config = config_of(0);
  config.graph_sizes = {80};
  LaneInput input = input_of(config);
  input.model = tiny_checkpoint({.max_positions = 32});
  input.prompt.resize(4);
  const auto padded = generate(input, 3);
  ASSERT_EQ(padded.size(), 3U);
  EXPECT_EQ(padded[1].rows_in_flight, 80);
  input.config.graph_sizes.clear();
  EXPECT_TRUE(same_logits(padded, generate(input, 3)));
}

TEST(RowsInFlight, SpeculationGivesEachRequestItsDrafts) {
  RunConfig config = config_of(2);
  config.speculative_tokens = 3;
  EXPECT_THAT(rows_of(config, 5), ElementsAre(51, 12, 12, 12, 12));
  config.graph_sizes = {16};
  EXPECT_THAT(rows_of(config, 3), ElementsAre(51, 16, 16));
}

TEST(RowsInFlight, DraftsEndWithTheContext) {
  RunConfig config = config_of(0);
  config.speculative_tokens = 7;
  LaneInput input = input_of(config);
  input.model = tiny_checkpoint({.max_positions = 32});
  input.prompt.resize(28);
  const auto steps = generate(input, 10);
  // Positions 28 … 31 are left, and the step whose token finds no room.
  ASSERT_EQ(steps.size(), 5U);
  EXPECT_EQ(steps[1].rows_in_flight, 4);
}

TEST(RowsInFlight, AScorePassKnowsNoTimetable) {
  RunConfig config = config_of(2);
  config.scoring = Scoring::prefill;
  config.arrival_order = ArrivalOrder::first;
  config.neighbour_steps = 1;
  config.graph_sizes = {64};
  config.speculative_tokens = 2;
  EXPECT_THAT(rows_of(config, 3), ElementsAre(51, 52, 53));
}

TEST(Drafter, CopiesWhatFollowedTheLastTwoTokens) {
  EXPECT_EQ(draft_tokens(ids({1, 2, 3, 1, 2}), 3), ids({3, 1, 2}));
  EXPECT_EQ(draft_tokens(ids({1, 2, 9, 1, 2, 8, 1, 2}), 2), ids({8, 1}));  // the latest place
}

TEST(Drafter, FallsBackToTheLastTokenAndToRepeatingIt) {
  EXPECT_EQ(draft_tokens(ids({4, 5, 6, 5}), 2), ids({6, 5}));
  EXPECT_EQ(draft_tokens(ids({1, 2, 3}), 2), ids({3, 3}));
  EXPECT_EQ(draft_tokens(ids({7}), 2), ids({7, 7}));
  EXPECT_EQ(draft_tokens(ids({7}), 0), ids({}));
}

TEST(Drafter, ContinuesALoop) {
  EXPECT_EQ(draft_tokens(ids({5, 9, 5, 9, 5}), 4), ids({9, 5, 9, 5}));
  EXPECT_EQ(draft_tokens(ids({3, 8, 8}), 3), ids({8, 8, 8}));
}

// Numbers of the shared stream with which the target's steps were drawn.
std::vector<std::int64_t> draws_of(RunConfig config, std::int64_t steps) {
  config.sampling.temperature = 1.0;
  config.sampling.seed = 5;
  config.sampling.seed_scope = SeedScope::shared_worker;
  std::vector<std::int64_t> numbers;
  for (const RecordedStep& step : generate(input_of(config), steps)) {
    EXPECT_TRUE(step.draw.has_value());
    std::int64_t number = 0;
    while (number < 100 &&
           step.draw->uniform != philox_uniform(5, static_cast<std::uint64_t>(number))) {
      ++number;
    }
    numbers.push_back(number);
  }
  return numbers;
}

TEST(SharedStream, EachRequestInFlightTakesANumberInBatchOrder) {
  EXPECT_THAT(draws_of(config_of(0), 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(draws_of(config_of(2), 4), ElementsAre(0, 3, 6, 9));
  RunConfig middle = config_of(2);
  middle.batch_position = 1;
  EXPECT_THAT(draws_of(middle, 4), ElementsAre(1, 4, 7, 10));
}

TEST(SharedStream, ArrivalAndLeavingChangeTheCount) {
  RunConfig joining = config_of(2);
  joining.batch_position = 2;
  joining.arrival_order = ArrivalOrder::first;
  // 0 alone; 1 goes to neighbour 0; 3 and 4 to both; 6 and 7.
  EXPECT_THAT(draws_of(joining, 4), ElementsAre(0, 2, 5, 8));
  RunConfig leaving = config_of(2);
  leaving.batch_position = 2;
  leaving.neighbour_steps = 1;  // both at step 1, neighbour 1 at step 2, none from step 3 on
  EXPECT_THAT(draws_of(leaving, 5), ElementsAre(2, 5, 7, 8, 9));
}

TEST(SharedStream, OnlyRowsWithAnOutputTakeNumbers) {
  RunConfig chunked = config_of(1);
  chunked.prefill_chunk = 8;
  chunked.batch_position = 1;
  // Calls: 3 and 5 rows (neighbour: 0); five decode rows beside the chunks (1 … 5), the last with
  // the end of this prompt (6).
  EXPECT_THAT(draws_of(chunked, 2), ElementsAre(6, 8));
  RunConfig padded = config_of(0);
  padded.graph_sizes = {8};
  EXPECT_THAT(draws_of(padded, 3), ElementsAre(0, 1, 2));
}

TEST(SharedStream, EveryVerifiedRowTakesANumber) {
  RunConfig config = config_of(1);
  config.speculative_tokens = 2;
  const auto numbers = draws_of(config, 3);
  // Step 0: this request 0, the neighbour 1. The call of step 1: 2, 3, 4 here, 5, 6, 7 there.
  EXPECT_EQ(numbers[0], 0);
  EXPECT_EQ(numbers[1], 2);
  EXPECT_TRUE(numbers[2] == 3 || numbers[2] == 8) << numbers[2];  // the draft was right, or not
}

TEST(RequestStream, NeighboursTakeNothing) {
  for (const std::int64_t neighbours : {0, 3}) {
    RunConfig config = config_of(neighbours);
    config.sampling.temperature = 1.0;
    config.sampling.seed = 5;
    const auto steps = generate(input_of(config), 4);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      EXPECT_EQ(steps[i].draw->uniform, philox_uniform(5, i));
    }
  }
}

}  // namespace
}  // namespace driftscope::test
