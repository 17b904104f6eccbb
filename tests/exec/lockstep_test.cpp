// SPDX-License-Identifier: Apache-2.0
#include "engine/exec/lockstep.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/exec/sampler.h"
#include "tests/exec/recording.h"
#include "tests/exec/tiny_checkpoint.h"

namespace driftscope::test {
namespace {

constexpr std::int64_t kVocabulary = 160;

std::shared_ptr<const ModelCheckpoint> model() {
  static const auto checkpoint = tiny_checkpoint({});
  return checkpoint;
}

// Two configurations whose tokens part within 40 steps on this prompt.
LaneInput side_a() {
  LaneInput input{.model = model(), .prompt = some_ids(12, kVocabulary, 3)};
  input.config.threads = 1;
  return input;
}
LaneInput side_b() {
  LaneInput input = side_a();
  input.config.activation_dtype = Dtype::bf16;
  input.config.kv_dtype = KvDtype::bf16;
  return input;
}

struct Outcome {
  RecordingSink sink;
  LockstepSummary summary;
};
Outcome run(const LockstepRequest& request) {
  Outcome outcome;
  auto done = run_lockstep(request, outcome.sink, {}, {});
  EXPECT_TRUE(done) << (done ? "" : done.error().message);
  if (done) outcome.summary = *done;
  return outcome;
}

std::size_t first_difference(const std::vector<TokenId>& a, const std::vector<TokenId>& b) {
  std::size_t i = 0;
  while (i < a.size() && i < b.size() && a[i] == b[i]) ++i;
  return i;
}

class Parting : public testing::Test {
 protected:
  static const Outcome& outcome() {
    static const Outcome result = run({.a = side_a(), .b = side_b(), .steps = 40});
    return result;
  }
};

TEST_F(Parting, RecordsComeStepByStepInTheOrderOfLanes) {
  const auto& steps = outcome().sink.steps;
  ASSERT_EQ(steps.size(), 160U);
  const Lane order[] = {Lane::a, Lane::b_forced, Lane::b, Lane::control};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].lane, order[i % 4]);
    EXPECT_EQ(steps[i].step, static_cast<std::int64_t>(i / 4));
    EXPECT_EQ(steps[i].logits.size(), static_cast<std::size_t>(kVocabulary));
  }
}

TEST_F(Parting, TheForcedLaneIsFedTokensOfAAndReportsItsOwnChoice) {
  const auto a = outcome().sink.lane(Lane::a);
  const auto forced = outcome().sink.lane(Lane::b_forced);
  EXPECT_EQ(emitted_of(forced), emitted_of(a));
  bool chose_otherwise = false;
  for (std::size_t i = 0; i < forced.size(); ++i) {
    EXPECT_EQ(forced[i].choice, greedy_choice(forced[i].logits)) << i;
    chose_otherwise = chose_otherwise || forced[i].choice != forced[i].emitted;
  }
  EXPECT_TRUE(chose_otherwise);
}

TEST_F(Parting, BothLanesOfBAreEqualUntilTheTokensPartAndNotAfter) {
  const auto a = outcome().sink.lane(Lane::a);
  const auto b = outcome().sink.lane(Lane::b);
  const auto forced = outcome().sink.lane(Lane::b_forced);
  const std::size_t parted = first_difference(emitted_of(a), emitted_of(b));
  ASSERT_GT(parted, 0U);
  ASSERT_LT(parted, 39U) << "this prompt does not part; the test needs another";
  for (std::size_t i = 0; i <= parted; ++i) {
    EXPECT_TRUE(same_bits(b[i].logits, forced[i].logits)) << i;
  }
  EXPECT_FALSE(same_bits(b[parted + 1].logits, forced[parted + 1].logits));
}

// The copied state is as good as one made from scratch: bit for bit.
TEST_F(Parting, TheForcedLaneEqualsScoringPromptAndTokensOfA) {
  const auto forced = outcome().sink.lane(Lane::b_forced);
  LaneInput input = side_b();
  const std::size_t prompt = input.prompt.size();
  const auto tokens = emitted_of(outcome().sink.lane(Lane::a));
  input.prompt.insert(input.prompt.end(), tokens.begin(), tokens.end() - 1);
  const auto scored = score(input);
  ASSERT_EQ(scored.size(), prompt + 39);
  for (std::size_t i = 0; i < forced.size(); ++i) {
    EXPECT_TRUE(same_bits(forced[i].logits, scored[prompt - 1 + i].logits)) << i;
  }
}

TEST_F(Parting, TheFreeLaneEqualsARunOfBAlone) {
  const auto alone = generate(side_b(), 40);
  EXPECT_TRUE(same_logits(outcome().sink.lane(Lane::b), alone));
}

TEST_F(Parting, ControlRepeatsA) {
  EXPECT_TRUE(same_logits(outcome().sink.lane(Lane::a), outcome().sink.lane(Lane::control)));
}

TEST_F(Parting, SummariesNameLanesStepsAndPlans) {
  const auto& lanes = outcome().summary.lanes;
  ASSERT_EQ(lanes.size(), 4U);
  const Lane order[] = {Lane::a, Lane::b, Lane::b_forced, Lane::control};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(lanes[i].lane, order[i]);
    EXPECT_EQ(lanes[i].steps, 40);
    EXPECT_EQ(lanes[i].stop, StopReason::steps);
    EXPECT_FALSE(lanes[i].plans.empty());
    EXPECT_THAT(lanes[i].storage, testing::HasSubstr("weights copied"));
  }
  EXPECT_FALSE(outcome().summary.cancelled);
}

TEST(Lockstep, TapsCarryTheSpecifiedOperations) {
  for (const char* type : {"llama", "qwen2", "qwen3"}) {
    LaneInput input = side_a();
    input.model = tiny_checkpoint({.type = type});
    for (const TapLevel level : {TapLevel::logits, TapLevel::layers, TapLevel::all}) {
      const auto specs = tap_specs(input.model->description(), level);
      for (const RecordedStep& step : generate(input, 3, level)) {
        ASSERT_EQ(step.taps.size(), specs.size());
        for (std::size_t i = 0; i < specs.size(); ++i) {
          EXPECT_EQ(step.taps[i].layer, specs[i].layer);
          EXPECT_EQ(step.taps[i].operation, specs[i].operation);
          EXPECT_EQ(static_cast<std::int64_t>(step.taps[i].values.size()), specs[i].width);
        }
      }
    }
  }
}

TEST(Lockstep, LayerTapsAreEmbeddingLayersAndLastNorm) {
  const auto specs = tap_specs(model()->description(), TapLevel::layers);
  ASSERT_EQ(specs.size(), 5U);
  EXPECT_EQ(specs[0], (TapSpec{.layer = -1, .operation = "embd", .width = 64}));
  EXPECT_EQ(specs[1], (TapSpec{.layer = 0, .operation = "l_out", .width = 64}));
  EXPECT_EQ(specs[3], (TapSpec{.layer = 2, .operation = "l_out", .width = 64}));
  EXPECT_EQ(specs[4], (TapSpec{.layer = 3, .operation = "result_norm", .width = 64}));
}

TEST(Lockstep, LevelAllDoesNotChangeLogits) {
  EXPECT_TRUE(same_logits(generate(side_b(), 5), generate(side_b(), 5, TapLevel::all)));
}

TEST(Lockstep, EachSideStopsByItsOwnRules) {
  const auto tokens = emitted_of(generate(side_a(), 12));
  LockstepRequest request{.a = side_a(), .b = side_a(), .steps = 12};
  request.a.config.sampling.stop_tokens = {tokens[7].value};
  const auto stops = std::find(tokens.begin(), tokens.end(), tokens[7]) - tokens.begin();
  const Outcome outcome = run(request);
  const auto& lanes = outcome.summary.lanes;
  const auto ended = static_cast<std::int64_t>(stops) + 1;
  EXPECT_EQ(lanes[0].steps, ended);  // a
  EXPECT_EQ(lanes[0].stop, StopReason::end_of_sequence);
  EXPECT_EQ(lanes[1].steps, 12);  // b goes on
  EXPECT_EQ(lanes[1].stop, StopReason::steps);
  EXPECT_EQ(lanes[2].steps, ended);  // b_forced ends with a
  EXPECT_EQ(lanes[2].stop, StopReason::end_of_sequence);
  EXPECT_EQ(lanes[3].steps, ended);  // control
  EXPECT_TRUE(same_logits(outcome.sink.lane(Lane::b), generate(side_a(), 12)));
}

TEST(Lockstep, TheForcedLaneGoesOnWhenBStopsFirst) {
  const auto tokens = emitted_of(generate(side_a(), 12));
  LockstepRequest request{.a = side_a(), .b = side_a(), .steps = 12};
  request.b.config.sampling.stop_tokens = {tokens[0].value};
  const Outcome outcome = run(request);
  EXPECT_EQ(outcome.summary.lanes[1].steps, 1);
  EXPECT_EQ(outcome.summary.lanes[2].steps, 12);
  EXPECT_TRUE(same_logits(outcome.sink.lane(Lane::b_forced), outcome.sink.lane(Lane::a)));
}

TEST(Lockstep, EndOfSequenceCanBeIgnored) {
  const auto tokens = emitted_of(generate(side_a(), 6));
  LaneInput input = side_a();
  input.model = tiny_checkpoint({.eos = {tokens[0].value}});
  EXPECT_EQ(generate(input, 6).size(), 1U);
  input.config.sampling.ignore_eos = true;
  EXPECT_EQ(emitted_of(generate(input, 6)), tokens);
}

TEST(Lockstep, StopStringsEndALane) {
  const auto tokens = emitted_of(generate(side_a(), 6));
  LockstepRequest request{.a = side_a(), .b = side_a(), .steps = 6};
  request.decode_text = [](const std::vector<TokenId>& emitted) {
    std::string text;
    for (const TokenId id : emitted) text += fmt::format("<{}>", id.value);
    return text;
  };
  // A stop string across two tokens.
  request.a.config.sampling.stop_strings = {
      fmt::format("{}><{}", tokens[1].value, tokens[2].value)};
  const Outcome outcome = run(request);
  EXPECT_EQ(outcome.summary.lanes[0].stop, StopReason::stop_string);
  EXPECT_EQ(outcome.summary.lanes[0].steps, 3);
}

TEST(Lockstep, AFullContextEndsALane) {
  LockstepRequest request{.a = side_a(), .b = side_a(), .steps = 30};
  request.a.model = request.b.model = tiny_checkpoint({.max_positions = 16});
  request.b.prompt.resize(10);
  const Outcome outcome = run(request);
  // 12 prompt tokens and 4 more fill 16 positions; the row after the last gives one token more.
  EXPECT_EQ(outcome.summary.lanes[0].steps, 5);
  EXPECT_EQ(outcome.summary.lanes[0].stop, StopReason::context_full);
  EXPECT_EQ(outcome.summary.lanes[1].steps, 7);
  EXPECT_EQ(outcome.summary.lanes[2].steps, 5);
}

TEST(Lockstep, SamplingFollowsSeedAndStep) {
  LaneInput input = side_a();
  input.config.sampling.temperature = 1.0;
  input.config.sampling.seed = 5;
  const auto first = emitted_of(generate(input, 20));
  EXPECT_EQ(first, emitted_of(generate(input, 20)));
  EXPECT_NE(first, emitted_of(generate(side_a(), 20)));
  // Neighbours take nothing from this request's stream.
  LaneInput among = input;
  among.config.neighbours = 2;
  among.neighbour_prompts = {some_ids(4, kVocabulary, 6), some_ids(5, kVocabulary, 7)};
  EXPECT_EQ(first, emitted_of(generate(among, 20)));
  input.config.sampling.seed = 6;
  EXPECT_NE(first, emitted_of(generate(input, 20)));
}

TEST(Lockstep, PrefillScoringRecomputesAndForcesAtTheEnd) {
  LockstepRequest request{.a = side_a(), .b = side_b(), .steps = 20};
  const Outcome decode = run(request);
  request.b.config.scoring = Scoring::prefill;
  for (const std::int64_t chunk : {0, 7, 16}) {
    request.b.config.prefill_chunk = chunk;
    const Outcome prefill = run(request);
    // Under invariant plans the two ways of computing give the same bits.
    for (const Lane lane : {Lane::a, Lane::b, Lane::b_forced, Lane::control}) {
      EXPECT_TRUE(same_logits(decode.sink.lane(lane), prefill.sink.lane(lane))) << lane_name(lane);
      EXPECT_EQ(emitted_of(decode.sink.lane(lane)), emitted_of(prefill.sink.lane(lane)));
    }
    const auto& steps = prefill.sink.steps;
    ASSERT_EQ(steps.size(), 80U);
    for (std::size_t i = 60; i < 80; ++i) {
      EXPECT_EQ(steps[i].lane, Lane::b_forced);
      EXPECT_EQ(steps[i].step, static_cast<std::int64_t>(i) - 60);
    }
  }
}

// A sink that asks for a stop after so many records.
class StoppingSink final : public TraceSink {
 public:
  StoppingSink(std::stop_source& source, std::size_t after) : m_source(source), m_after(after) {}
  [[nodiscard]] Result<void> accept(const StepRecord&) override {
    if (++records == m_after) m_source.request_stop();
    return {};
  }
  std::size_t records = 0;

 private:
  std::stop_source& m_source;
  std::size_t m_after;
};

TEST(Lockstep, AStopEndsTheRunAndKeepsWhatWasDelivered) {
  std::stop_source source;
  StoppingSink sink(source, 9);  // a's third record
  const auto done =
      run_lockstep({.a = side_a(), .b = side_b(), .steps = 40}, sink, {}, source.get_token());
  ASSERT_TRUE(done);
  EXPECT_TRUE(done->cancelled);
  EXPECT_EQ(sink.records, 9U);
  EXPECT_EQ(done->lanes[0].steps, 3);
  EXPECT_EQ(done->lanes[0].stop, StopReason::cancelled);
  EXPECT_EQ(done->lanes[1].steps, 2);
}

class FailingSink final : public TraceSink {
 public:
  [[nodiscard]] Result<void> accept(const StepRecord&) override {
    return fail(ErrorKind::output, "disk full");
  }
};

TEST(Lockstep, AnErrorOfTheSinkEndsTheRun) {
  FailingSink sink;
  const auto done = run_lockstep({.a = side_a(), .b = side_b(), .steps = 4}, sink, {}, {});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, ErrorKind::output);
  EXPECT_EQ(done.error().message, "disk full");
}

TEST(Lockstep, ProgressNamesPhaseAndSteps) {
  RecordingSink sink;
  std::vector<std::string> seen;
  const auto note = [&](const RunProgress& p) {
    seen.push_back(fmt::format("{} {}/{}", p.phase, p.done, p.total));
  };
  ASSERT_TRUE(
      run_lockstep({.a = side_a(), .b = side_a(), .steps = 2, .control = false}, sink, note, {}));
  EXPECT_EQ(seen, (std::vector<std::string>{"load 0/1", "load 1/1", "prefill 0/2", "decode 1/2",
                                            "decode 1/2", "decode 2/2"}));
}

struct BadRequest {
  const char* name;
  void (*spoil)(LockstepRequest&);
  ErrorKind kind;
  const char* message;
};
void PrintTo(const BadRequest& bad, std::ostream* out) { *out << bad.name; }

class BadRequests : public testing::TestWithParam<BadRequest> {};

TEST_P(BadRequests, AreRefusedInOneLine) {
  LockstepRequest request{.a = side_a(), .b = side_b(), .steps = 4};
  GetParam().spoil(request);
  RecordingSink sink;
  const auto done = run_lockstep(request, sink, {}, {});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, GetParam().kind);
  EXPECT_THAT(done.error().message, testing::HasSubstr(GetParam().message));
  EXPECT_THAT(done.error().message, testing::Not(testing::HasSubstr("\n")));
  EXPECT_TRUE(sink.steps.empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, BadRequests,
    testing::Values(
        BadRequest{"no_steps", [](LockstepRequest& r) { r.steps = 0; }, ErrorKind::usage,
                   "steps 0"},
        BadRequest{"no_prompt", [](LockstepRequest& r) { r.a.prompt.clear(); }, ErrorKind::usage,
                   "prompt of side a is empty"},
        BadRequest{"id_too_high", [](LockstepRequest& r) { r.b.prompt[3] = TokenId{160}; },
                   ErrorKind::usage, "id 160 at position 3"},
        BadRequest{"id_negative", [](LockstepRequest& r) { r.b.prompt[0] = TokenId{-1}; },
                   ErrorKind::usage, "id -1 at position 0"},
        BadRequest{"too_long",
                   [](LockstepRequest& r) { r.a.prompt = some_ids(257, kVocabulary, 1); },
                   ErrorKind::usage, "257 tokens"},
        BadRequest{"neighbours_missing", [](LockstepRequest& r) { r.a.config.neighbours = 2; },
                   ErrorKind::usage, "neighbours=2, but 0"},
        BadRequest{"neighbour_empty",
                   [](LockstepRequest& r) {
                     r.b.config.neighbours = 1;
                     r.b.neighbour_prompts = {{}};
                   },
                   ErrorKind::usage, "neighbour 0 of side b is empty"},
        BadRequest{"other_vocabulary",
                   [](LockstepRequest& r) { r.b.model = tiny_checkpoint({.vocabulary = 170}); },
                   ErrorKind::inconclusive, "160 (a) and 170 (b)"},
        BadRequest{"no_tokenizer",
                   [](LockstepRequest& r) { r.a.config.sampling.stop_strings = {"x"}; },
                   ErrorKind::usage, "stop_strings"},
        BadRequest{"cuda", [](LockstepRequest& r) { r.b.config.backend = BackendKind::cuda; },
                   ErrorKind::engine, "backend=host"}));

}  // namespace
}  // namespace driftscope::test
