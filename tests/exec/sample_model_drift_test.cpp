// SPDX-License-Identifier: Apache-2.0
// Drift on the sample model, by what causes it: precision under a change of batch, and ranks.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/exec/recording.h"

namespace driftscope::test {
namespace {

constexpr std::int64_t kSteps = 40;

nlohmann::json oracle() {
  std::ifstream file(DRIFTSCOPE_SOURCE_DIR "/samples/oracle/creation.json");
  return nlohmann::json::parse(file);
}

std::shared_ptr<const ModelCheckpoint> sample_model() {
  static const auto model = ModelCheckpoint::open(DRIFTSCOPE_SOURCE_DIR "/samples/model");
  if (!model) throw std::runtime_error(model.error().message);
  return *model;
}

LaneInput input_of(const RunConfig& config) {
  LaneInput input{.model = sample_model(), .config = config, .prompt = {}};
  const auto known = oracle();
  for (const auto& id : known["ids"]) input.prompt.push_back(TokenId{id.get<std::int32_t>()});
  input.config.sampling.ignore_eos = true;
  for (std::int64_t i = 0; i < config.neighbours; ++i) {
    input.neighbour_prompts.push_back(some_ids(6 + 3 * i, 2048, 70 + static_cast<unsigned>(i)));
  }
  return input;
}

struct Drift {
  double max_abs = 0.0;     // over all steps and tokens, B fed A's tokens
  double rms = 0.0;         // over all steps and tokens
  std::int64_t parts = -1;  // first step at which the texts part, -1: never
};

Drift drift_between(const RunConfig& a, const RunConfig& b) {
  RecordingSink sink;
  const auto done = run_lockstep(
      {.a = input_of(a), .b = input_of(b), .steps = kSteps, .control = false}, sink, {}, {});
  EXPECT_TRUE(done) << (done ? "" : done.error().message);
  const auto lane_a = sink.lane(Lane::a);
  const auto forced = sink.lane(Lane::b_forced);
  const auto free = sink.lane(Lane::b);
  Drift drift;
  double squares = 0.0;
  double count = 0.0;
  for (std::size_t i = 0; i < lane_a.size(); ++i) {
    for (std::size_t j = 0; j < lane_a[i].logits.size(); ++j) {
      const double d =
          static_cast<double>(forced.at(i).logits[j]) - static_cast<double>(lane_a[i].logits[j]);
      drift.max_abs = std::max(drift.max_abs, std::abs(d));
      squares += d * d;
      count += 1.0;
    }
    if (drift.parts < 0 && free.at(i).emitted != lane_a[i].emitted) {
      drift.parts = static_cast<std::int64_t>(i);
    }
  }
  drift.rms = std::sqrt(squares / count);
  return drift;
}

void print(const std::string& what, const Drift& drift) {
  fmt::print("{:44} max_abs {:.3e}, rms {:.3e}, texts part at step {}\n", what, drift.max_abs,
             drift.rms, drift.parts < 0 ? "-" : std::to_string(drift.parts));
}

// Unit roundoffs of 2^-8, 2^-11 and 2^-24 order the drift of one change: the same seven neighbours
// and so the same other plan, with activations rounded ever more finely.
TEST(SampleModel, DriftUnderABatchChangeFollowsThePrecision) {
  std::map<Dtype, Drift> changed;
  for (const Dtype dtype : {Dtype::bf16, Dtype::f16, Dtype::f32}) {
    RunConfig alone;
    alone.activation_dtype = dtype;
    alone.matmul_policy = PlanPolicy::shape_dependent;
    RunConfig among = alone;
    among.neighbours = 7;
    changed[dtype] = drift_between(alone, among);
    print(fmt::format("{} alone against 7 neighbours", dtype_name(dtype)), changed[dtype]);
    const Drift rerun = drift_between(among, among);
    print(fmt::format("{} with 7 neighbours, rerun", dtype_name(dtype)), rerun);
    EXPECT_EQ(rerun.max_abs, 0.0);
    alone.matmul_policy = among.matmul_policy = PlanPolicy::invariant;
    const Drift invariant = drift_between(alone, among);
    print(fmt::format("{} alone against 7 neighbours, invariant", dtype_name(dtype)), invariant);
    EXPECT_EQ(invariant.max_abs, 0.0);
    EXPECT_EQ(invariant.parts, -1);
  }
  EXPECT_GT(changed[Dtype::bf16].max_abs, changed[Dtype::f16].max_abs);
  EXPECT_GT(changed[Dtype::f16].max_abs, changed[Dtype::f32].max_abs);
  EXPECT_GT(changed[Dtype::bf16].rms, changed[Dtype::f16].rms);
  EXPECT_GT(changed[Dtype::f16].rms, changed[Dtype::f32].rms);
  EXPECT_GT(changed[Dtype::f32].max_abs, 0.0);
}

// Six attention heads: one or two ranks.
TEST(SampleModel, TwoRanksDriftUnlessTheirSumsFollowOneTree) {
  const RunConfig one;
  RunConfig two;
  two.tensor_parallel = 2;
  two.all_reduce = AllReduce::ring;
  two.reduce_dtype = Dtype::bf16;
  const Drift ring = drift_between(one, two);
  print("1 rank against 2, ring in bf16", ring);
  EXPECT_GT(ring.max_abs, 0.0);
  RunConfig aligned_one;
  aligned_one.all_reduce = AllReduce::tree;
  aligned_one.tensor_parallel_invariant = true;
  RunConfig aligned_two = aligned_one;
  aligned_two.tensor_parallel = 2;
  const Drift aligned = drift_between(aligned_one, aligned_two);
  print("1 rank against 2, one tree", aligned);
  EXPECT_EQ(aligned.max_abs, 0.0);
  EXPECT_EQ(aligned.parts, -1);
}

TEST(SampleModel, FourRanksCannotShareSixHeads) {
  RunConfig config;
  config.tensor_parallel = 4;
  RecordingSink sink;
  const auto done =
      run_lockstep({.a = input_of(config), .b = input_of(config), .steps = 1}, sink, {}, {});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, ErrorKind::engine);
  EXPECT_THAT(done.error().message, testing::HasSubstr("6 attention heads"));
  EXPECT_THAT(done.error().message, testing::HasSubstr("it allows 1, 2"));
}

// Roundings one after another from the embedding to the logits, as in oracle_test.cpp: at most
// ceil(K / 32) + 5 + 1 for a sum of K terms, K / 2 of them on a rank and one more where two ranks
// meet. Each adds at most 2^-24 relative to the largest value in flight, if nothing after it
// amplifies it; the two roundings of a bf16 all-reduce (its own, then the sum's) add 2^-8 each.
TEST(SampleModel, LogitsOfTwoRanksAreWithinTheBoundOfTheF64Oracle) {
  const auto exact = oracle();
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    RunConfig config;
    config.tensor_parallel = 2;
    config.all_reduce = AllReduce::ring;
    config.reduce_dtype = dtype;
    config.scoring = Scoring::prefill;
    const auto steps = score(input_of(config));
    ASSERT_EQ(steps.size(), exact["top"].size());
    const ModelDescription& model = sample_model()->description();
    const auto chain = [](std::int64_t terms) {
      return static_cast<double>((terms + 31) / 32 + 5 + 1);
    };
    const auto positions = static_cast<double>(steps.size());
    const double attention = 2 * chain(model.hidden) + chain(model.head_dim) + 2 * positions +
                             chain(model.heads * model.head_dim / 2) + 1;
    const double feed_forward = 2 * chain(model.hidden) + chain(model.intermediate / 2) + 1;
    const auto layers = static_cast<double>(model.layers);
    const double fine = layers * (attention + feed_forward) + 2 * chain(model.hidden);
    const double coarse = dtype == Dtype::bf16 ? layers * 2 * 2 : 0.0;
    double scale = 0.0;
    double largest = 0.0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      for (const auto& entry : exact["top"][i]["largest"]) {
        const double logit = entry["logit"];
        scale = std::max(scale, std::abs(logit));
        const double ours = static_cast<double>(steps[i].logits.at(entry["id"]));
        largest = std::max(largest, std::abs(ours - logit));
      }
    }
    const double bound = (fine * 0x1.0p-24 + coarse * 0x1.0p-8) * scale;
    fmt::print("2 ranks, ring in {}: logits max difference {:.3e}, bound {:.3e}\n",
               dtype_name(dtype), largest, bound);
    EXPECT_LE(largest, bound);
  }
}

}  // namespace
}  // namespace driftscope::test
