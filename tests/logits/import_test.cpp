// SPDX-License-Identifier: Apache-2.0
// From files to a capture to a comparison: figures worked out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/logits/import_fixture.h"

namespace driftscope {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(Import, TwoMatricesAreComparedRowByRow) {
  const auto a = side_of_file(npy_f32(3, 3, {1, 2, 0, 5, 4, 0, 0, 1, 9}));
  const auto b = side_of_file(npy_f32(3, 3, {1, 2, 0, 4, 4.5, 0, 0, 1, 9}));
  const auto path = write({a, b}, "pair.h5");
  const auto c = compare(path);
  ASSERT_EQ(c->steps.size(), 3U);  // also after the flip: rows stand at the same places
  EXPECT_EQ(at(*c, 0, "max_abs"), 0.0);
  EXPECT_EQ(at(*c, 1, "max_abs"), 1.0);
  EXPECT_EQ(at(*c, 2, "max_abs"), 0.0);
  ASSERT_TRUE(c->first_divergence);
  EXPECT_EQ(c->first_divergence->step, 1);
  EXPECT_EQ(c->first_divergence->token_a, TokenId{0});
  EXPECT_EQ(c->first_divergence->token_b, TokenId{1});
  EXPECT_EQ(c->first_divergence->margin_a, 1.0);
  EXPECT_EQ(c->first_divergence->margin_b, 0.5);
  EXPECT_TRUE(std::isnan(c->first_divergence->tie_ulps)) << "the type of the logits is not known";
  EXPECT_EQ(c->first_divergence->rounding_bound, 0.0);
  EXPECT_NE(c->first_divergence->cause, FlipCause::near_tie);
  EXPECT_EQ(holds(*c, Tier::token), false);
  EXPECT_EQ(holds(*c, Tier::bitwise), false);
  EXPECT_EQ(c->verdict, Tier::different);
  EXPECT_EQ(c->config_a_json, "");
  EXPECT_NE(find(*c, "tokens_from_rows"), nullptr);
  EXPECT_NE(find(*c, "prompt_not_known"), nullptr);
  EXPECT_EQ(find(*c, "drift_without_cause"), nullptr) << "no configuration is known";
  EXPECT_EQ(find(*c, "whole_rows_missing"), nullptr);
  // One lane each, joined later, says the same.
  const auto joined = compare(write({a}, "a.h5"), write({b}, "b.h5"));
  ASSERT_EQ(joined->steps.size(), 3U);
  EXPECT_EQ(at(*joined, 1, "max_abs"), 1.0);
  EXPECT_EQ(joined->first_divergence->step, 1);
  EXPECT_EQ(joined->verdict, Tier::different);
}

TEST_F(Import, EqualMatricesHaveTheSameBits) {
  const std::string bytes = npy_f32(2, 3, {1, 2, 0, 5, 4, 0});
  const auto c = compare(write({side_of_file(bytes), side_of_file(bytes)}, "pair.h5"));
  EXPECT_EQ(c->verdict, Tier::bitwise);
  EXPECT_FALSE(c->first_divergence);
  EXPECT_EQ(holds(*c, Tier::token), true);
}

TEST_F(Import, NothingIsInvented) {
  const auto path = write({side_of_file(npy_f32(1, 2, {1, 2}))}, "one.h5");
  auto reader = CaptureReader::open(path);
  ASSERT_TRUE(reader) << reader.error().message;
  const CaptureLaneInfo* lane = (*reader)->lane(Lane::a);
  ASSERT_NE(lane, nullptr);
  EXPECT_EQ((*reader)->lane(Lane::b), nullptr);
  EXPECT_EQ(lane->lane.config_json, "");
  EXPECT_EQ(lane->lane.model_sha256, "");
  EXPECT_THAT(*(*reader)->timing_ns(Lane::a), ElementsAre(0));
  EXPECT_THAT(lane->lane.envelope_json, HasSubstr("\"values\":\"not_stated\""));
  EXPECT_THAT(lane->lane.envelope_json, HasSubstr("\"tokens\":\"best of each row\""));
}

TEST_F(Import, RowsThatAddUpToOneAreLogProbabilities) {
  const float half = std::log(0.5F);
  const auto path = write({side_of_file(npy_f32(1, 2, {half, half}))}, "one.h5");
  auto reader = CaptureReader::open(path);
  EXPECT_THAT((*reader)->lane(Lane::a)->lane.envelope_json,
              HasSubstr("\"values\":\"log_probability\""));
}

TEST_F(Import, ScoredTokensAreGivenAndTheBestTokenIsJudged) {
  // log p: 0 and -8 either way; token 3 is scored, the best token differs.
  const auto a = side_of_file(kld_file({0, 1, 2, 3}, 4, 0.5F, -8.0F, {0, 16, 4, 2}));
  const auto b = side_of_file(kld_file({0, 1, 2, 3}, 4, 0.5F, -8.0F, {16, 0, 4, 2}));
  const auto c = compare(write({a, b}, "pair.h5"));
  ASSERT_EQ(c->steps.size(), 1U);
  EXPECT_EQ(c->steps[0]->token_a, TokenId{3});
  EXPECT_FALSE(c->first_divergence) << "the tokens were given";
  ASSERT_TRUE(c->first_flip);
  EXPECT_EQ(c->first_flip->token_a, TokenId{1});
  EXPECT_EQ(c->first_flip->token_b, TokenId{0});
  EXPECT_EQ(holds(*c, Tier::token), false);
  EXPECT_EQ(c->verdict, Tier::different);
  EXPECT_EQ(at(*c, 0, "max_abs"), 8.0);
  EXPECT_NEAR(at(*c, 0, "dlogp"), 0.0, 1e-12);
}

TEST_F(Import, DifferencesOnAGridAreTold) {
  // Two rows: B's logits moved by multiples of 1/8.
  const auto a = side_of_file(npy_f32(2, 4, {20, 19, 18, 17, 20, 19, 18, 17}));
  const auto b =
      side_of_file(npy_f32(2, 4, {20, 19.125F, 17.75F, 17.125F, 20, 18.875F, 18.25F, 16.875F}));
  const auto c = compare(write({a, b}, "pair.h5"));
  const Finding* grid = find(*c, "differences_on_grid");
  ASSERT_NE(grid, nullptr);
  EXPECT_THAT(grid->text, HasSubstr("multiples of 0.125"));
}

// ---- answers ----

TEST_F(Import, AnswersBecomeListsOfTheirTokens) {
  const auto a = side_of_answer(answer({{"A", -0.25, {{"A", -0.25}, {"B", -2.0}, {"C", -4.0}}},
                                        {"B", -0.5, {{"B", -0.5}, {"C", -1.0}, {"A", -3.0}}},
                                        {"C", -0.1, {{"C", -0.1}, {"A", -3.5}}}}));
  const auto b = side_of_answer(answer({{"A", -0.375, {{"A", -0.375}, {"C", -2.0}, {"B", -2.5}}},
                                        {"C", -0.625, {{"C", -0.625}, {"B", -0.75}, {"D", -3.0}}},
                                        {"A", -0.1, {{"A", -0.1}, {"B", -3.5}}}}));
  const auto path = write({a, b}, "pair.h5");
  const auto c = compare(path);
  ASSERT_EQ(c->steps.size(), 2U) << "later rows follow other tokens";
  for (const auto& step : c->steps) {
    for (const std::string_view id :
         {"max_abs", "mean_abs", "rms", "centred_rms", "kl_ab", "js", "tv", "entropy_a", "headroom",
          "tie_ulps", "topk_kendall", "different_entries", "max_ulp"}) {
      EXPECT_TRUE(std::isnan(metric_value(step->metrics, id))) << id;
    }
  }
  EXPECT_DOUBLE_EQ(at(*c, 0, "dlogp"), -0.125);
  EXPECT_DOUBLE_EQ(at(*c, 0, "margin_a"), 1.75);
  EXPECT_DOUBLE_EQ(at(*c, 0, "margin_b"), 1.625);
  EXPECT_DOUBLE_EQ(at(*c, 0, "pair_drift"), 0.375);  // A moved by -0.125, B by -0.5
  EXPECT_EQ(at(*c, 0, "rank_flips"), 1.0);           // B and C
  EXPECT_EQ(at(*c, 0, "topk_overlap"), 1.0);
  EXPECT_EQ(at(*c, 1, "top1_match"), 0.0);
  ASSERT_TRUE(c->first_divergence);
  const Divergence& d = *c->first_divergence;
  EXPECT_EQ(d.step, 1);
  EXPECT_EQ(c->piece(*d.token_a)->bytes, "B");
  EXPECT_EQ(c->piece(*d.token_b)->bytes, "C");
  EXPECT_DOUBLE_EQ(d.gap_a, 0.5);
  EXPECT_DOUBLE_EQ(d.gap_b, 0.125);
  // 0.625 together is within twice the other step's 0.375.
  EXPECT_EQ(d.cause, FlipCause::near_tie);
  EXPECT_EQ(c->verdict, Tier::different);
  EXPECT_EQ(holds(*c, Tier::bitwise), false);
  EXPECT_EQ(holds(*c, Tier::tolerance), std::nullopt);
  ASSERT_NE(find(*c, "whole_rows_missing"), nullptr);
  const Finding* listed = find(*c, "listed_differences");
  ASSERT_NE(listed, nullptr);
  // Step 0: A 0.125, B 0.5, C 2; step 1: B 0.25, C 0.375.
  EXPECT_THAT(listed->evidence, HasSubstr("\"values\":5"));
  EXPECT_THAT(listed->evidence, HasSubstr("\"max_abs\":2.0"));
  EXPECT_THAT(listed->evidence, HasSubstr("\"mean_abs\":0.65"));
  // One lane each, joined by the texts of the tokens.
  const auto joined = compare(write({a}, "a.h5"), write({b}, "b.h5"));
  ASSERT_TRUE(joined->first_divergence);
  EXPECT_EQ(joined->first_divergence->step, 1);
  EXPECT_DOUBLE_EQ(joined->first_divergence->gap_a, 0.5);
  EXPECT_EQ(joined->piece(*joined->first_divergence->token_b)->bytes, "C");
}

TEST_F(Import, EqualTokensWithoutWholeRowsAreTokenEqualAndNoMore) {
  const std::string text = answer({{"A", -0.25, {{"A", -0.25}, {"B", -2.0}}}});
  const auto c = compare(write({side_of_answer(text), side_of_answer(text)}, "pair.h5"));
  EXPECT_EQ(c->verdict, Tier::token);
  EXPECT_EQ(holds(*c, Tier::bitwise), std::nullopt);
  EXPECT_EQ(holds(*c, Tier::tolerance), std::nullopt);
  EXPECT_EQ(find(*c, "identical"), nullptr);
}

TEST_F(Import, TheSameValueTwiceIsATie) {
  const auto a = side_of_answer(answer({{"A", -0.7, {{"A", -0.7}, {"B", -0.7}, {"C", -4.0}}}}));
  const auto b = side_of_answer(answer({{"B", -0.7, {{"B", -0.7}, {"A", -0.7}, {"C", -4.0}}}}));
  const auto c = compare(write({a, b}, "pair.h5"));
  ASSERT_TRUE(c->first_divergence);
  EXPECT_EQ(c->first_divergence->cause, FlipCause::tie_break);
}

TEST_F(Import, ATokenThatIsNotTheBestWasDrawn) {
  const auto a = side_of_answer(answer({{"A", -0.2, {{"A", -0.2}, {"B", -2.0}}}}));
  const auto b = side_of_answer(answer({{"B", -2.0, {{"A", -0.2}, {"B", -2.0}}}}));
  const auto c = compare(write({a, b}, "pair.h5"));
  ASSERT_TRUE(c->first_divergence);
  EXPECT_EQ(c->first_divergence->cause, FlipCause::sampler);
  EXPECT_TRUE(std::isnan(at(*c, 0, "margin_b"))) << "the chosen token may have been added";
}

TEST_F(Import, NoValuesCarryNoMargin) {
  const auto a = side_of_answer(answer({{"A", -0.2, {}}}));
  const auto b = side_of_answer(answer({{"B", -0.2, {}}}));
  const auto c = compare(write({a, b}, "pair.h5"));
  ASSERT_TRUE(c->first_divergence);
  EXPECT_EQ(c->first_divergence->cause, FlipCause::unexplained);
  EXPECT_TRUE(std::isnan(c->first_divergence->margin_a));
  EXPECT_THAT(find(*c, "listed_differences")->text, HasSubstr("nothing to measure"));
}

TEST_F(Import, AnOpenEndIsInconclusive) {
  // B has fewer tokens and does not say why it ended.
  const auto a = side_of_answer(answer({{"A", -0.2, {}}, {"B", -0.2, {}}}));
  auto b = side_of_answer(answer({{"A", -0.2, {}}}));
  b.stop = "steps";
  const auto c = compare(write({a, b}, "pair.h5"));
  EXPECT_FALSE(c->first_divergence);
  EXPECT_EQ(c->verdict, Tier::inconclusive);
}

TEST_F(Import, OtherPromptsAreOtherTasks) {
  auto a = side_of_answer(answer({{"A", -0.2, {}}}));
  auto b = side_of_answer(answer({{"A", -0.2, {}}}));
  a.prompt_text = "one";
  b.prompt_text = "two";
  const auto c = compare(write({a, b}, "pair.h5"));
  EXPECT_EQ(c->verdict, Tier::inconclusive);
  EXPECT_THAT(c->verdict_text, HasSubstr("prompts differ from byte 0"));
}

TEST_F(Import, LostBytesCannotBeCompared) {
  auto a = side_of_answer(answer({{"A", -0.2, {}}}));
  auto b = a;
  b.lossy = true;
  EXPECT_EQ(compare(write({a, b}, "pair.h5"))->verdict, Tier::inconclusive);
}

TEST_F(Import, ListsAndRowsDoNotFitTogether) {
  const auto written = write_import(
      m_folder / "x.h5",
      {side_of_file(npy_f32(1, 2, {1, 2})), side_of_answer(answer({{"A", -0.2, {}}}))}, {});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind, ErrorKind::inconclusive);
  const auto other = write_import(
      m_folder / "x.h5",
      {side_of_file(npy_f32(1, 2, {1, 2})), side_of_file(npy_f32(1, 3, {1, 2, 3}))}, {});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, ErrorKind::inconclusive);
}

TEST_F(Import, AnAnswerWithoutTokensIsRefused) {
  auto responses = read_responses(
      R"({"object":"chat.completion","model":"m","choices":[{"index":0,"message":{"content":"Hi"}}]})",
      "r");
  ASSERT_TRUE(responses);
  grade_response((*responses)[0]);
  const auto side = import_side((*responses)[0], 0);
  ASSERT_FALSE(side);
  EXPECT_EQ(side.error().kind, ErrorKind::inconclusive);
  EXPECT_THAT(side.error().message, HasSubstr("driftscope vendor"));
}

TEST_F(Import, RowsThatTurnOutDamagedLeaveNoFile) {
  auto side = side_of_file(npy_f32(2, 2, {1, 2, 3, 4}));
  side.values = "logit";
  side.rows->read = [](std::int64_t row, std::span<float> target) -> Result<void> {
    if (row == 1) return fail(ErrorKind::malformed, "f: row 1 is damaged");
    std::fill(target.begin(), target.end(), 0.0F);
    return {};
  };
  const auto written = write_import(m_folder / "x.h5", {side}, {});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind, ErrorKind::malformed);
  EXPECT_TRUE(std::filesystem::is_empty(m_folder));
}

}  // namespace
}  // namespace driftscope
