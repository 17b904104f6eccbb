// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/local_ranking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/responses/answer_copies.h"

namespace driftscope {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(AnswerCopies, TheSameTokensAndLogprobsCountOnce) {
  const std::vector<std::int32_t> prompt{1}, tokens{2, 3}, others{2, 4};
  std::vector<VendorValue> values{{.step = 0, .token = 2, .logprob = -0.5},
                                  {.step = 1, .token = 3, .logprob = -0.25}};
  AnswerCopies copies;
  EXPECT_FALSE(copies.note(prompt, tokens, values));
  EXPECT_TRUE(copies.note(prompt, tokens, values));
  EXPECT_FALSE(copies.note(prompt, others, values));
  EXPECT_FALSE(copies.note(others, tokens, values));
  values[1].logprob = -0.26;
  EXPECT_FALSE(copies.note(prompt, tokens, values));
  EXPECT_TRUE(copies.note(prompt, tokens, values));
  EXPECT_EQ(copies.count(), 2);
}

TEST(SignTest, IsTheTailOfTheBinomialDistribution) {
  EXPECT_DOUBLE_EQ(sign_test(10, 10), 1.0 / 1024.0);
  EXPECT_DOUBLE_EQ(sign_test(8, 10), 56.0 / 1024.0);  // 45 + 10 + 1
  EXPECT_DOUBLE_EQ(sign_test(0, 5), 1.0);
  EXPECT_DOUBLE_EQ(sign_test(0, 0), 1.0);
  // Beyond the range of double: half by symmetry.
  EXPECT_NEAR(sign_test(1000, 1999), 0.5, 1e-9);
}

// Two tokens with logits 0 and ln 3: probabilities 1/4 and 3/4; at temperature 1/2, 1/10 and 9/10.
TEST(CandidateBuilder, GivesLogprobsAtTemperatures) {
  VendorEvidence evidence;
  evidence.tokens = {0, 1};
  evidence.temperature = 0.5;
  evidence.values = {{.step = 0, .token = 0, .logprob = -1.0, .tolerance = 0.0},
                     {.step = 0, .token = 1, .logprob = -1.0, .tolerance = 0.0},
                     {.step = 1, .token = 1, .logprob = -1.0, .tolerance = 0.0}};
  CandidateBuilder builder(evidence, "n", "d");
  const std::vector<float> row{0.0F, std::log(3.0F)};
  builder.add_row(row);
  builder.add_row(row);
  const LocalCandidate candidate = builder.finish();
  EXPECT_NEAR(candidate.plain.values[0], std::log(0.25), 1e-7);
  EXPECT_NEAR(candidate.plain.values[2], std::log(0.75), 1e-7);
  EXPECT_NEAR(candidate.stated->values[0], std::log(0.1), 1e-7);
  EXPECT_NEAR(candidate.stated->values[1], std::log(0.9), 1e-7);
  EXPECT_EQ(candidate.greedy_matches, 1);  // token 1 is the first choice of both rows
  EXPECT_NEAR(candidate.mean_log_likelihood, 0.5 * (std::log(0.25) + std::log(0.75)), 1e-7);
  EXPECT_NEAR(candidate.largest_gap, std::log(3.0), 1e-7);
}

TEST(CandidateBuilder, FitsTheTemperatureThatTheNumbersHave) {
  const std::vector<float> row{0.0F, 1.5F, -2.25F, 3.0F};
  for (const double temperature : {0.25, 0.7, 1.0, 1.3, 6.0}) {
    double sum = 0.0;
    for (const float logit : row) sum += std::exp(static_cast<double>(logit) / temperature);
    VendorEvidence evidence;
    for (std::size_t step = 0; step < 8; ++step) {
      evidence.tokens.push_back(3);
      for (std::int32_t t = 0; t < 4; ++t) {
        const double exact =
            static_cast<double>(row[static_cast<std::size_t>(t)]) / temperature - std::log(sum);
        evidence.values.push_back({.step = step,
                                   .token = t,
                                   .logprob = std::round(exact * 1e4) / 1e4,
                                   .tolerance = 5e-5});
      }
    }
    CandidateBuilder builder(evidence, "n", "d");
    for (std::size_t step = 0; step < 8; ++step) builder.add_row(row);
    EXPECT_EQ(builder.finish().fitted.temperature, temperature);
  }
}

LocalCandidate candidate_with(const std::string& name, const std::vector<double>& values) {
  LocalCandidate candidate;
  candidate.name = name;
  candidate.description = name;
  candidate.plain = candidate.fitted = {.temperature = 1.0, .values = values};
  return candidate;
}

// The vendor says `vendor` at each of `count` tokens, to 4 decimals.
VendorEvidence evidence_of(const std::vector<double>& vendor) {
  VendorEvidence evidence;
  for (std::size_t i = 0; i < vendor.size(); ++i) {
    evidence.tokens.push_back(0);
    evidence.values.push_back({.step = i, .token = 0, .logprob = vendor[i], .tolerance = 0.00005});
  }
  return evidence;
}

// Logits 0 and ln 3: probabilities 1/4 and 3/4, at temperature 2 1 : √3. A prompt's logprobs are
// those of the logits as they are.
TEST(Ranking, ATemperatureDoesNotBearOnRawValues) {
  VendorEvidence evidence;
  evidence.tokens = {1, 1};
  const double warm = std::log(std::sqrt(3.0) / (1.0 + std::sqrt(3.0)));
  evidence.values = {{.step = 0, .token = 1, .logprob = std::log(0.75), .raw = true},
                     {.step = 1, .token = 1, .logprob = warm}};
  evidence.temperature = 2.0;
  CandidateBuilder builder(evidence, "a", "");
  const std::vector<float> logits{0.0F, std::log(3.0F)};
  builder.add_row(logits);
  builder.add_row(logits);
  const std::vector<LocalCandidate> candidates{builder.finish()};
  ASSERT_TRUE(candidates[0].stated);
  EXPECT_NEAR(candidates[0].stated->values[0], std::log(0.75), 1e-6);
  EXPECT_NEAR(candidates[0].stated->values[1], warm, 1e-6);
  EXPECT_NEAR(candidates[0].plain.values[1], std::log(0.75), 1e-6);
  EXPECT_NEAR(candidates[0].fitted.temperature, 2.0, 1e-3);
  EXPECT_EQ(rank_candidates(evidence, candidates).temperature_use, TemperatureUse::stated);
}

// All lie within one printed decimal of each other; the other one prints otherwise at `misses` of
// ten.
LocalRanking coarse_ranking(std::size_t misses) {
  auto evidence = evidence_of(std::vector<double>(10, -1.0));
  for (VendorValue& value : evidence.values) value.tolerance = 0.05;
  std::vector<double> other(10, -1.04);
  for (std::size_t i = 0; i < misses; ++i) other[i] = -1.06;
  const std::vector<LocalCandidate> candidates{
      candidate_with("same", std::vector<double>(10, -1.04)), candidate_with("other", other)};
  return rank_candidates(evidence, candidates);
}

// e^-3 is 0.0498 and e^-2 0.135.
TEST(Ranking, ManyMissesBesideAnExactFitTellApart) {
  EXPECT_EQ(coarse_ranking(2).ranks[1].standing, LocalStanding::leading);
  EXPECT_EQ(coarse_ranking(3).ranks[1].standing, LocalStanding::told_apart);
  EXPECT_EQ(coarse_ranking(3).verdict, LocalVerdict::exact);
}

TEST(Ranking, PromptsThatDoNotFitAreLeftOutBesideAnswersThatDo) {
  auto evidence = evidence_of(std::vector<double>(20, -1.0));
  std::vector<double> same(20, -1.0);
  for (std::size_t i = 0; i < 10; ++i) {
    evidence.values[i].raw = true;
    same[i] = -1.5;
  }
  const std::vector<LocalCandidate> candidates{candidate_with("far", std::vector<double>(20, -1.1)),
                                               candidate_with("same", same)};
  const LocalRanking ranking = rank_candidates(evidence, candidates);
  EXPECT_EQ(ranking.verdict, LocalVerdict::exact);
  EXPECT_EQ(ranking.ranks[0].candidate, 1U);
  EXPECT_EQ(ranking.values, 10U);
  EXPECT_NE(ranking.sentence.find("the 10 logprobs of the prompt do not all fit"),
            std::string::npos)
      << ranking.sentence;
}

TEST(Ranking, AnExactFitExcludesWhatIsNoFit) {
  const auto evidence = evidence_of(std::vector<double>(10, -1.0));
  std::vector<double> off(10, -1.00004);
  const std::vector<LocalCandidate> candidates{
      candidate_with("far", std::vector<double>(10, -1.1)), candidate_with("close", off),
      candidate_with("same", std::vector<double>(10, -1.0))};
  const LocalRanking ranking = rank_candidates(evidence, candidates);
  EXPECT_EQ(ranking.verdict, LocalVerdict::exact);
  EXPECT_EQ(ranking.ranks[0].candidate, 2U);
  EXPECT_EQ(ranking.ranks[1].candidate, 1U);
  EXPECT_EQ(ranking.ranks[1].standing, LocalStanding::leading);  // within printing as well
  EXPECT_EQ(ranking.ranks[2].standing, LocalStanding::told_apart);
  EXPECT_NEAR(ranking.ranks[2].mean_abs, 0.1, 1e-12);
  EXPECT_THAT(ranking.sentence, HasSubstr("one of same, close"));
}

TEST(Ranking, NearestNeedsLessThanHalfOfWhatLiesBetween) {
  const auto evidence = evidence_of(std::vector<double>(12, -1.0));
  const auto with = [&](double best, double other) {
    const std::vector<LocalCandidate> candidates{
        candidate_with("best", std::vector<double>(12, -1.0 - best)),
        candidate_with("other", std::vector<double>(12, -1.0 - other))};
    return rank_candidates(evidence, candidates);
  };
  // 0.01 off, 0.03 between: 12 of 12 tokens are nearer to the best, p = 2^-12.
  const LocalRanking near = with(0.01, 0.04);
  EXPECT_EQ(near.verdict, LocalVerdict::nearest);
  EXPECT_NEAR(near.ranks[1].corrected_p, std::exp2(-12), 1e-15);
  EXPECT_NEAR(near.ranks[1].distance, 0.03, 1e-12);
  EXPECT_THAT(near.sentence,
              HasSubstr("mean |Δ| 0.01 over 12 logprobs of 12 tokens, against 0.04"));
  // 0.02 off, 0.03 between: that other error could as well be its own.
  const LocalRanking far = with(0.02, 0.05);
  EXPECT_EQ(far.verdict, LocalVerdict::unobservable);
  EXPECT_THAT(far.sentence, HasSubstr("none is near"));
  // What the 0.02 is held against is printed: half of 0.03.
  EXPECT_THAT(far.sentence, HasSubstr("is off by more (mean |Δ| 0.02 over"));
  EXPECT_THAT(far.sentence, HasSubstr("at most 0.015 (half of 0.03)"));
}

TEST(Ranking, NothingLeadsWhereNothingIsTold) {
  const auto text = [](std::size_t count, double best, double other) {
    const std::vector<LocalCandidate> candidates{
        candidate_with("best", std::vector<double>(count, -1.0 - best)),
        candidate_with("other", std::vector<double>(count, -1.0 - other))};
    return ranking_text(rank_candidates(evidence_of(std::vector<double>(count, -1.0)), candidates),
                        candidates);
  };
  const std::string near = text(12, 0.01, 0.04);
  EXPECT_THAT(near, HasSubstr("\n  leads    best "));
  EXPECT_THAT(near, HasSubstr("\n  apart    other "));
  const std::string far = text(12, 0.02, 0.05);  // none is near
  EXPECT_THAT(far, HasSubstr("\n  -        best "));
  EXPECT_THAT(far, HasSubstr("\n  -        other "));
  // Both fit exactly, or there are too few tokens: either may be it.
  for (const std::string& open : {text(12, 0.0, 0.0), text(4, 0.01, 1.0)}) {
    EXPECT_THAT(open, HasSubstr("\n  possible best "));
    EXPECT_THAT(open, HasSubstr("\n  possible other "));
  }
  for (const std::string& open : {far, text(12, 0.0, 0.0), text(4, 0.01, 1.0)})
    EXPECT_THAT(open, Not(HasSubstr("leads")));
}

TEST(Ranking, FewTokensProveNothing) {
  const auto evidence = evidence_of(std::vector<double>(4, -1.0));
  const std::vector<LocalCandidate> candidates{
      candidate_with("best", std::vector<double>(4, -1.01)),
      candidate_with("other", std::vector<double>(4, -2.0))};
  const LocalRanking ranking = rank_candidates(evidence, candidates);
  EXPECT_EQ(ranking.verdict, LocalVerdict::unobservable);  // p = 1/16
  EXPECT_THAT(ranking.sentence, HasSubstr("too few tokens"));
}

TEST(Ranking, WithoutNumbersNothingIsObservable) {
  VendorEvidence evidence;
  evidence.tokens = {1, 2};
  LocalCandidate broken;
  broken.name = "broken";
  broken.problem = "cannot";
  const std::vector<LocalCandidate> candidates{broken, candidate_with("a", {})};
  const LocalRanking ranking = rank_candidates(evidence, candidates);
  EXPECT_EQ(ranking.verdict, LocalVerdict::unobservable);
  EXPECT_THAT(ranking.sentence, HasSubstr("no logprobs"));
  EXPECT_EQ(ranking.ranks[1].candidate, 0U);
  const auto json = ranking_json(ranking, candidates);
  EXPECT_TRUE(json["configurations"][0]["mean_abs"].is_null());
  EXPECT_EQ(json["configurations"][1]["problem"], "cannot");
}

}  // namespace
}  // namespace driftscope
