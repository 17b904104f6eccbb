// SPDX-License-Identifier: Apache-2.0
// Batch composition: what changes the rows in flight, and when that changes bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/exec/backend_factory.h"
#include "engine/exec/batch_engine.h"
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

RunConfig config_of(PlanPolicy policy) {
  RunConfig config;
  config.matmul_policy = policy;
  config.sampling.ignore_eos = true;
  config.threads = 1;
  return config;
}

std::vector<RecordedStep> run(const RunConfig& config) { return generate(input_of(config), 8); }

// Changes of composition by name.
struct Composition {
  const char* name;
  void (*apply)(RunConfig&);
};
void PrintTo(const Composition& composition, std::ostream* out) { *out << composition.name; }

class CompositionTest : public testing::TestWithParam<Composition> {};

TEST_P(CompositionTest, ChangesBitsUnderShapeDependent) {
  RunConfig config = config_of(PlanPolicy::shape_dependent);
  const auto alone = run(config);
  GetParam().apply(config);
  EXPECT_FALSE(same_logits(run(config), alone));
}

TEST_P(CompositionTest, ChangesNothingUnderInvariant) {
  for (const AttentionMode attention :
       {AttentionMode::eager, AttentionMode::flash, AttentionMode::split_kv_size}) {
    RunConfig config = config_of(PlanPolicy::invariant);
    config.attention = attention;
    config.attention_split_size = 16;
    const auto alone = run(config);
    ASSERT_EQ(alone.size(), 8U);
    GetParam().apply(config);
    const auto together = run(config);
    EXPECT_TRUE(same_logits(together, alone));
    EXPECT_EQ(emitted_of(together), emitted_of(alone));
  }
}

// Self-test 1, with draws from the stream that the requests share.
TEST_P(CompositionTest, AgainstItselfIsExactlyZero) {
  RunConfig config = config_of(PlanPolicy::shape_dependent);
  GetParam().apply(config);
  config.sampling.temperature = 1.0;
  config.sampling.seed_scope = SeedScope::shared_worker;
  const LaneInput input = input_of(config);
  RecordingSink sink;
  const auto done = run_lockstep({.a = input, .b = input, .steps = 8}, sink, {}, {});
  ASSERT_TRUE(done) << done.error().message;
  const auto a = sink.lane(Lane::a);
  ASSERT_EQ(a.size(), 8U);
  for (const Lane lane : {Lane::b, Lane::b_forced, Lane::control}) {
    const auto other = sink.lane(lane);
    EXPECT_TRUE(same_logits(other, a)) << lane_name(lane);
    EXPECT_EQ(emitted_of(other), emitted_of(a)) << lane_name(lane);
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(other[i].rows_in_flight, a[i].rows_in_flight) << lane_name(lane) << " " << i;
      EXPECT_EQ(other[i].draw->uniform, a[i].draw->uniform) << lane_name(lane) << " " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, CompositionTest,
    testing::Values(Composition{"neighbours", [](RunConfig& c) { c.neighbours = 5; }},
                    Composition{"chunked_prefill", [](RunConfig& c) { c.prefill_chunk = 7; }},
                    Composition{"warm_prefix",
                                [](RunConfig& c) { c.prefix_cache = PrefixCache::warm; }},
                    Composition{"neighbours_join",
                                [](RunConfig& c) {
                                  c.neighbours = 5;
                                  c.arrival_order = ArrivalOrder::first;
                                }},
                    Composition{"neighbours_decode_already",
                                [](RunConfig& c) {
                                  c.neighbours = 30;
                                  c.arrival_order = ArrivalOrder::last;
                                }},
                    Composition{"neighbours_leave",
                                [](RunConfig& c) {
                                  c.neighbours = 5;
                                  c.neighbour_steps = 2;
                                }},
                    Composition{"graph_padding", [](RunConfig& c) { c.graph_sizes = {16}; }},
                    Composition{"speculation", [](RunConfig& c) { c.speculative_tokens = 8; }},
                    Composition{"everything",
                                [](RunConfig& c) {
                                  c.neighbours = 5;
                                  c.batch_position = 2;
                                  c.arrival_order = ArrivalOrder::first;
                                  c.neighbour_steps = 2;
                                  c.prefill_chunk = 7;
                                  c.graph_sizes = {4, 16};
                                  c.speculative_tokens = 2;
                                  c.prefix_cache = PrefixCache::warm;
                                }},
                    Composition{"one_row_a_call", [](RunConfig& c) { c.prefill_chunk = 1; }},
                    Composition{"neighbours_last_and_chunked", [](RunConfig& c) {
                                  c.neighbours = 5;
                                  c.batch_position = 5;
                                  c.prefill_chunk = 8;
                                }}));

TEST(Batch, ThePositionAmongNeighboursChangesNothing) {
  for (const PlanPolicy policy : {PlanPolicy::invariant, PlanPolicy::shape_dependent}) {
    RunConfig config = config_of(policy);
    config.neighbours = 4;
    const auto first = run(config);
    for (const std::int64_t position : {1, 2, 4}) {
      config.batch_position = position;
      EXPECT_TRUE(same_logits(run(config), first)) << position;
    }
  }
}

TEST(Batch, AFixedNumberOfSplitsIsNotBatchInvariant) {
  RunConfig config = config_of(PlanPolicy::invariant);
  config.attention = AttentionMode::split_kv_count;
  const auto whole = run(config);
  config.prefill_chunk = 7;
  EXPECT_FALSE(same_logits(run(config), whole));
}

TEST(Batch, EverySequenceOfABatchGetsTheBitsItHasAlone) {
  // The target takes each prompt in turn, its neighbours have the others.
  RunConfig config = config_of(PlanPolicy::invariant);
  std::vector<std::vector<TokenId>> prompts;
  for (unsigned i = 0; i < 4; ++i) prompts.push_back(some_ids(4 + 9 * i, kVocabulary, 50 + i));
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    LaneInput alone = input_of(config);
    alone.prompt = prompts[i];
    LaneInput among = alone;
    among.config.neighbours = 3;
    among.config.batch_position = static_cast<std::int64_t>(i);
    among.neighbour_prompts = prompts;
    among.neighbour_prompts.erase(among.neighbour_prompts.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_TRUE(same_logits(generate(among, 6), generate(alone, 6))) << "prompt " << i;
  }
}

// Rows in flight, read off the plans that really ran.
std::vector<std::string> plans_of(const LaneInput& input) {
  RecordingSink sink;
  const auto done =
      run_lockstep({.a = input, .b = input, .steps = 3, .control = false}, sink, {}, {});
  EXPECT_TRUE(done);
  return done ? done->lanes[0].plans : std::vector<std::string>{};
}

TEST(Batch, PlansNameTheRowsInFlight) {
  using testing::Contains;
  using testing::StartsWith;
  RunConfig config = config_of(PlanPolicy::shape_dependent);
  config.neighbours = 2;  // prompts of 3 and 8 tokens beside the target's 40
  const auto plans = plans_of(input_of(config));
  EXPECT_THAT(plans, Contains(StartsWith("prefill q_proj m=51 n=64 k=64: ")));
  EXPECT_THAT(plans, Contains(StartsWith("prefill lm_head m=3 n=160 k=64: ")));
  EXPECT_THAT(plans, Contains(StartsWith("decode down_proj m=3 n=64 k=96: ")));
  EXPECT_THAT(plans, Contains(StartsWith("decode attention: flash ")));
}

// Tokens by the earlier request and by this one; one plan, so one line with both.
TEST(Batch, AWarmPrefixIsTheLargestMultipleOf16BelowThePrompt) {
  using testing::Contains;
  using testing::StartsWith;
  RunConfig config = config_of(PlanPolicy::invariant);
  config.prefix_cache = PrefixCache::warm;
  const auto plans_for = [&](std::int64_t tokens) {
    LaneInput input = input_of(config);
    input.prompt = some_ids(tokens, kVocabulary, 1);
    return plans_of(input);
  };
  EXPECT_THAT(plans_for(40), Contains(StartsWith("prefill q_proj m=8..32 ")));
  EXPECT_THAT(plans_for(49), Contains(StartsWith("prefill q_proj m=1..48 ")));
  EXPECT_THAT(plans_for(48), Contains(StartsWith("prefill q_proj m=16..32 ")));
  EXPECT_THAT(plans_for(16), Contains(StartsWith("prefill q_proj m=16 ")));
}

TEST(Batch, FusedProjectionsRunAsOneMatmul) {
  using testing::Contains;
  using testing::Not;
  using testing::StartsWith;
  RunConfig config = config_of(PlanPolicy::invariant);
  config.fused_qkv = true;
  config.fused_gate_up = true;
  const auto plans = plans_of(input_of(config));
  EXPECT_THAT(plans, Contains(StartsWith("decode qkv_proj m=1 n=128 k=64: ")));
  EXPECT_THAT(plans, Contains(StartsWith("decode gate_up_proj m=1 n=192 k=64: ")));
  EXPECT_THAT(plans, Not(Contains(StartsWith("decode q_proj"))));
}

TEST(Batch, NeighboursThatFillTheContextGoOn) {
  RunConfig config = config_of(PlanPolicy::invariant);
  config.neighbours = 1;
  LaneInput input{.model = tiny_checkpoint({.max_positions = 32}),
                  .config = config,
                  .prompt = some_ids(2, kVocabulary, 1),
                  .neighbour_prompts = {some_ids(32, kVocabulary, 2)}};
  const auto among = generate(input, 20);
  EXPECT_EQ(among.size(), 20U);
  input.config.neighbours = 0;
  input.neighbour_prompts.clear();
  EXPECT_TRUE(same_logits(among, generate(input, 20)));
}

TEST(BatchEngine, AForkGoesOnAloneAndLeavesTheOriginalAlone) {
  const LaneInput input = [] {
    RunConfig config = config_of(PlanPolicy::shape_dependent);
    config.neighbours = 2;
    return input_of(config);
  }();
  const auto engine_of = [&] {
    BackendFactory factory;
    std::shared_ptr<Backend> backend = *factory.open(input.model, input.config);
    return *BatchEngine::create(backend, input.config, input.neighbour_prompts, TapLevel::logits,
                                64);
  };
  const auto logits_after = [&](BatchEngine& engine, std::initializer_list<std::int32_t> fed) {
    std::vector<float> logits;
    for (const std::int32_t id : fed) {
      const auto output = engine.decode(TokenId{id}, {});
      logits.assign(output->logits.begin(), output->logits.end());
    }
    return logits;
  };
  auto original = engine_of();
  ASSERT_TRUE(original->prefill(input.prompt, {}));
  logits_after(*original, {5, 9});
  auto copy = *original->fork();
  const auto copied = logits_after(*copy, {1, 2, 3});
  const auto kept = logits_after(*original, {7, 8, 11});
  auto scratch_copied = engine_of();
  ASSERT_TRUE(scratch_copied->prefill(input.prompt, {}));
  EXPECT_TRUE(same_bits(copied, logits_after(*scratch_copied, {5, 9, 1, 2, 3})));
  auto scratch_kept = engine_of();
  ASSERT_TRUE(scratch_kept->prefill(input.prompt, {}));
  EXPECT_TRUE(same_bits(kept, logits_after(*scratch_kept, {5, 9, 7, 8, 11})));
}

// Self-test 4 through the whole engine.
TEST(Batch, EveryInstructionSetAndThreadCountGivesTheSameBits) {
  for (const PlanPolicy policy : {PlanPolicy::invariant, PlanPolicy::shape_dependent}) {
    for (const Dtype activation : {Dtype::f32, Dtype::bf16}) {
      RunConfig config = config_of(policy);
      config.activation_dtype = activation;
      config.neighbours = 3;
      config.arrival_order = ArrivalOrder::first;
      config.neighbour_steps = 4;
      config.prefill_chunk = 12;
      config.graph_sizes = {8};
      config.speculative_tokens = 1;
      config.isa = IsaChoice::scalar;
      const auto scalar = run(config);
      for (const IsaChoice isa : {IsaChoice::scalar, IsaChoice::avx2, IsaChoice::avx512}) {
        config.isa = isa;
        const bool runs = isa == IsaChoice::scalar ||
                          isa_supported(isa == IsaChoice::avx2 ? Isa::avx2 : Isa::avx512);
        if (!runs) continue;
        for (const std::int64_t threads : {1, 2, 5}) {
          config.threads = threads;
          EXPECT_TRUE(same_logits(run(config), scalar))
              << "isa " << static_cast<int>(isa) << ", threads " << threads;
        }
      }
    }
  }
}

TEST(Batch, MixedCallsAreNamedByTheirPromptRows) {
  using testing::Contains;
  using testing::StartsWith;
  RunConfig config = config_of(PlanPolicy::invariant);
  config.neighbours = 2;
  config.arrival_order = ArrivalOrder::first;
  config.graph_sizes = {6};
  // Steps 0, 1 and 2 have prompts: 40, 1 + 3 and 1 + 1 + 8 rows.
  const auto plans = plans_of(input_of(config));
  EXPECT_THAT(plans, Contains(StartsWith("prefill q_proj m=4..40 ")));
}

TEST(Batch, CancellingStopsBetweenAnyTwoCalls) {
  // The stop comes at the n-th record; whatever has come before stays.
  RunConfig config = config_of(PlanPolicy::invariant);
  config.neighbours = 3;
  config.arrival_order = ArrivalOrder::last;
  config.speculative_tokens = 2;
  config.prefill_chunk = 4;
  for (const std::size_t records : {1U, 2U, 5U, 8U}) {
    struct StoppingSink final : TraceSink {
      std::stop_source source;
      std::size_t left = 0;
      std::size_t accepted = 0;
      [[nodiscard]] Result<void> accept(const StepRecord&) override {
        if (++accepted == left) source.request_stop();
        return {};
      }
    } sink;
    sink.left = records;
    const LaneInput input = input_of(config);
    const auto done =
        run_lockstep({.a = input, .b = input, .steps = 20}, sink, {}, sink.source.get_token());
    ASSERT_TRUE(done);
    EXPECT_TRUE(done->cancelled);
    EXPECT_GE(sink.accepted, records);
    EXPECT_LE(sink.accepted, records + 3);  // lanes of this step that had no call to make
  }
}

TEST(Batch, MappedAndCopiedWeightsGiveTheSameBits) {
  const LaneInput input = input_of(config_of(PlanPolicy::invariant));
  std::vector<std::vector<float>> rows;
  for (const WeightStorage storage : {WeightStorage::copied, WeightStorage::mapped}) {
    BackendFactory factory;
    factory.host().set_storage(storage);
    std::shared_ptr<Backend> backend = *factory.open(input.model, input.config);
    auto engine = *BatchEngine::create(backend, input.config, {}, TapLevel::logits, 64);
    const auto output = engine->prefill(input.prompt, {});
    rows.emplace_back(output->logits.begin(), output->logits.end());
  }
  EXPECT_TRUE(same_bits(rows[0], rows[1]));
}

TEST(Scoring, PrefillEqualsDecodeUnderInvariantPlans) {
  for (const AttentionMode attention :
       {AttentionMode::eager, AttentionMode::flash, AttentionMode::split_kv_size}) {
    for (const KvDtype kv : {KvDtype::f32, KvDtype::bf16, KvDtype::fp8_e4m3, KvDtype::int8}) {
      LaneInput input = input_of(config_of(PlanPolicy::invariant));
      input.config.attention = attention;
      input.config.attention_tile = 16;
      input.config.attention_split_size = 16;
      input.config.kv_dtype = kv;
      const auto decoded = score(input, TapLevel::all);
      input.config.scoring = Scoring::prefill;
      const auto prefilled = score(input, TapLevel::all);
      ASSERT_EQ(decoded.size(), 40U);
      EXPECT_TRUE(same_logits(decoded, prefilled));
      for (std::size_t i = 0; i < decoded.size(); ++i) {
        EXPECT_EQ(prefilled[i].step, static_cast<std::int64_t>(i));
        EXPECT_EQ(decoded[i].emitted, prefilled[i].emitted);
        ASSERT_EQ(decoded[i].taps.size(), prefilled[i].taps.size());
        for (std::size_t t = 0; t < decoded[i].taps.size(); ++t) {
          EXPECT_TRUE(same_bits(decoded[i].taps[t].values, prefilled[i].taps[t].values))
              << decoded[i].taps[t].operation << " position " << i;
        }
      }
    }
  }
}

TEST(Scoring, PrefillDiffersFromDecodeUnderShapeDependent) {
  LaneInput input = input_of(config_of(PlanPolicy::shape_dependent));
  const auto decoded = score(input);
  input.config.scoring = Scoring::prefill;
  EXPECT_FALSE(same_logits(decoded, score(input)));
}

TEST(Scoring, MoreRowsThanABlockOfLogitsAndChunksAgree) {
  LaneInput input = input_of(config_of(PlanPolicy::invariant));
  input.prompt = some_ids(150, kVocabulary, 9);
  input.config.scoring = Scoring::prefill;
  const auto whole = score(input);
  ASSERT_EQ(whole.size(), 150U);
  input.config.prefill_chunk = 100;
  EXPECT_TRUE(same_logits(score(input), whole));
  input.config.scoring = Scoring::decode;
  EXPECT_TRUE(same_logits(score(input), whole));
}

}  // namespace
}  // namespace driftscope::test
