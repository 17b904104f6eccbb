// SPDX-License-Identifier: Apache-2.0
#include "engine/exec/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "engine/exec/philox.h"

namespace driftscope {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The fields that tests name at the call site.
struct Settings {
  double temperature = 0.0;
  double top_p = 1.0;
  std::int64_t top_k = 0;
  double min_p = 0.0;
  double repetition_penalty = 1.0;
  double presence_penalty = 0.0;
  double frequency_penalty = 0.0;
  std::uint64_t seed = 0;
  SamplerMethod method = SamplerMethod::inverse_cdf;
};
Sampler sampler_of(const Settings& settings) {
  SamplingConfig config;
  config.temperature = settings.temperature;
  config.top_p = settings.top_p;
  config.top_k = settings.top_k;
  config.min_p = settings.min_p;
  config.repetition_penalty = settings.repetition_penalty;
  config.presence_penalty = settings.presence_penalty;
  config.frequency_penalty = settings.frequency_penalty;
  config.seed = settings.seed;
  config.method = settings.method;
  return Sampler(config);
}

// Known answers published with Random123 (kat_vectors of Salmon et al.).
TEST(Philox, GivesThePublishedKnownAnswers) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(
      philox4x32_10({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
      (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformTakesTheFirst53Bits) {
  // From the first known answer: 0x6627e8d5 and the top 21 bits of 0xe169c58d.
  const double expected = (0x6627e8d5 * 0x1.0p21 + (0xe169c58dU >> 11U)) * 0x1.0p-53;
  EXPECT_EQ(philox_uniform(0, 0), expected);
}

TEST(Philox, StepAndSeedUseAll64Bits) {
  const double base = philox_uniform(1, 1);
  EXPECT_NE(base, philox_uniform(1, 1 + (std::uint64_t{1} << 32U)));
  EXPECT_NE(base, philox_uniform(1 + (std::uint64_t{1} << 32U), 1));
}

TEST(Greedy, TakesTheHighestAndTheLowerIdOfATie) {
  EXPECT_EQ(greedy_choice(std::vector<float>{1, 3, 2}), TokenId{1});
  EXPECT_EQ(greedy_choice(std::vector<float>{1, 3, 3, 0}), TokenId{1});
  EXPECT_EQ(greedy_choice(std::vector<float>{-0.0F, 0.0F}), TokenId{0});  // equal values
  EXPECT_EQ(greedy_choice(std::vector<float>{0, kInfinity, 1}), TokenId{1});
  EXPECT_EQ(greedy_choice(std::vector<float>{-kInfinity, -kInfinity}), TokenId{0});
}

TEST(Greedy, NeverTakesNan) {
  EXPECT_EQ(greedy_choice(std::vector<float>{kNan, -5, kNan, -3, kNan}), TokenId{3});
  EXPECT_EQ(greedy_choice(std::vector<float>{kNan, -kInfinity}), TokenId{1});
}

std::vector<TokenId> tokens(std::initializer_list<std::int32_t> values) {
  std::vector<TokenId> result;
  for (const auto value : values) result.push_back(TokenId{value});
  return result;
}

TEST(Penalties, RepetitionDividesPositiveAndMultipliesNegativeLogits) {
  // 4 / 2 = 2 < 3; of the negatives -1 * 2 = -2 < -1.5.
  Sampler sampler = sampler_of({.repetition_penalty = 2.0});
  EXPECT_EQ(sampler.choose(std::vector<float>{4, 3, 0}, tokens({0}), {}, 0), TokenId{1});
  EXPECT_EQ(sampler.choose(std::vector<float>{-1, -1.5F, -9}, {}, tokens({0}), 0), TokenId{1});
  EXPECT_EQ(sampler.choose(std::vector<float>{4, 1.5F, 0}, tokens({0}), {}, 0), TokenId{0});
}

TEST(Penalties, PresenceCountsOnceAndFrequencyEachTimeInTheOutputOnly) {
  Sampler presence = sampler_of({.presence_penalty = 1.0});
  EXPECT_EQ(presence.choose(std::vector<float>{4, 3.5F}, tokens({0}), {}, 0), TokenId{0});
  EXPECT_EQ(presence.choose(std::vector<float>{4, 3.5F}, {}, tokens({0, 0, 0}), 0), TokenId{1});
  EXPECT_EQ(presence.choose(std::vector<float>{4, 2.5F}, {}, tokens({0, 0, 0}), 0), TokenId{0});
  Sampler frequency = sampler_of({.frequency_penalty = 1.0});
  EXPECT_EQ(frequency.choose(std::vector<float>{4, 2.5F}, {}, tokens({0}), 0), TokenId{0});
  EXPECT_EQ(frequency.choose(std::vector<float>{4, 2.5F}, {}, tokens({0, 0}), 0), TokenId{1});
}

// Which ids 3,000 draws give, and how often.
std::vector<int> draw_counts(const Settings& settings, const std::vector<float>& logits) {
  Sampler sampler = sampler_of(settings);
  std::vector<int> counts(logits.size(), 0);
  for (std::uint64_t step = 0; step < 3000; ++step) {
    const TokenId id = sampler.choose(logits, {}, {}, step);
    ++counts[static_cast<std::size_t>(id.value)];
  }
  return counts;
}

std::set<std::size_t> drawn(const Settings& settings, const std::vector<float>& logits) {
  std::set<std::size_t> ids;
  const std::vector<int> counts = draw_counts(settings, logits);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) ids.insert(i);
  }
  return ids;
}

// Probabilities 0.1, 0.4, 0.2, 0.3.
std::vector<float> four_logits() {
  return {static_cast<float>(std::log(0.1)), static_cast<float>(std::log(0.4)),
          static_cast<float>(std::log(0.2)), static_cast<float>(std::log(0.3))};
}

TEST(Draw, FrequenciesFollowTheSoftmax) {
  const std::vector<int> counts = draw_counts({.temperature = 1.0, .seed = 7}, four_logits());
  const double probabilities[] = {0.1, 0.4, 0.2, 0.3};
  for (std::size_t i = 0; i < 4; ++i) {
    const double p = probabilities[i];
    const double deviation = std::sqrt(3000 * p * (1 - p));
    EXPECT_NEAR(counts[i], 3000 * p, 5 * deviation) << "id " << i;
  }
}

TEST(Draw, TemperatureSharpensBeforeTheDraw) {
  // At temperature 1/2 probabilities go with the square: 0.01, 0.16, 0.04, 0.09 of 0.30.
  const std::vector<int> counts = draw_counts({.temperature = 0.5, .seed = 7}, four_logits());
  const double weights[] = {0.01, 0.16, 0.04, 0.09};
  for (std::size_t i = 0; i < 4; ++i) {
    const double p = weights[i] / 0.30;
    EXPECT_NEAR(counts[i], 3000 * p, 5 * std::sqrt(3000 * p * (1 - p))) << "id " << i;
  }
}

TEST(Draw, IsTheInverseOfTheCumulativeDistributionInRisingId) {
  Sampler sampler = sampler_of({.temperature = 1.0, .seed = 42});
  for (std::uint64_t step = 0; step < 200; ++step) {
    const double u = philox_uniform(42, step);
    const std::int32_t expected = u < 0.1 ? 0 : u < 0.5 ? 1 : u < 0.7 ? 2 : 3;
    EXPECT_EQ(sampler.choose(four_logits(), {}, {}, step), TokenId{expected}) << "u = " << u;
  }
}

TEST(Draw, KeepsTheUniformAndTheIntervalOfTheChoice) {
  Sampler sampler = sampler_of({.temperature = 1.0, .seed = 42});
  const double bounds[] = {0.0, 0.1, 0.5, 0.7, 1.0};
  for (std::uint64_t step = 0; step < 20; ++step) {
    const TokenId id = sampler.choose(four_logits(), {}, {}, step);
    ASSERT_NE(sampler.draw(), nullptr);
    const Draw& draw = *sampler.draw();
    EXPECT_EQ(draw.uniform, philox_uniform(42, step));
    // The logits are rounded to f32: 2^-24 of at most 2.4.
    EXPECT_NEAR(draw.lower, bounds[id.value], 2e-7);
    EXPECT_NEAR(draw.upper, bounds[id.value + 1], 2e-7);
    EXPECT_LE(draw.lower, draw.uniform);
    EXPECT_LT(draw.uniform, draw.upper);
    EXPECT_TRUE(draw.candidates.empty());
  }
}

TEST(Draw, AGreedyChoiceHasNone) {
  Sampler sampler = sampler_of({.repetition_penalty = 1.5});
  EXPECT_EQ(sampler.choose(four_logits(), {}, {}, 0), TokenId{1});
  EXPECT_EQ(sampler.draw(), nullptr);
}

TEST(Philox, ATokenUniformIsAnOddMultipleOf53BitsAndItsOwn) {
  const double u = philox_token_uniform(3, 4, 5);
  EXPECT_GT(u, 0.0);
  EXPECT_LT(u, 1.0);
  EXPECT_EQ(std::fmod(u * 0x1.0p53, 2.0), 1.0);
  EXPECT_NE(u, philox_token_uniform(3, 4, 6));
  EXPECT_NE(u, philox_token_uniform(3, 5, 5));
  EXPECT_NE(u, philox_token_uniform(4, 4, 5));
}

TEST(Race, TakesTheHighestOfLogitPlusGumbelNoise) {
  Sampler sampler =
      sampler_of({.temperature = 0.5, .seed = 9, .method = SamplerMethod::gumbel_max});
  const std::vector<float> logits = four_logits();
  for (std::uint64_t step = 0; step < 200; ++step) {
    std::int32_t best = 0;
    double highest = -std::numeric_limits<double>::infinity();
    for (std::int32_t id = 0; id < 4; ++id) {
      const double u = philox_token_uniform(9, step, static_cast<std::uint32_t>(id));
      const double sum = logits[static_cast<std::size_t>(id)] / 0.5 - std::log(-std::log(u));
      if (sum <= highest) continue;
      highest = sum;
      best = id;
    }
    EXPECT_EQ(sampler.choose(logits, {}, {}, step), TokenId{best}) << step;
    const Draw& draw = *sampler.draw();
    EXPECT_TRUE(std::isnan(draw.uniform));
    ASSERT_EQ(draw.candidates.size(), 4U);
    EXPECT_EQ(draw.candidates[0].id, TokenId{best});
    // Scores count from the highest logit, ln 0.4, divided by the temperature.
    EXPECT_NEAR(draw.candidates[0].score + draw.candidates[0].noise, highest - std::log(0.4) / 0.5,
                1e-6);
    EXPECT_GE(draw.candidates[2].score + draw.candidates[2].noise,
              draw.candidates[3].score + draw.candidates[3].noise);
  }
}

TEST(Race, FrequenciesFollowTheSoftmax) {
  const std::vector<int> counts = draw_counts(
      {.temperature = 1.0, .seed = 7, .method = SamplerMethod::gumbel_max}, four_logits());
  const double probabilities[] = {0.1, 0.4, 0.2, 0.3};
  for (std::size_t i = 0; i < 4; ++i) {
    const double p = probabilities[i];
    EXPECT_NEAR(counts[i], 3000 * p, 5 * std::sqrt(3000 * p * (1 - p))) << "id " << i;
  }
}

TEST(Race, OnlyWhatTheFiltersLeaveRuns) {
  Sampler sampler =
      sampler_of({.temperature = 1.0, .top_k = 2, .seed = 1, .method = SamplerMethod::gumbel_max});
  EXPECT_THAT(sampler.choose(four_logits(), {}, {}, 0), testing::AnyOf(TokenId{1}, TokenId{3}));
  EXPECT_EQ(sampler.draw()->candidates.size(), 2U);
  const std::vector<float> many(100, 0.0F);
  Sampler wide = sampler_of({.temperature = 1.0, .method = SamplerMethod::gumbel_max});
  static_cast<void>(wide.choose(many, {}, {}, 0));
  EXPECT_EQ(wide.draw()->candidates.size(), kDrawCandidates);
}

// The documented order, each pair by a case in which the other order gives another set.
TEST(Order, TopPComesBeforeMinP) {
  // top_p 0.5 of 0.4, 0.3 … keeps two, and both have 0.6 of 0.4. The other way round 0.4 is 0.571
  // of what min_p leaves, and stays alone.
  EXPECT_EQ(drawn({.temperature = 1.0, .top_p = 0.5, .min_p = 0.6}, four_logits()),
            (std::set<std::size_t>{1, 3}));
}

TEST(Order, TemperatureComesBeforeTopPAndMinP) {
  // At 1/2: 0.533, 0.3, 0.133, 0.033. At 1 top_p 0.5 would keep two.
  EXPECT_EQ(drawn({.temperature = 0.5, .top_p = 0.5}, four_logits()), (std::set<std::size_t>{1}));
  // Shares of the highest are squared: 0.3 / 0.4 becomes 0.5625, below 0.6.
  EXPECT_EQ(drawn({.temperature = 0.5, .min_p = 0.6}, four_logits()), (std::set<std::size_t>{1}));
}

TEST(Order, PenaltiesComeBeforeTheTemperature) {
  // (2 - 1) / 0.5 = 2 against 1.2 / 0.5 = 2.4; after the temperature 4 - 1 = 3 would win.
  Sampler sampler = sampler_of({.temperature = 0.5, .top_k = 1, .presence_penalty = 1.0});
  EXPECT_EQ(sampler.choose(std::vector<float>{2, 1.2F}, {}, tokens({0}), 0), TokenId{1});
}

TEST(Order, RepetitionComesBeforePresence) {
  // 4 / 2 - 1 = 1 against 1.2; (4 - 1) / 2 = 1.5 would win.
  Sampler sampler = sampler_of({.repetition_penalty = 2.0, .presence_penalty = 1.0});
  EXPECT_EQ(sampler.choose(std::vector<float>{4, 1.2F}, {}, tokens({0}), 0), TokenId{1});
}

TEST(Draw, DependsOnSeedAndStepAlone) {
  const Settings settings{.temperature = 1.0, .seed = 3};
  Sampler first = sampler_of(settings);
  Sampler second = sampler_of(settings);
  std::vector<TokenId> forward;
  for (std::uint64_t step = 0; step < 50; ++step) {
    forward.push_back(first.choose(four_logits(), {}, {}, step));
  }
  for (std::uint64_t step = 50; step-- > 0;) {
    EXPECT_EQ(second.choose(four_logits(), {}, {}, step), forward[step]);
  }
  Sampler other = sampler_of({.temperature = 1.0, .seed = 4});
  std::vector<TokenId> differs;
  for (std::uint64_t step = 0; step < 50; ++step) {
    differs.push_back(other.choose(four_logits(), {}, {}, step));
  }
  EXPECT_NE(forward, differs);
}

TEST(TopK, KeepsTheHighestAndTheLowerIdsOfATie) {
  EXPECT_EQ(drawn({.temperature = 1.0, .top_k = 2}, four_logits()), (std::set<std::size_t>{1, 3}));
  EXPECT_EQ(drawn({.temperature = 1.0, .top_k = 2}, {1, 1, 1, 1}), (std::set<std::size_t>{0, 1}));
  EXPECT_EQ(drawn({.temperature = 1.0, .top_k = 9}, four_logits()).size(), 4U);
}

TEST(TopP, KeepsTheFewestThatReachIt) {
  // Falling: 0.4, 0.7, 0.9, 1.0.
  EXPECT_EQ(drawn({.temperature = 1.0, .top_p = 0.35}, four_logits()), (std::set<std::size_t>{1}));
  EXPECT_EQ(drawn({.temperature = 1.0, .top_p = 0.65}, four_logits()),
            (std::set<std::size_t>{1, 3}));
  EXPECT_EQ(drawn({.temperature = 1.0, .top_p = 0.85}, four_logits()),
            (std::set<std::size_t>{1, 2, 3}));
  // The highest always stays.
  EXPECT_EQ(drawn({.temperature = 1.0, .top_p = 0.0}, four_logits()), (std::set<std::size_t>{1}));
}

TEST(TopP, CountsAmongWhatTopKLeft) {
  // Of 0.4 and 0.3 the first alone is 0.571 of what is left.
  EXPECT_EQ(drawn({.temperature = 1.0, .top_p = 0.5, .top_k = 2}, four_logits()),
            (std::set<std::size_t>{1}));
}

TEST(MinP, KeepsWhatHasThatShareOfTheHighest) {
  // Shares of 0.4: 0.25, 1, 0.5, 0.75.
  EXPECT_EQ(drawn({.temperature = 1.0, .min_p = 0.6}, four_logits()),
            (std::set<std::size_t>{1, 3}));
  EXPECT_EQ(drawn({.temperature = 1.0, .min_p = 0.4}, four_logits()),
            (std::set<std::size_t>{1, 2, 3}));
  EXPECT_EQ(drawn({.temperature = 1.0, .min_p = 1.0}, four_logits()), (std::set<std::size_t>{1}));
}

TEST(Draw, NeverTakesNanOrMinusInfinity) {
  EXPECT_EQ(drawn({.temperature = 1.0}, {kNan, 0, -kInfinity, 0, kNan}),
            (std::set<std::size_t>{1, 3}));
  // A +inf takes all.
  EXPECT_EQ(drawn({.temperature = 1.0}, {0, kInfinity, 0}), (std::set<std::size_t>{1}));
}

}  // namespace
}  // namespace driftscope
