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
