// SPDX-License-Identifier: Apache-2.0
// What is and is not said of two files whose numbers are of different kinds, whose prompts differ,
// or whose rows hold NaN: figures worked out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "analysis/compare/value_words.h"
#include "tests/logits/import_fixture.h"

namespace driftscope {
namespace {

using namespace test;
using testing::HasSubstr;
using testing::Not;

class ImportKinds : public Import {
 protected:
  ComparisonPointer compare_answers(const std::string& a, const std::string& b) {
    return compare(write({side_of_answer(a), side_of_answer(b)}, "pair.h5"));
  }
};

void expect_no_differences(const Comparison& c) {
  EXPECT_FALSE(numbers_comparable(c));
  for (std::size_t i = 0; i < c.steps.size(); ++i) {
    for (const std::string_view id : {"dlogp", "k1", "k3", "importance_ratio", "pair_drift"}) {
      EXPECT_TRUE(std::isnan(at(c, i, id))) << id << " at " << i;
    }
  }
  EXPECT_EQ(find(c, "listed_differences"), nullptr);
  EXPECT_EQ(find(c, "differences_on_grid"), nullptr);
  ASSERT_NE(find(c, "numbers_not_comparable"), nullptr);
  EXPECT_EQ(find(c, "numbers_not_comparable")->severity, Severity::warning);
}

// Step 1 parts, at values 0.01 apart: a near-tie if they mean something.
const std::vector<Listed> kMeasured{{"A", -0.25, {{"A", -0.25}, {"B", -2.0}, {"C", -4.0}}},
                                    {"B", -0.70, {{"B", -0.70}, {"C", -0.71}, {"A", -5.0}}}};

TEST_F(ImportKinds, PlaceholdersAreNotComparedWithMeasuredValues) {
  const auto c = compare_answers(answer(kMeasured), answer({{"A", 0.0, {}}, {"C", 0.0, {}}}));
  expect_no_differences(*c);
  EXPECT_THAT(find(*c, "numbers_not_comparable")->text, HasSubstr("B: placeholders"));
  ASSERT_TRUE(c->first_divergence);
  EXPECT_EQ(c->first_divergence->cause, FlipCause::unexplained);
  EXPECT_THAT(c->first_divergence->reason, HasSubstr("cannot be told"));
  EXPECT_TRUE(std::isnan(c->first_divergence->margin_a));
  EXPECT_TRUE(std::isnan(c->first_divergence->margin_b));
  EXPECT_EQ(c->verdict, Tier::different);
}

TEST_F(ImportKinds, LogitsAreNotComparedWithLogProbabilities) {
  // The same distribution of three tokens, 20 higher: gaps are the same, values are not.
  const auto c = compare_answers(
      answer(kMeasured), answer({{"A", 19.75, {{"A", 19.75}, {"B", 18.0}, {"C", 16.0}}},
                                 {"C", 19.305, {{"C", 19.305}, {"B", 19.30}, {"A", 15.0}}}}));
  expect_no_differences(*c);
  EXPECT_EQ(at(*c, 0, "rank_flips"), 0.0) << "the order is known";
  ASSERT_TRUE(c->first_divergence);
  EXPECT_NEAR(c->first_divergence->margin_a, 0.01, 1e-6);
  EXPECT_NEAR(c->first_divergence->margin_b, 0.005, 1e-5);
  EXPECT_EQ(c->first_divergence->cause, FlipCause::near_tie) << "gaps of logits mean the same";
}

TEST_F(ImportKinds, EqualTokensOfTwoKindsAreTokenEqualAndNoMore) {
  const auto logits = answer({{"A", 19.75, {{"A", 19.75}, {"B", 18.0}}}});
  const auto c = compare_answers(answer({{"A", -0.25, {{"A", -0.25}, {"B", -2.0}}}}), logits);
  EXPECT_EQ(c->verdict, Tier::token);
  EXPECT_THAT(c->verdict_text, HasSubstr("not of one kind and are not compared"));
}

std::string llama(const std::string& kind, const std::string& first, const std::string& second) {
  const std::string top = kind == "prob" ? "top_probs" : "top_logprobs";
  const auto entry = [&](int id, const std::string& token, const std::string& value) {
    return R"({"id":)" + std::to_string(id) + R"(,"token":")" + token + R"(",")" + kind +
           "\":" + value;
  };
  return R"({"index":0,"content":"Hi","tokens":[42],"stop":true,"model":"m","stop_type":"eos",)"
         R"("completion_probabilities":[)" +
         entry(42, "Hi", first) + ",\"" + top + "\":[" + entry(42, "Hi", first) + "}," +
         entry(9, "X", second) + "}]}]}";
}

TEST_F(ImportKinds, ValuesAfterTheSamplersAreComparedWithTheirLikeOnly) {
  const std::string sampled = llama("prob", "0.75", "0.25");
  const std::string measured = llama("logprob", "-0.9", "-1.5");
  const auto c = compare_answers(sampled, measured);
  expect_no_differences(*c);
  EXPECT_EQ(c->verdict, Tier::token);
  const auto same = compare_answers(sampled, llama("prob", "0.5", "0.5"));
  EXPECT_TRUE(numbers_comparable(*same));
  EXPECT_NEAR(at(*same, 0, "dlogp"), std::log(0.5 / 0.75), 1e-6);
}

TEST_F(ImportKinds, AMarginIsThatOfTheSidesOwnToken) {
  // B drew the third of its list: 0.3 below A's token, which is 0.25 above the second.
  const auto c = compare_answers(answer({{"A", -1.0, {{"A", -1.0}, {"B", -1.5}, {"C", -2.0}}}}),
                                 answer({{"C", -1.3, {{"A", -1.0}, {"B", -1.25}, {"C", -1.3}}}}));
  ASSERT_TRUE(c->first_divergence);
  const Divergence& d = *c->first_divergence;
  EXPECT_DOUBLE_EQ(d.margin_a, 1.0);    // A's list: A minus C
  EXPECT_NEAR(d.margin_b, -0.3, 1e-6);  // B's list: C minus A
  EXPECT_EQ(d.cause, FlipCause::sampler);
}

TEST_F(ImportKinds, AMarginWithoutTheOthersTokenIsToTheBestOther) {
  const auto c = compare_answers(answer({{"A", -0.5, {{"A", -0.5}, {"B", -1.5}, {"D", -3.0}}}}),
                                 answer({{"C", -0.5, {{"C", -0.5}, {"B", -1.25}, {"D", -3.0}}}}));
  ASSERT_TRUE(c->first_divergence);
  EXPECT_DOUBLE_EQ(c->first_divergence->margin_a, 1.0);
  EXPECT_DOUBLE_EQ(c->first_divergence->margin_b, 0.75);
}

// ---- prompts ----

std::string exchange(const std::string& question, const std::string& response) {
  return R"({"request":{"model":"m","messages":[{"role":"user","content":")" + question +
         R"("}]},"response":)" + response + "}";
}

TEST_F(ImportKinds, PromptsOfTheRequestsAreCompared) {
  const std::string text = answer(kMeasured);
  const auto c = compare_answers(exchange("one", text), exchange("two", text));
  EXPECT_EQ(c->verdict, Tier::inconclusive);
  EXPECT_THAT(c->verdict_text, HasSubstr("different tasks"));
  ASSERT_NE(find(*c, "prompt_ids_differ"), nullptr);
  EXPECT_EQ(find(*c, "prompt_ids_differ")->severity, Severity::error);
  EXPECT_EQ(find(*c, "prompt_not_known"), nullptr);
  const auto same = compare_answers(exchange("one", text), exchange("one", text));
  EXPECT_EQ(same->verdict, Tier::token);
  EXPECT_EQ(find(*same, "prompt_not_known"), nullptr);
  EXPECT_THAT(same->prompt_text, HasSubstr("one"));
  EXPECT_NE(find(*compare_answers(exchange("one", text), text), "prompt_not_known"), nullptr);
}

TEST_F(ImportKinds, PromptIdsAreKeptBesideInternedTokens) {
  auto a = side_of_answer(answer(kMeasured));
  auto b = a;
  a.prompt_ids = {5, 6, 7};
  b.prompt_ids = {5, 6, 8};
  const auto c = compare(write({a, b}, "pair.h5"));
  EXPECT_TRUE(interned(*c));
  EXPECT_TRUE(c->prompt_a.empty()) << "they are no places in the list of pieces";
  EXPECT_EQ(c->verdict, Tier::inconclusive);
  EXPECT_THAT(c->verdict_text, HasSubstr("differ from position 2"));
  const auto joined = compare(write({a}, "a.h5"), write({b}, "b.h5"));
  EXPECT_EQ(joined->verdict, Tier::inconclusive);
}

TEST_F(ImportKinds, CountsOfPromptTokensTellWhereOneVersionAnswered) {
  auto a = side_of_answer(answer(kMeasured));
  auto b = a;
  a.facts.emplace_back("usage.prompt_tokens", "12");
  b.facts.emplace_back("usage.prompt_tokens", "13");
  EXPECT_EQ(compare(write({a, b}, "one.h5"))->verdict, Tier::inconclusive);
  a.facts.emplace_back("system_fingerprint", "x");
  b.facts.emplace_back("system_fingerprint", "y");
  EXPECT_EQ(compare(write({a, b}, "two.h5"))->verdict, Tier::token);
}

// ---- whole rows ----

TEST_F(ImportKinds, ANormalisedSideIsAShiftOfEachRow) {
  // Logits 1, 2, 4 and 3, 0, 0; B holds their log-softmax: less log(e + e^2 + e^4) and
  // log(e^3 + 2).
  const std::vector<double> logits{1, 2, 4, 3, 0, 0};
  const double first = std::log(std::exp(1.0) + std::exp(2.0) + std::exp(4.0));
  const double second = std::log(std::exp(3.0) + 2.0);
  std::vector<float> a, b;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    a.push_back(static_cast<float>(logits[i]));
    b.push_back(static_cast<float>(logits[i] - (i < 3 ? first : second)));
  }
  const auto c =
      compare(write({side_of_file(npy_f32(2, 3, a)), side_of_file(npy_f32(2, 3, b))}, "pair.h5"));
  EXPECT_FALSE(numbers_comparable(*c));
  const Finding* shifted = find(*c, "rows_shifted");
  ASSERT_NE(shifted, nullptr);
  EXPECT_THAT(shifted->text, HasSubstr("B is normalised (log-softmax) and A is not"));
  const auto evidence = nlohmann::json::parse(shifted->evidence);
  EXPECT_NEAR(evidence["smallest"].get<double>(), second, 1e-6);
  EXPECT_NEAR(evidence["largest"].get<double>(), first, 1e-6);
  EXPECT_LT(evidence["kl"].get<double>(), 1e-12);
  for (const std::string_view id : {"max_abs", "mean_abs", "rms", "max_rel", "max_ulp", "cosine"}) {
    EXPECT_TRUE(std::isnan(at(*c, 0, id))) << id;
  }
  EXPECT_LT(at(*c, 0, "centred_rms"), 1e-6);
  EXPECT_EQ(c->verdict, Tier::token);
  EXPECT_THAT(c->verdict_text, HasSubstr("the distributions agree"));
  EXPECT_THAT(c->verdict_text, Not(HasSubstr("drift")));
  EXPECT_EQ(holds(*c, Tier::tolerance), std::nullopt);
  EXPECT_EQ(find(*c, "drift_without_flip"), nullptr);
}

TEST_F(ImportKinds, ADriftBesideTheShiftIsNoShift) {
  // Log-softmax of 0, 0 and of 0, 1 against the logits 0, 0 and 0, 2.
  const float half = std::log(0.5F);
  const float low = -std::log(1.0F + std::exp(1.0F));
  const auto a = side_of_file(npy_f32(2, 2, {half, half, low, low + 1.0F}));
  const auto b = side_of_file(npy_f32(2, 2, {0, 0, 0, 2}));
  const auto c = compare(write({a, b}, "pair.h5"));
  EXPECT_FALSE(numbers_comparable(*c));
  EXPECT_EQ(find(*c, "rows_shifted"), nullptr);
  EXPECT_NEAR(at(*c, 1, "centred_rms"), 0.5, 1e-6);  // differences 0 and 1 about their mean
  EXPECT_TRUE(std::isnan(at(*c, 1, "max_abs")));
  EXPECT_EQ(holds(*c, Tier::tolerance), false) << "KL is known, and beyond the limit";
}

TEST_F(ImportKinds, RowsOfOneKindKeepTheirLargestDifference) {
  const auto a = side_of_file(npy_f32(1, 3, {1, 2, 5}));
  const auto b = side_of_file(npy_f32(1, 3, {1.5F, 2.5F, 5.5F}));
  const auto c = compare(write({a, b}, "pair.h5"));
  EXPECT_TRUE(numbers_comparable(*c));
  EXPECT_EQ(at(*c, 0, "max_abs"), 0.5);
  ASSERT_NE(find(*c, "rows_shifted"), nullptr);
  EXPECT_THAT(find(*c, "rows_shifted")->text, HasSubstr("(size 0.5)"));
  EXPECT_EQ(holds(*c, Tier::tolerance), false);
}

TEST_F(ImportKinds, NanInARowLeavesItsBestTokenOpen) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const auto a = side_of_file(npy_f32(3, 3, {1, 2, 0, 5, 4, 0, 0, 1, 9}));
  const auto b = side_of_file(npy_f32(3, 3, {1, 2, 0, 5, kNan, 0, 0, 1, 9}));
  const auto c = compare(write({a, b}, "pair.h5"));
  EXPECT_EQ(holds(*c, Tier::token), std::nullopt);
  EXPECT_EQ(c->verdict, Tier::inconclusive);
  EXPECT_THAT(c->verdict_text, HasSubstr("NaN in the rows of B at 1 step, first at step 1"));
  // Where the choice differs at a row without NaN, the texts differ whatever NaN hides.
  const auto other = side_of_file(npy_f32(3, 3, {2, 1, 0, 5, kNan, 0, 0, 1, 9}));
  const auto parted = compare(write({a, other}, "other.h5"));
  EXPECT_EQ(parted->verdict, Tier::different);
  EXPECT_THAT(parted->verdict_text, HasSubstr("NaN in the rows of B"));
  // The same bits hold the same best token.
  EXPECT_EQ(compare(write({b, b}, "same.h5"))->verdict, Tier::bitwise);
}

TEST_F(ImportKinds, RowsWithoutAPartnerAreCounted) {
  const auto a = side_of_file(npy_f32(3, 2, {1, 2, 2, 1, 1, 2}));
  const auto b = side_of_file(npy_f32(1, 2, {1, 2}));
  const auto c = compare(write({a, b}, "pair.h5"));
  EXPECT_EQ(c->verdict, Tier::inconclusive);
  EXPECT_THAT(c->verdict_text, HasSubstr("A has 2 rows more than B (3 and 1)"));
  EXPECT_THAT(compare(write({b, a}, "other.h5"))->verdict_text,
              HasSubstr("B has 2 rows more than A (1 and 3)"));
}

}  // namespace
}  // namespace driftscope
