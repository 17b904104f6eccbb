// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/populations.h"

#include <algorithm>
#include <cassert>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "analysis/responses/agreement.h"
#include "analysis/responses/split_mix.h"

namespace driftscope {
namespace {

constexpr double kNormal975 = 1.959963984540054;  // quantile of the normal distribution, 97.5%
constexpr double kNormal95 = 1.6448536269514722;  // 95%
constexpr double kNormal80 = 0.8416212335729143;  // 80%
constexpr double kLevel = 0.05;

// Unbiased squared MMD of side A, `count_a` members of the matrix, and the others.
double discrepancy(const AgreementMatrix& matrix, std::int64_t within_a, std::int64_t rows_a,
                   std::int64_t total, std::size_t count_a) {
  const std::int64_t across = rows_a - within_a;
  const std::int64_t within_b = total - within_a - 2 * across;
  const auto m = static_cast<double>(count_a);
  const auto k = static_cast<double>(matrix.size() - count_a);
  // The diagonal, the whole length each, is not part of the unbiased means.
  const std::int64_t own_a = static_cast<std::int64_t>(count_a) * matrix.length();
  const std::int64_t own_b = static_cast<std::int64_t>(matrix.size() - count_a) * matrix.length();
  return (static_cast<double>(within_a - own_a) / (m * (m - 1.0)) +
          static_cast<double>(within_b - own_b) / (k * (k - 1.0)) -
          2.0 * static_cast<double>(across) / (m * k)) /
         static_cast<double>(matrix.length());
}

// The statistic of the true split, then of each permutation.
std::vector<double> discrepancies(const AgreementMatrix& matrix, std::size_t count_a,
                                  std::int64_t permutations, std::uint64_t seed,
                                  Parallel& parallel) {
  constexpr std::size_t kBlock = 8;  // sets of a task: a row that was loaded serves all of them
  const std::size_t n = matrix.size();
  const auto count = static_cast<std::size_t>(permutations) + 1;
  // Which samples are side A, a bit each: drawn one after the other, whoever computes them.
  std::vector<std::vector<bool>> sides(count, std::vector<bool>(n, false));
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  SplitMix random(seed);
  for (std::size_t round = 0; round < count; ++round) {
    for (std::size_t i = 0; i < count_a; ++i) sides[round][order[i]] = true;
    for (std::size_t i = n - 1; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
  }
  std::int64_t total = 0;
  for (std::size_t i = 0; i < n; ++i) total += matrix.row_sum(i);
  std::vector<double> values(count);
  const auto task = [&](std::size_t block, int) {
    const std::size_t first = block * kBlock;
    const std::size_t sets = std::min(kBlock, count - first);
    std::vector<std::int16_t> members(sets * matrix.padded_size(), 0);
    std::vector<std::int64_t> rows(sets, 0);
    for (std::size_t set = 0; set < sets; ++set) {
      for (std::size_t i = 0; i < n; ++i) {
        if (!sides[first + set][i]) continue;
        members[set * matrix.padded_size() + i] = 1;
        rows[set] += matrix.row_sum(i);
      }
    }
    const std::vector<std::int64_t> within = matrix.sums_within(members.data(), sets);
    for (std::size_t set = 0; set < sets; ++set) {
      values[first + set] = discrepancy(matrix, within[set], rows[set], total, count_a);
    }
  };
  parallel.run((count + kBlock - 1) / kBlock, task);
  return values;
}

// Every so many of a side's samples, `wanted` at most.
void choose_samples(std::span<const SymbolSequence> side, std::size_t wanted,
                    std::vector<const SymbolSequence*>& chosen) {
  const std::size_t count = std::min(side.size(), wanted);
  for (std::size_t i = 0; i < count; ++i) chosen.push_back(&side[i * side.size() / count]);
}

// Samples of a side that can be tested within the limits.
std::size_t most_samples(std::span<const SymbolSequence> a, std::span<const SymbolSequence> b) {
  std::size_t length = 1;
  for (const auto& side : {a, b}) {
    for (const SymbolSequence& sequence : side) length = std::max(length, sequence.size());
  }
  // Pairs of two sides of this many each: 2 n^2.
  const double fitting = std::sqrt(0.5 * kMostComparisons / static_cast<double>(length));
  return std::max<std::size_t>(2, std::min(kMostTested, static_cast<std::size_t>(fitting)));
}

// One over the number of splits of n samples into sides of these sizes; sides of one size can be
// exchanged, which doubles it.
double smallest_p_value(std::size_t a, std::size_t b) {
  double splits = 1.0;
  for (std::size_t i = 1; i <= a; ++i) {
    splits *= static_cast<double>(b + i) / static_cast<double>(i);
    if (splits > 1e12) break;
  }
  return std::min(1.0, (a == b ? 2.0 : 1.0) / splits);
}

// Bonferroni's correction over the two tests; the tokens' alone where there are no logprobs.
double combined_p_value(const PromptComparison& prompt) {
  if (!prompt.logprobs_known) return prompt.test.p_value;
  return std::min(1.0, 2.0 * std::min(prompt.test.p_value, prompt.logprobs.p_value));
}

SideSummary summarise(const SampleGroup& group) {
  SideSummary summary;
  summary.samples = static_cast<std::int64_t>(group.texts.size());
  std::set<std::string> raw(group.texts.begin(), group.texts.end());
  std::set<std::string> normalised;
  for (const std::string& text : group.texts) normalised.insert(normalised_answer(text));
  summary.unique = static_cast<std::int64_t>(raw.size());
  summary.all_equal = raw.size() == 1;
  summary.all_equal_normalised = normalised.size() == 1;
  std::vector<double> places;
  for (std::size_t i = 1; i < group.sequences.size(); ++i) {
    places.push_back(first_difference(group.sequences[0], group.sequences[i]));
  }
  summary.first_divergence = median_interval(std::move(places));
  return summary;
}

}  // namespace

Share share_of(std::int64_t hits, std::int64_t count) {
  Share share{.hits = hits, .count = count};
  if (count == 0) {
    share.value = std::numeric_limits<double>::quiet_NaN();
    return share;
  }
  const auto n = static_cast<double>(count);
  const double p = static_cast<double>(hits) / n;
  const double z2 = kNormal975 * kNormal975;
  const double centre = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
  const double half =
      kNormal975 * std::sqrt(p * (1.0 - p) / n + z2 / (4.0 * n * n)) / (1.0 + z2 / n);
  share.value = p;
  share.low = std::max(0.0, centre - half);
  share.high = std::min(1.0, centre + half);
  return share;
}

TwoSampleTest two_sample_test(std::span<const SymbolSequence> a, std::span<const SymbolSequence> b,
                              std::int64_t permutations, std::uint64_t seed) {
  SerialParallel serial;
  return two_sample_test(a, b, permutations, seed, serial);
}

TwoSampleTest two_sample_test(std::span<const SymbolSequence> a, std::span<const SymbolSequence> b,
                              std::int64_t permutations, std::uint64_t seed, Parallel& parallel) {
  TwoSampleTest test;
  if (a.size() < 2 || b.size() < 2) return test;
  const std::size_t most = most_samples(a, b);
  std::vector<const SymbolSequence*> samples;
  choose_samples(a, most, samples);
  const std::size_t count_a = samples.size();
  choose_samples(b, most, samples);
  const std::size_t count_b = samples.size() - count_a;
  test.samples_a = static_cast<std::int64_t>(count_a);
  test.samples_b = static_cast<std::int64_t>(count_b);
  const AgreementMatrix matrix(samples, parallel);
  const std::vector<double> values = discrepancies(matrix, count_a, permutations, seed, parallel);
  test.statistic = values[0];
  std::int64_t reached = 0;
  double sum = 0.0;
  double squares = 0.0;
  // Equal in exact arithmetic, two of them may differ in their last bits; that is no larger value.
  const double threshold = test.statistic - 1e-12;
  for (std::size_t round = 1; round < values.size(); ++round) {
    if (values[round] >= threshold) ++reached;
    sum += values[round];
    squares += values[round] * values[round];
  }
  test.permutations = permutations;
  test.smallest_p =
      std::max(smallest_p_value(count_a, count_b), 1.0 / static_cast<double>(1 + permutations));
  test.p_value = static_cast<double>(1 + reached) / static_cast<double>(1 + permutations);
  if (permutations < 2) return test;
  const auto rounds = static_cast<double>(permutations);
  test.null_deviation =
      std::sqrt(std::max(0.0, squares / rounds - (sum / rounds) * (sum / rounds)));
  if (test.statistic > 0.0 && test.null_deviation > 0.0) {
    // The statistic's deviation under the null falls as one over the number of samples.
    const double factor = test.null_deviation * (kNormal95 + kNormal80) / test.statistic;
    const auto smaller = static_cast<double>(std::min(count_a, count_b));
    // Not found with these: more than these are needed, whatever the approximation says.
    const double least = test.p_value > kLevel ? smaller + 1.0 : 0.0;
    const double needed = std::max(least, std::ceil(factor * smaller));
    test.samples_needed = static_cast<std::int64_t>(std::min(needed, 1e9));
  }
  return test;
}

std::vector<double> holm_correction(std::span<const double> p_values) {
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t i, std::size_t j) { return p_values[i] < p_values[j]; });
  std::vector<double> corrected(p_values.size(), 1.0);
  double largest = 0.0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const auto left = static_cast<double>(order.size() - rank);
    largest = std::max(largest, std::min(1.0, p_values[order[rank]] * left));
    corrected[order[rank]] = largest;
  }
  return corrected;
}

MedianInterval median_interval(std::vector<double> values) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (values.empty()) return {kNone, kNone, kNone};
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  const double middle =
      n % 2 == 1
          ? values[n / 2]
          : (std::isinf(values[n / 2]) ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]));
  // Ranks by the normal approximation of the binomial with one half.
  const auto count = static_cast<double>(n);
  const double half = 0.5 * kNormal975 * std::sqrt(count);
  const double low = std::max(0.0, std::floor(0.5 * count - half) - 0.0);
  const double high = std::min(count - 1.0, std::ceil(0.5 * count + half));
  return {middle, values[static_cast<std::size_t>(low)], values[static_cast<std::size_t>(high)]};
}

double first_difference(const SymbolSequence& a, const SymbolSequence& b) {
  const auto [at, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (at == a.end() && other == b.end()) return std::numeric_limits<double>::infinity();
  return static_cast<double>(at - a.begin());
}

PopulationComparison compare_populations(std::span<const SampleGroup> a,
                                         std::span<const SampleGroup> b, std::int64_t permutations,
                                         std::uint64_t seed) {
  SerialParallel serial;
  return compare_populations(a, b, permutations, seed, serial);
}

PopulationComparison compare_populations(std::span<const SampleGroup> a,
                                         std::span<const SampleGroup> b, std::int64_t permutations,
                                         std::uint64_t seed, Parallel& parallel) {
  PopulationComparison out;
  std::map<std::string, const SampleGroup*> partners;
  for (const SampleGroup& group : b) partners.emplace(group.prompt, &group);
  std::vector<double> p_values;
  std::int64_t raw_a = 0, raw_b = 0, answer_a = 0, answer_b = 0;
  std::int64_t unique_a = 0, unique_b = 0, samples_a = 0, samples_b = 0;
  for (const SampleGroup& group : a) {
    const auto found = partners.find(group.prompt);
    if (found == partners.end()) continue;
    const SampleGroup& other = *found->second;
    PromptComparison prompt;
    prompt.prompt = group.prompt;
    prompt.a = summarise(group);
    prompt.b = summarise(other);
    prompt.test = two_sample_test(group.sequences, other.sequences, permutations,
                                  seed + out.prompts.size(), parallel);
    prompt.logprobs_known = group.mean_logprobs.size() > 1 && other.mean_logprobs.size() > 1;
    if (prompt.logprobs_known) {
      prompt.logprobs = kolmogorov_smirnov(group.mean_logprobs, other.mean_logprobs, permutations,
                                           seed + out.prompts.size());
    }
    prompt.combined_p = combined_p_value(prompt);
    p_values.push_back(prompt.combined_p);
    raw_a += prompt.a.all_equal ? 1 : 0;
    raw_b += prompt.b.all_equal ? 1 : 0;
    answer_a += prompt.a.all_equal_normalised ? 1 : 0;
    answer_b += prompt.b.all_equal_normalised ? 1 : 0;
    unique_a += prompt.a.unique;
    unique_b += prompt.b.unique;
    samples_a += prompt.a.samples;
    samples_b += prompt.b.samples;
    out.prompts.push_back(std::move(prompt));
  }
  const std::vector<double> corrected = holm_correction(p_values);
  for (std::size_t i = 0; i < corrected.size(); ++i) {
    out.prompts[i].corrected_p = corrected[i];
    out.changed += corrected[i] <= kLevel ? 1 : 0;
  }
  const auto prompts = static_cast<std::int64_t>(out.prompts.size());
  out.tar_raw_a = share_of(raw_a, prompts);
  out.tar_raw_b = share_of(raw_b, prompts);
  out.tar_answer_a = share_of(answer_a, prompts);
  out.tar_answer_b = share_of(answer_b, prompts);
  out.unique_a = share_of(unique_a, samples_a);
  out.unique_b = share_of(unique_b, samples_b);
  return out;
}

std::int64_t usual_permutations(std::size_t prompts) {
  return std::max<std::int64_t>(1000, 100 * static_cast<std::int64_t>(prompts));
}

std::string normalised_answer(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
      if (!out.empty() && out.back() != ' ') out += ' ';
      continue;
    }
    out += byte < 0x80 ? static_cast<char>(std::tolower(byte)) : c;
  }
  while (!out.empty() && std::string_view(" .!,;:").find(out.back()) != std::string_view::npos) {
    out.pop_back();
  }
  return out;
}

}  // namespace driftscope
