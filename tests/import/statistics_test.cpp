// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "analysis/responses/kld_statistics.h"
#include "analysis/responses/populations.h"
#include "analysis/responses/similarity.h"

namespace driftscope {
namespace {

namespace fs = std::filesystem;

// Answers of eight tokens, each drawn by `draw` in [0, 1) from a small alphabet: `sharpness` is the
// share of the first symbol, as a lower temperature gives.
std::vector<SymbolSequence> draw_answers(std::size_t count, double sharpness,
                                         std::uint64_t& state) {
  const auto uniform = [&state] {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(state >> 11U) / 9007199254740992.0;
  };
  std::vector<SymbolSequence> answers(count);
  for (SymbolSequence& answer : answers) {
    for (int i = 0; i < 8; ++i) {
      const double u = uniform();
      answer.push_back(u < sharpness ? 0 : 1 + static_cast<std::int64_t>(4.0 * uniform()));
    }
  }
  return answers;
}

TEST(TwoSampleTest, ByHand) {
  // Kernel: share of equal places. Within A: 1; within B: 1; across: 1/2.
  const std::vector<SymbolSequence> a{{1, 2}, {1, 2}};
  const std::vector<SymbolSequence> b{{1, 3}, {1, 3}};
  const TwoSampleTest test = two_sample_test(a, b, 0, 1);
  EXPECT_DOUBLE_EQ(test.statistic, 1.0 + 1.0 - 2.0 * 0.5);
  // A shorter answer is padded by a symbol that equals itself only.
  const std::vector<SymbolSequence> c{{1}, {1}};
  EXPECT_DOUBLE_EQ(two_sample_test(a, c, 0, 1).statistic, 1.0 + 1.0 - 2.0 * 0.5);
  EXPECT_EQ(two_sample_test(a, std::vector<SymbolSequence>{{1}}, 10, 1).p_value, 1.0);
}

TEST(TwoSampleTest, PValueIsExactWhereItCanBeCounted) {
  // Of the 6 ways to choose two of four, 2 reach the statistic of the true split; every
  // permutation is one of them with equal probability.
  const std::vector<SymbolSequence> a{{1}, {1}};
  const std::vector<SymbolSequence> b{{2}, {2}};
  const TwoSampleTest test = two_sample_test(a, b, 20'000, 3);
  EXPECT_NEAR(test.p_value, 1.0 / 3.0, 0.012);  // 3.6 standard deviations
  EXPECT_EQ(test.p_value, two_sample_test(a, b, 20'000, 3).p_value);
  EXPECT_DOUBLE_EQ(test.smallest_p, 1.0 / 3.0);
  EXPECT_GT(*test.samples_needed, 2);
}

TEST(TwoSampleTest, FalsePositivesAndPower) {
  std::uint64_t state = 20261130;
  int null_hits = 0;
  constexpr int kExperiments = 1000;
  for (int i = 0; i < kExperiments; ++i) {
    const auto a = draw_answers(20, 0.6, state);
    const auto b = draw_answers(20, 0.6, state);
    if (two_sample_test(a, b, 199, static_cast<std::uint64_t>(i)).p_value <= 0.05) ++null_hits;
  }
  // A test of level 5% rejects 50 of 1,000; three standard deviations are 21.
  EXPECT_GE(null_hits, 29);
  EXPECT_LE(null_hits, 71);
  RecordProperty("false_positives_of_1000", null_hits);
  int found = 0;
  for (int i = 0; i < 100; ++i) {
    const auto a = draw_answers(20, 0.6, state);
    const auto b = draw_answers(20, 0.9, state);
    if (two_sample_test(a, b, 199, static_cast<std::uint64_t>(i)).p_value <= 0.05) ++found;
  }
  EXPECT_GE(found, 95);
  RecordProperty("found_of_100", found);
}

// The definition, with no matrix and no whole numbers.
double squared_discrepancy(const std::vector<SymbolSequence>& a,
                           const std::vector<SymbolSequence>& b) {
  std::size_t length = 1;
  for (const auto* side : {&a, &b}) {
    for (const SymbolSequence& x : *side) length = std::max(length, x.size());
  }
  const auto symbol = [](const SymbolSequence& x, std::size_t k) {
    return k < x.size() ? x[k] : std::int64_t{-1};
  };
  const auto mean = [&](const auto& xs, const auto& ys, bool same) {
    double sum = 0.0;
    double count = 0.0;
    for (std::size_t i = 0; i < xs.size(); ++i) {
      for (std::size_t j = 0; j < ys.size(); ++j) {
        if (same && i == j) continue;
        double equal = 0.0;
        for (std::size_t k = 0; k < length; ++k) {
          equal += symbol(xs[i], k) == symbol(ys[j], k) ? 1.0 : 0.0;
        }
        sum += equal / static_cast<double>(length);
        count += 1.0;
      }
    }
    return sum / count;
  };
  return mean(a, a, true) + mean(b, b, true) - 2.0 * mean(a, b, false);
}

TEST(TwoSampleTest, StatisticIsTheDefinition) {
  std::uint64_t state = 7;
  for (const std::size_t count : {2U, 3U, 9U, 20U}) {
    auto a = draw_answers(count, 0.5, state);
    auto b = draw_answers(2 * count - 1, 0.7, state);
    a[0].resize(3);                            // shorter, padded
    b[1].insert(b[1].end(), {5, 6, 7, 8, 9});  // longer than all others
    for (auto* side : {&a, &b}) {
      for (SymbolSequence& x : *side) x.insert(x.begin(), {1, 1, 1});  // where all agree
    }
    EXPECT_NEAR(two_sample_test(a, b, 0, 1).statistic, squared_discrepancy(a, b), 1e-14);
  }
}

TEST(TwoSampleTest, LongSequencesAreCountedWhole) {
  // 40,000 places that differ: more than 15 bits.
  SymbolSequence zeros(40'000, 0), ones(40'000, 1);
  const std::vector<SymbolSequence> a{zeros, zeros}, b{ones, ones};
  EXPECT_DOUBLE_EQ(two_sample_test(a, b, 0, 1).statistic, 2.0);
}

TEST(TwoSampleTest, FewPermutationsCannotGiveASmallP) {
  std::uint64_t state = 3;
  const auto a = draw_answers(20, 0.1, state);
  const auto b = draw_answers(20, 0.9, state);
  EXPECT_DOUBLE_EQ(two_sample_test(a, b, 9, 1).smallest_p, 0.1);
  EXPECT_GE(two_sample_test(a, b, 9, 1).p_value, 0.1);
  EXPECT_EQ(usual_permutations(1), 1000);
  // Holm's first step over 100 prompts asks for 0.0005.
  EXPECT_LE(1.0 / static_cast<double>(1 + usual_permutations(100)), 0.0005);
}

TEST(KolmogorovSmirnov, ByHand) {
  EXPECT_DOUBLE_EQ(kolmogorov_smirnov({1, 2, 3}, {1, 2, 3}).statistic, 0.0);
  EXPECT_DOUBLE_EQ(kolmogorov_smirnov({1, 2, 3, 4}, {3, 4, 5, 6}).statistic, 0.5);
  EXPECT_DOUBLE_EQ(kolmogorov_smirnov({1, 2}, {3, 4}).statistic, 1.0);
  // The tail at 1.36 is 5% (Smirnov's table); 1.36 / (sqrt(50) + 0.12 + 0.11 / sqrt(50)).
  std::vector<double> a, b;
  for (int i = 0; i < 100; ++i) {
    a.push_back(i);
    b.push_back(i + 19);
  }
  const DistributionTest test = kolmogorov_smirnov(a, b);
  EXPECT_NEAR(test.statistic, 0.19, 1e-12);
  EXPECT_NEAR(test.p_value, 0.05, 0.005);
}

TEST(KolmogorovSmirnov, PermutationsCountTheWays) {
  // Of the six ways to deal out four values, two are as far apart; 9,999 draws are within 4 of
  // their standard deviations, sqrt(2/9 / 9999).
  const DistributionTest test = kolmogorov_smirnov({1, 2}, {3, 4}, 9999, 1);
  EXPECT_DOUBLE_EQ(test.statistic, 1.0);
  EXPECT_NEAR(test.p_value, 1.0 / 3.0, 0.019);
  // All values are one: every way is as far apart.
  EXPECT_DOUBLE_EQ(kolmogorov_smirnov({1, 1, 1}, {1, 1}, 99, 1).p_value, 1.0);
}

TEST(Populations, AChangeOfCertaintyAloneIsFound) {
  // The same answers on both sides, said with another mean logprob on each.
  SampleGroup a, b;
  for (int i = 0; i < 12; ++i) {
    for (SampleGroup* group : {&a, &b}) {
      group->sequences.push_back({1, 2, i % 3});
      group->texts.push_back(std::to_string(i % 3));
    }
    a.mean_logprobs.push_back(-0.1 - 0.001 * i);
    b.mean_logprobs.push_back(-0.3 - 0.001 * i);
  }
  const PopulationComparison found = compare_populations({&a, 1}, {&b, 1}, 999, 1);
  ASSERT_EQ(found.prompts.size(), 1U);
  EXPECT_GT(found.prompts[0].test.p_value, 0.5);
  // None of 999 ways to deal out the values puts them as far apart but by rare chance.
  EXPECT_LE(found.prompts[0].logprobs.p_value, 0.003);
  EXPECT_DOUBLE_EQ(found.prompts[0].combined_p, 2.0 * found.prompts[0].logprobs.p_value);
  EXPECT_EQ(found.changed, 1);
}

TEST(Holm, ByHand) {
  const std::vector<double> p{0.01, 0.04, 0.03};
  const auto corrected = holm_correction(p);
  EXPECT_DOUBLE_EQ(corrected[0], 0.03);
  EXPECT_DOUBLE_EQ(corrected[2], 0.06);
  EXPECT_DOUBLE_EQ(corrected[1], 0.06);  // never below the one before
}

TEST(Share, WilsonInterval) {
  const Share share = share_of(5, 10);
  EXPECT_NEAR(share.low, 0.2366, 5e-5);
  EXPECT_NEAR(share.high, 0.7634, 5e-5);
  EXPECT_EQ(share_of(0, 10).low, 0.0);
  EXPECT_TRUE(std::isnan(share_of(0, 0).value));
}

TEST(Populations, CountsAgreement) {
  SampleGroup same{
      .prompt = "p", .sequences = {{1}, {1}}, .texts = {"Yes.", "yes"}, .mean_logprobs = {}};
  SampleGroup equal{
      .prompt = "p", .sequences = {{1}, {1}}, .texts = {"no", "no"}, .mean_logprobs = {}};
  const auto c = compare_populations(std::vector{same}, std::vector{equal}, 99, 1);
  ASSERT_EQ(c.prompts.size(), 1U);
  EXPECT_EQ(c.tar_raw_a.hits, 0);
  EXPECT_EQ(c.tar_answer_a.hits, 1);
  EXPECT_EQ(c.tar_raw_b.hits, 1);
  EXPECT_EQ(c.unique_a.hits, 2);
  EXPECT_TRUE(std::isinf(c.prompts[0].a.first_divergence.median));
}

TEST(Similarity, ByHand) {
  EXPECT_DOUBLE_EQ(compare_texts("kitten", "sitting").edit.value(), 1.0 - 3.0 / 7.0);
  EXPECT_DOUBLE_EQ(compare_texts("", "").edit.value(), 1.0);
  EXPECT_DOUBLE_EQ(compare_texts("abc", "").edit.value(), 0.0);
  EXPECT_DOUBLE_EQ(compare_texts("a b", "ab").chrf, 1.0);
  EXPECT_DOUBLE_EQ(compare_texts("ab", "cd").chrf, 0.0);
  // One character of two; no pair: precision and recall are (1/2 + 0) / 2 each.
  EXPECT_DOUBLE_EQ(compare_texts("ab", "ac").chrf, 0.25);
  EXPECT_EQ(numbers_in("It costs 1,234.50 or -7 (007), 3.0, v1.2.3"),
            (std::vector<std::string>{"1234.5", "-7", "7", "3", "1.2", "3"}));
  EXPECT_TRUE(compare_texts("1,000 men", "1000 men.").numbers_equal);
  EXPECT_FALSE(compare_texts("1,000 men", "100 men").numbers_equal);
}

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A file of one chunk: context 4, vocabulary 3, so one row of n_ctx - 1 - n_ctx / 2.
std::string small_file() {
  std::string bytes = "_logits_";
  const auto add = [&bytes](const auto& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (const std::int32_t value : {4, 3, 1, 0, 1, 2, 1}) add(value);
  add(0.5F);
  add(-4.0F);
  for (const unsigned code : {8U, 6U, 0U, 0U}) add(static_cast<std::uint16_t>(code));
  return bytes;
}

// Levenshtein's recurrence as it is written.
std::size_t plain_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min(
          {d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U), d[i - 1][j] + 1, d[i][j - 1] + 1});
    }
  }
  return d[a.size()][b.size()];
}

TEST(Similarity, EditDistanceIsTheDefinition) {
  std::uint64_t state = 11;
  const auto letters = [&state](std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      text += static_cast<char>('a' + (state >> 60U) % 4);
    }
    return text;
  };
  // Around the blocks of 64 rows.
  for (const std::size_t rows : {1U, 2U, 63U, 64U, 65U, 127U, 128U, 129U, 200U}) {
    for (const std::size_t columns : {1U, 5U, 64U, 130U, 199U}) {
      const std::string a = letters(rows);
      const std::string b = letters(columns);
      const double longer = static_cast<double>(std::max(rows, columns));
      EXPECT_DOUBLE_EQ(compare_texts(a, b).edit.value(),
                       1.0 - static_cast<double>(plain_distance(a, b)) / longer)
          << a << " " << b;
    }
  }
}

TEST(Similarity, RepeatedGramsCountAsOftenAsBothHaveThem) {
  // Of one character: 2 of 4 in A, 2 of 2 in B are shared; of two: 1 of 3 and 1 of 1; of three and
  // four: A has 2 and 1, B none.
  const double precision = (1.0 + 1.0 + 0.0 + 0.0) / 4.0;
  const double recall = (0.5 + 1.0 / 3.0 + 0.0 + 0.0) / 4.0;
  EXPECT_DOUBLE_EQ(compare_texts("aaaa", "aa").chrf,
                   5.0 * precision * recall / (4.0 * precision + recall));
}

TEST(KldFile, ReadsTheLayout) {
  const std::string bytes = small_file();
  const auto file = read_kld_file(bytes, "f.kld");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->rows(), 1);
  EXPECT_EQ(file->scored_token(0), 1);  // tokens[4 / 2 + 0 + 1]
  std::vector<float> row(3);
  file->log_probabilities(0, row);
  EXPECT_EQ(row, (std::vector<float>{0.0F, -1.0F, -4.0F}));
}

TEST(KldFile, RefusesBrokenFiles) {
  const std::string good = small_file();
  for (const std::size_t size :
       {std::size_t{4}, std::size_t{12}, std::size_t{30}, good.size() - 1}) {
    EXPECT_FALSE(read_kld_file(std::string_view(good).substr(0, size), "f")) << size;
  }
  for (const std::size_t offset : {8U, 12U, 16U, 20U}) {
    std::string bad = good;
    bad[offset + 3] = '\x7f';
    const auto file = read_kld_file(bad, "f");
    ASSERT_FALSE(file) << offset;
    EXPECT_EQ(file.error().kind, ErrorKind::malformed);
  }
}

TEST(KldFile, GivesTheStatisticsThatLlamaCppPrinted) {
  const fs::path folder = fs::path(DRIFTSCOPE_SHARED_DATA) / "oracle/pairs";
  if (!fs::exists(folder)) GTEST_SKIP() << "the pair of logit files is not there";
  const std::string base_bytes = bytes_of(folder / "f32.kld");
  const std::string other_bytes = bytes_of(folder / "q8_0.kld");
  const auto base = read_kld_file(base_bytes, "f32.kld");
  const auto other = read_kld_file(other_bytes, "q8_0.kld");
  ASSERT_TRUE(base && other);
  const auto s = compare_kld_files(*base, *other);
  ASSERT_TRUE(s);
  // As printed; the second file is rounded to steps of at most 2.44e-4 nat.
  EXPECT_NEAR(s->perplexity_base.mean, 3.145338, 5e-6);
  EXPECT_NEAR(s->perplexity_base.error, 0.279785, 5e-6);
  EXPECT_NEAR(s->perplexity_other.mean, 3.150529, 2e-4);
  EXPECT_NEAR(s->log_ratio.mean, 0.001649, 1e-4);
  EXPECT_NEAR(s->correlation, 0.9997, 5e-5);
  EXPECT_NEAR(s->divergence.mean.mean, 0.000796, 2e-6);
  EXPECT_NEAR(s->divergence.mean.error, 0.000049, 1e-6);
  EXPECT_NEAR(s->divergence.maximum, 0.006531, 5e-5);
  EXPECT_NEAR(s->divergence.p99, 0.004112, 5e-5);
  EXPECT_NEAR(s->probability_change.mean.mean * 100, -0.027, 1e-3);
  EXPECT_NEAR(s->probability_change.maximum * 100, 4.071, 1e-2);
  EXPECT_NEAR(s->rms_probability_change.mean * 100, 0.999, 1e-3);
  EXPECT_NEAR(s->rms_probability_change.error * 100, 0.066, 1e-3);
  EXPECT_NEAR(s->same_top.mean * 100, 98.942, 1e-3);
  EXPECT_NEAR(s->same_top.error * 100, 0.527, 1e-3);
}

}  // namespace
}  // namespace driftscope
