// SPDX-License-Identifier: Apache-2.0
// The registry's promises, knob by knob: what changes bits, and what does not.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/exec/knob_values.h"
#include "tests/exec/recording.h"
#include "tests/exec/tiny_checkpoint.h"

namespace driftscope::test {
namespace {

constexpr std::int64_t kSteps = 5;

// End tokens so many that some short answer meets one.
std::vector<std::int32_t> many_ids() {
  std::vector<std::int32_t> ids;
  for (std::int32_t id = 0; id < 320; ++id) {
    if (id % 5 != 0) ids.push_back(id);
  }
  return ids;
}

// f32 weights, so that every narrower type rounds some; wide enough for fused matmuls to reach
// another row of the shape table.
std::shared_ptr<const ModelCheckpoint> model() {
  static const auto checkpoint = tiny_checkpoint({.type = "qwen3",
                                                  .hidden = 128,
                                                  .layers = 2,
                                                  .heads = 8,
                                                  .kv_heads = 4,
                                                  .head_dim = 16,
                                                  .intermediate = 160,
                                                  .vocabulary = 320,
                                                  .dtype = Dtype::f32,
                                                  .eos = many_ids()});
  return checkpoint;
}

// The router's knob says nothing about dense models.
std::shared_ptr<const ModelCheckpoint> mixture() {
  static const auto checkpoint =
      tiny_checkpoint({.type = "qwen3_moe", .layers = 2, .vocabulary = 320, .dtype = Dtype::f32});
  return checkpoint;
}

LaneInput input_of(const RunConfig& config) {
  const bool routed = config.name == "mixture";
  LaneInput input{
      .model = routed ? mixture() : model(), .config = config, .prompt = some_ids(40, 320, 1)};
  for (std::int64_t i = 0; i < config.neighbours; ++i) {
    input.neighbour_prompts.push_back(some_ids(5 + i % 7, 320, 10 + static_cast<unsigned>(i)));
  }
  return input;
}

std::string as_text(const std::vector<TokenId>& tokens) {
  std::string text;
  for (const TokenId id : tokens) text += fmt::format("{} ", id.value);
  return text;
}

// Whether this configuration can run here (values of other backends, or of wider CPUs, cannot).
bool can_run(const RunConfig& config) {
  if (!check_config(config)) return false;
  RecordingSink sink;
  const auto done = run_lockstep({.a = input_of(config),
                                  .b = input_of(config),
                                  .steps = 1,
                                  .control = false,
                                  .decode_text = as_text},
                                 sink, {}, {});
  return done.has_value();
}

RecordingSink run(const RunConfig& a, const RunConfig& b, bool control) {
  RecordingSink sink;
  const auto done = run_lockstep({.a = input_of(a),
                                  .b = input_of(b),
                                  .steps = kSteps,
                                  .control = control,
                                  .decode_text = as_text},
                                 sink, {}, {});
  EXPECT_TRUE(done) << (done ? "" : done.error().message);
  return sink;
}

class KnobTest : public testing::TestWithParam<std::size_t> {
 protected:
  [[nodiscard]] static const KnobSpec& knob() { return knob_registry()[GetParam()]; }
  [[nodiscard]] static RunConfig with(const RunConfig& base, const std::string& value) {
    RunConfig config = base;
    const auto done = set_knob(config, knob().id, value);
    EXPECT_TRUE(done) << knob().id << "=" << value;
    return config;
  }
  // Configurations with each value on the base where the knob's effect shows.
  [[nodiscard]] static std::vector<std::pair<std::string, RunConfig>> variants(RunConfig base) {
    std::vector<std::pair<std::string, RunConfig>> result;
    base.threads = 1;
    if (knob().id == "router_dtype") base.name = "mixture";  // a name changes nothing else
    base = effect_base(knob(), base);
    for (const std::string& value : knob_values(knob())) {
      const RunConfig config = with(base, value);
      if (can_run(config)) result.emplace_back(value, config);
    }
    EXPECT_FALSE(result.empty()) << knob().id;
    return result;
  }
};

// Self-test 1: A against A, control included, with 1 and 2 threads, repeated.
TEST_P(KnobTest, AgainstItselfIsExactlyZero) {
  RunConfig base;
  base.sampling.ignore_eos = true;
  for (auto& [value, config] : variants(base)) {
    SCOPED_TRACE(fmt::format("{}={}", knob().id, value));
    std::vector<RecordedStep> first;
    for (const std::int64_t threads : {1, 2, 1}) {
      if (knob().id != "threads") config.threads = threads;
      const RecordingSink sink = run(config, config, true);
      const auto a = sink.lane(Lane::a);
      ASSERT_FALSE(a.empty());
      for (const Lane lane : {Lane::b, Lane::b_forced, Lane::control}) {
        EXPECT_TRUE(same_logits(a, sink.lane(lane))) << lane_name(lane);
        EXPECT_EQ(emitted_of(a), emitted_of(sink.lane(lane))) << lane_name(lane);
      }
      if (first.empty()) first = a;
      EXPECT_TRUE(same_logits(a, first)) << "threads " << threads;
    }
  }
}

// The forced lane is fed A's tokens, so only the knob can make its logits differ.
bool changes_logits(const RunConfig& a, const RunConfig& b) {
  const RecordingSink sink = run(a, b, false);
  return !same_logits(sink.lane(Lane::a), sink.lane(Lane::b_forced));
}

bool changes_tokens(const RunConfig& a, const RunConfig& b) {
  const RecordingSink sink = run(a, b, false);
  return emitted_of(sink.lane(Lane::a)) != emitted_of(sink.lane(Lane::b));
}

template <class Changes>
std::vector<std::string> values_that(Changes changes,
                                     const std::vector<std::pair<std::string, RunConfig>>& all) {
  std::vector<std::string> result;
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (changes(all[0].second, all[i].second)) result.push_back(all[i].first);
  }
  return result;
}

// Self-test 2 and its opposite: what the registry says of each knob is what happens.
TEST_P(KnobTest, HasTheEffectThatTheRegistryDeclares) {
  RunConfig base;
  base.sampling.ignore_eos = knob().id != "ignore_eos";
  const auto all = variants(base);
  if (knob().host_values.size() == 1) {
    GTEST_SKIP() << "the host honours " << knob().host_values[0] << " only";
  }
  if (all.size() == 1) {
    GTEST_SKIP() << "this machine can run " << all[0].first << " only";
  }
  switch (knob().effect) {
    case KnobEffect::changes_bits:
      EXPECT_FALSE(values_that(changes_logits, all).empty()) << knob().id;
      return;
    case KnobEffect::changes_with_batch: {
      EXPECT_FALSE(values_that(changes_logits, all).empty()) << knob().id;
      std::vector<std::pair<std::string, RunConfig>> invariant = all;
      for (auto& [value, config] : invariant) config.matmul_policy = PlanPolicy::invariant;
      EXPECT_EQ(values_that(changes_logits, invariant), std::vector<std::string>{}) << knob().id;
      return;
    }
    case KnobEffect::changes_choice:
      EXPECT_EQ(values_that(changes_logits, all), std::vector<std::string>{}) << knob().id;
      EXPECT_FALSE(values_that(changes_tokens, all).empty()) << knob().id;
      return;
    case KnobEffect::none_expected:
      EXPECT_EQ(values_that(changes_logits, all), std::vector<std::string>{}) << knob().id;
      EXPECT_EQ(values_that(changes_tokens, all), std::vector<std::string>{}) << knob().id;
      return;
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, KnobTest, testing::Range(std::size_t{0}, knob_registry().size()),
                         [](const auto& parameter) {
                           return std::string(knob_registry()[parameter.param].id);
                         });

}  // namespace
}  // namespace driftscope::test
