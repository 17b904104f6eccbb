// SPDX-License-Identifier: Apache-2.0
// Many samples of the same prompts from two sides: what single answers cannot prove.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/parallel.h"

namespace driftscope {

// An answer as a sequence of symbols: token ids where all samples have them, else code points.
using SymbolSequence = std::vector<std::int64_t>;

// A share of `count` with its 95% interval (Wilson score).
struct Share {
  std::int64_t hits = 0;
  std::int64_t count = 0;
  double value = 0.0;  // NaN for none
  double low = 0.0;
  double high = 1.0;
};
[[nodiscard]] Share share_of(std::int64_t hits, std::int64_t count);

// Two-sample test of "both sides answer from the same distribution": squared maximum mean
// discrepancy (unbiased) with the Hamming kernel, the share of places at which two sequences
// agree, shorter ones padded by a symbol of their own; p-value by permutation of the samples
// between the sides (Gao, Liang, Guestrin: Model Equality Testing, 2024).
struct TwoSampleTest {
  double statistic = 0.0;
  double p_value = 1.0;  // (1 + permutations that reach the statistic) / (1 + permutations)
  std::int64_t permutations = 0;
  // Samples of each side that were tested: all, unless a side has more than kMostTested or the
  // comparisons of all pairs would be more than kMostComparisons; then every so many of them.
  std::int64_t samples_a = 0, samples_b = 0;
  double null_deviation = 0.0;  // of the statistic over the permutations
  // Smallest p-value that so few samples can give, one over the number of ways to deal them out, or
  // so few permutations.
  double smallest_p = 1.0;
  // Samples of each side with which an effect of this size would be found at 5% in 80% of the
  // cases, by the normal approximation; empty where the statistic is not above 0.
  std::optional<std::int64_t> samples_needed = {};
};
inline constexpr std::size_t kMostTested = 5000;    // of a side: memory grows with the square
inline constexpr double kMostComparisons = 1.5e11;  // of two symbols: some ten seconds
// `seed` chooses the permutations; the same seed gives the same p-value. Each side has two samples
// or more, else the test has p-value 1 and no permutations.
[[nodiscard]] TwoSampleTest two_sample_test(std::span<const SymbolSequence> a,
                                            std::span<const SymbolSequence> b,
                                            std::int64_t permutations, std::uint64_t seed);
// The same bits whatever the number of workers.
[[nodiscard]] TwoSampleTest two_sample_test(std::span<const SymbolSequence> a,
                                            std::span<const SymbolSequence> b,
                                            std::int64_t permutations, std::uint64_t seed,
                                            Parallel& parallel);

// Largest distance of two empirical distributions. Values: independent, one per answer.
struct DistributionTest {
  double statistic = 0.0;
  double p_value = 1.0;
};
// p-value: the asymptotic one of Kolmogorov and Smirnov with Stephens' correction for small
// samples.
[[nodiscard]] DistributionTest kolmogorov_smirnov(const std::vector<double>& a,
                                                  const std::vector<double>& b);
// p-value by permutation of the values between the sides, which holds for small samples and for
// equal values too: (1 + permutations that reach the statistic) / (1 + permutations).
[[nodiscard]] DistributionTest kolmogorov_smirnov(const std::vector<double>& a,
                                                  const std::vector<double>& b,
                                                  std::int64_t permutations, std::uint64_t seed);

// Holm's step-down correction: p-values that hold for all of them together, in the order given.
[[nodiscard]] std::vector<double> holm_correction(std::span<const double> p_values);

// A median with the 95% interval of its order statistics; infinite values (never) are allowed.
struct MedianInterval {
  double median = 0.0;
  double low = 0.0;
  double high = 0.0;
};
[[nodiscard]] MedianInterval median_interval(std::vector<double> values);

// First place at which two sequences differ; infinity where they are equal.
[[nodiscard]] double first_difference(const SymbolSequence& a, const SymbolSequence& b);

// One prompt, one side.
struct SampleGroup {
  std::string prompt;  // custom_id, or "" where there is one prompt only
  std::vector<SymbolSequence> sequences;
  std::vector<std::string> texts;
  std::vector<double> mean_logprobs;  // of the answers that have one
};

struct SideSummary {
  std::int64_t samples = 0;
  std::int64_t unique = 0;            // answers that differ
  bool all_equal = false;             // TARr of this prompt: every raw answer is the same
  bool all_equal_normalised = false;  // TARa: so is every answer once normalised
  MedianInterval first_divergence;    // over the pairs with the first sample
};

struct PromptComparison {
  std::string prompt;
  SideSummary a, b;
  TwoSampleTest test;
  DistributionTest logprobs;  // of the answers' mean logprobs, by permutation
  bool logprobs_known = false;
  // Of both tests: twice the smaller one, at most 1; that of the tokens where there are no
  // logprobs. The tokens' test sees other answers, the logprobs' the same answers said with another
  // certainty.
  double combined_p = 1.0;
  double corrected_p = 1.0;  // of the combined one: Holm, over the prompts
};

struct PopulationComparison {
  std::vector<PromptComparison> prompts;
  Share tar_raw_a, tar_raw_b;  // share of prompts whose answers all agree
  Share tar_answer_a, tar_answer_b;
  Share unique_a, unique_b;  // unique answers among samples
  // Prompts whose corrected p-value is at most 5%.
  std::int64_t changed = 0;
};

// Permutations with which a change of one of `prompts` prompts can pass Holm's correction at 5%,
// with room: 1,000, or 100 for each prompt.
[[nodiscard]] std::int64_t usual_permutations(std::size_t prompts);
// Groups of the same name are compared; names without a partner are left out.
[[nodiscard]] PopulationComparison compare_populations(std::span<const SampleGroup> a,
                                                       std::span<const SampleGroup> b,
                                                       std::int64_t permutations,
                                                       std::uint64_t seed);
[[nodiscard]] PopulationComparison compare_populations(std::span<const SampleGroup> a,
                                                       std::span<const SampleGroup> b,
                                                       std::int64_t permutations,
                                                       std::uint64_t seed, Parallel& parallel);

// Lower case, runs of white space as one space, none at the ends, no punctuation at the end.
[[nodiscard]] std::string normalised_answer(std::string_view text);

}  // namespace driftscope
