// SPDX-License-Identifier: Apache-2.0
// Rotations that are not those of whole heads by one table, on the host against the f64 witness.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "engine/exec/backend_factory.h"
#include "tests/exec/oracle_models.h"
#include "tests/exec/recording.h"

namespace driftscope::test {
namespace {

using Floats = std::vector<float>;

Json long_rope_config() {
  Json config = config_of("phi3");
  config["original_max_position_embeddings"] = 20;
  Json factors_short = Json::array();
  Json factors_long = Json::array();
  for (int i = 0; i < 12; ++i) {
    factors_short.push_back(1.0 + 0.05 * i);
    factors_long.push_back(2.0 + 0.75 * i);
  }
  config["rope_scaling"] = {
      {"type", "longrope"}, {"short_factor", factors_short}, {"long_factor", factors_long}};
  return config;
}

// Logits of the last `rows` tokens, the calls having `sizes` tokens each.
std::vector<Floats> logits_of(Backend& backend, const std::vector<TokenId>& tokens,
                              const std::vector<std::size_t>& sizes) {
  auto cache = backend.create_cache(0).value();
  std::vector<Floats> result;
  std::size_t first = 0;
  for (const std::size_t size : sizes) {
    const auto rows = static_cast<std::int64_t>(size);
    const BatchSequence sequence{.cache = cache.get(),
                                 .tokens = std::span(tokens).subspan(first, size),
                                 .output_rows = rows};
    if (auto done = backend.forward({.sequences = {&sequence, 1}}, {}); !done) {
      throw std::runtime_error(done.error().message);
    }
    const auto logits = backend.logits(0, rows).value();
    result.emplace_back(logits.begin(), logits.end());
    first += size;
  }
  return result;
}

double largest_difference(const std::vector<Floats>& a, const std::vector<Floats>& b) {
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < a[i].size(); ++j) {
      largest = std::max(largest, std::abs(double{a[i][j]} - double{b[i][j]}));
    }
  }
  return largest;
}

TEST(LongRope, TheLengthAfterACallChoosesItsFactors) {
  NEED_SHARED_DATA();
  const Model model = open("phi3", long_rope_config());
  const std::vector<TokenId> tokens = prompt_of("phi3", 1);
  ASSERT_EQ(tokens.size(), 40U);
  BackendFactory factory;
  RunConfig config;
  config.rope_table_dtype = RopeTableDtype::f64;
  auto host = factory.open(model, config).value();
  auto witness = factory.open_reference(model, 1).value();
  // Whole: long. In two: 20 by the short factors, 20 by the long ones. Below 20: short.
  for (const std::vector<std::size_t>& sizes :
       {std::vector<std::size_t>{40}, {20, 20}, {20}, {19, 1, 1}}) {
    const double difference =
        largest_difference(logits_of(*host, tokens, sizes), logits_of(*witness, tokens, sizes));
    EXPECT_LE(difference, tolerance_of("phi3")) << sizes.size();
  }
  const Floats whole = logits_of(*host, tokens, {40})[0];
  const Floats halves = logits_of(*host, tokens, {20, 20})[1];
  const Floats end(whole.begin() + 20 * 320, whole.end());
  EXPECT_GT(largest_difference({end}, {halves}), 0.01);  // cached keys stayed short
  EXPECT_THAT(host->plans(), testing::IsSupersetOf({"decode rope: longrope, short factors",
                                                    "decode rope: longrope, long factors"}));
}

TEST(LongRope, SequencesOfABatchChooseForThemselves) {
  NEED_SHARED_DATA();
  const Model model = open("phi3", long_rope_config());
  const std::vector<TokenId> tokens = prompt_of("phi3", 1);
  BackendFactory factory;
  RunConfig config;
  config.matmul_policy = PlanPolicy::invariant;
  auto host = factory.open(model, config).value();
  const Floats long_alone = logits_of(*host, tokens, {40})[0];
  const Floats short_alone = logits_of(*host, tokens, {10})[0];
  auto first = host->create_cache(0).value();
  auto second = host->create_cache(0).value();
  auto third = host->create_cache(0).value();
  const BatchSequence sequences[] = {
      {.cache = first.get(), .tokens = std::span(tokens).first(10), .output_rows = 10},
      {.cache = second.get(), .tokens = tokens, .output_rows = 40},
      {.cache = third.get(), .tokens = std::span(tokens).first(10), .output_rows = 10}};
  ASSERT_TRUE(host->forward({.sequences = sequences}, {}));
  const auto rows = host->logits(0, 60).value();
  EXPECT_TRUE(same_bits({rows.begin(), rows.begin() + 3200}, short_alone));
  EXPECT_TRUE(same_bits({rows.begin() + 3200, rows.begin() + 50 * 320}, long_alone));
  EXPECT_TRUE(same_bits({rows.begin() + 50 * 320, rows.end()}, short_alone));
}

TEST(PartialRotation, FollowsTheWitness) {
  NEED_SHARED_DATA();
  Json config = config_of("phi3");
  config["partial_rotary_factor"] = 0.5;
  const Model model = open("phi3", config);
  ASSERT_EQ(model->description().rotated(), 12);
  const std::vector<TokenId> tokens = prompt_of("phi3", 1);
  BackendFactory factory;
  auto host = factory.open(model, {}).value();
  auto witness = factory.open_reference(model, 1).value();
  EXPECT_LE(largest_difference(logits_of(*host, tokens, {40}), logits_of(*witness, tokens, {40})),
            tolerance_of("phi3"));
}

}  // namespace
}  // namespace driftscope::test
