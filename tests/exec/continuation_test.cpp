// SPDX-License-Identifier: Apache-2.0
// Scoring what was answered to a prompt: the bits of the run that answered so.
#include <gtest/gtest.h>

#include "tests/exec/recording.h"
#include "tests/exec/tiny_checkpoint.h"

namespace driftscope::test {
namespace {

constexpr std::int64_t kVocabulary = 160;

LaneInput input_of(const RunConfig& config) {
  static const auto model = tiny_checkpoint({.type = "qwen2"});
  LaneInput input{.model = model, .config = config, .prompt = some_ids(40, kVocabulary, 1)};
  for (std::int64_t i = 0; i < config.neighbours; ++i) {
    input.neighbour_prompts.push_back(
        some_ids(3 + 5 * i, kVocabulary, 20 + static_cast<unsigned>(i)));
  }
  return input;
}

RunConfig shape_dependent() {
  RunConfig config;
  config.matmul_policy = PlanPolicy::shape_dependent;
  config.sampling.ignore_eos = true;
  config.threads = 1;
  return config;
}

TEST(Continuation, HasTheBitsOfTheRunThatEmittedIt) {
  std::vector<RunConfig> configs(5, shape_dependent());
  configs[1].neighbours = 5;
  configs[2].prefill_chunk = 16;
  configs[3].speculative_tokens = 3;
  configs[4].neighbours = 5;
  configs[4].arrival_order = ArrivalOrder::first;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const LaneInput input = input_of(configs[i]);
    const auto ran = generate(input, 8);
    ASSERT_EQ(ran.size(), 8U);
    LaneInput whole = input;
    for (std::size_t step = 0; step + 1 < ran.size(); ++step) {
      whole.prompt.push_back(ran[step].emitted);
    }
    RecordingSink sink;
    const auto prompt = static_cast<std::int64_t>(input.prompt.size());
    const auto summary = score_continuation(whole, prompt, TapLevel::logits, sink, {}, {});
    ASSERT_TRUE(summary) << summary.error().message;
    EXPECT_TRUE(same_logits(sink.lane(Lane::a), ran)) << i;
    // Token by token from the first on is another shape, and other bits.
    RecordingSink apart;
    ASSERT_TRUE(score_sequence(whole, TapLevel::logits, apart, {}, {}));
    auto rows = apart.lane(Lane::a);
    rows.erase(rows.begin(), rows.begin() + (prompt - 1));
    ASSERT_EQ(rows.size(), ran.size());
    EXPECT_FALSE(same_bits(rows[0].logits, ran[0].logits)) << i;
  }
}

TEST(Continuation, APromptIsAPartOfTheSequence) {
  const LaneInput input = input_of(shape_dependent());
  RecordingSink sink;
  for (const std::int64_t length : {std::int64_t{0}, std::int64_t{41}}) {
    const auto summary = score_continuation(input, length, TapLevel::logits, sink, {}, {});
    ASSERT_FALSE(summary);
    EXPECT_EQ(summary.error().kind, ErrorKind::usage);
  }
  ASSERT_TRUE(score_continuation(input, 40, TapLevel::logits, sink, {}, {}));
  EXPECT_EQ(sink.steps.size(), 1U);
}

}  // namespace
}  // namespace driftscope::test
