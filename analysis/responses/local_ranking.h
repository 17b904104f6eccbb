// SPDX-License-Identifier: Apache-2.0
// Which of several configurations of our own engine gave the numbers that a vendor printed: each is
// fed the vendor's tokens, and its logprobs are held against the vendor's.
//
// The statistic is the mean of |Δ| = |vendor's logprob - the configuration's| over all values that
// the vendor printed (chosen tokens and alternatives), in nats. A configuration fits exactly where
// every |Δ| is within the vendor's printing plus 2^-18 (relative above 1) for the vendor's own
// log-softmax in f32.
//
// The best configuration is told apart from another one if it fits exactly, that one does not, and
// either somewhere the two lie farther apart than printing is wide (twice the tolerance above), or
// the other misses so many values that arithmetic like it, rounded a little otherwise, would hit
// all of them in fewer than 5% of cases (e^-misses, times the configurations); or, where none fits
// exactly, if
//   - the best is nearer to the vendor than half of what lies between the two (mean over the same
//     values): by the triangle inequality the other one then is farther away, whatever error the
//     vendor's own arithmetic makes; and
//   - more tokens are nearer to the best than to the other one, by a one-sided sign test at 5%
//     after Holm's correction over the configurations (tokens taken as independent).
// What cannot be told apart from the best is named with it; if that is everything, or there are no
// numbers, the answer is "unobservable". Where the values of the answers alone are fitted exactly
// and those of the prompts beside them are not, the prompts' are left out and the sentence says so.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace driftscope {

struct VendorValue {
  std::size_t step = 0;  // of VendorEvidence::tokens
  std::int32_t token = 0;
  double logprob = 0.0;
  double tolerance = 0.0;  // of its printing
  // Of the logits as they are, whatever temperature the answer was drawn at: servers print a
  // prompt's logprobs so.
  bool raw = false;
};

struct VendorEvidence {
  std::vector<std::int32_t> tokens;  // that the vendor chose, of all answers one after the other
  std::vector<VendorValue> values;   // by rising step
  std::optional<double> temperature = {};  // that the answer names, where above 0 and not 1
  std::string no_values;                   // why there are none; for people
};

// Temperature T: the logprobs are those of the logits divided by T.
enum class TemperatureUse : std::uint8_t { none, stated, fitted };
[[nodiscard]] std::string_view name_of(TemperatureUse use);

// One configuration under one use of temperature.
struct LocalLogprobs {
  double temperature = 1.0;
  std::vector<double> values;  // as VendorEvidence::values
};
struct LocalCandidate {
  std::string name;         // "int8"
  std::string description;  // "bf16 with int8 weights, one scale per output"
  std::string problem;      // why it could not run; the rest is empty then
  LocalLogprobs plain, fitted;
  std::optional<LocalLogprobs> stated = {};
  std::int64_t greedy_matches = 0;   // tokens that are this configuration's first choice
  double mean_log_likelihood = 0.0;  // of the vendor's tokens, per token, at temperature 1
  double largest_gap = 0.0;          // its highest logit minus that of the vendor's token
};

// Takes a configuration's rows one after the other and keeps them until `finish`, for the fit of
// the temperature: tokens × vocabulary floats.
class CandidateBuilder {
 public:
  CandidateBuilder(const VendorEvidence& evidence, std::string name, std::string description);
  // The logits from which the vendor's next token came.
  void add_row(std::span<const float> logits);
  [[nodiscard]] std::size_t rows() const { return m_row_count; }
  [[nodiscard]] LocalCandidate finish();

 private:
  [[nodiscard]] std::span<const float> row(std::size_t step) const;
  [[nodiscard]] double log_sum(std::size_t step, double scale) const;
  [[nodiscard]] LocalLogprobs at_temperature(double temperature) const;
  [[nodiscard]] std::size_t stride() const;  // every so many-th token takes part in the fit
  [[nodiscard]] double squares(double temperature) const;  // sum of squared differences
  [[nodiscard]] LocalLogprobs fit_temperature() const;
  const VendorEvidence& m_evidence;
  LocalCandidate m_out;
  double m_printing = 0.0;    // largest sum of squares that printing alone can make
  std::vector<float> m_rows;  // [rows, vocabulary]
  std::size_t m_row_count = 0;
  std::size_t m_vocabulary = 0;
};

enum class LocalVerdict : std::uint8_t { exact, nearest, unobservable };
[[nodiscard]] std::string_view name_of(LocalVerdict verdict);

enum class LocalStanding : std::uint8_t { leading, told_apart, not_run };
[[nodiscard]] std::string_view name_of(LocalStanding standing);

struct LocalRank {
  std::size_t candidate = 0;
  LocalStanding standing = LocalStanding::not_run;
  double temperature = 1.0;
  double mean_abs = 0.0, max_abs = 0.0;
  std::int64_t within = 0;  // values that fit within printing
  // Against the best: the mean distance of the two configurations, tokens nearer to either, and
  // the corrected p-value of the sign test.
  double distance = 0.0;
  bool within_print = false;  // of each other: no value lies farther apart than printing is wide
  std::int64_t nearer_best = 0, nearer_this = 0;
  double corrected_p = 1.0;
};

struct LocalRanking {
  LocalVerdict verdict = LocalVerdict::unobservable;
  std::string sentence;
  TemperatureUse temperature_use = TemperatureUse::none;
  std::size_t tokens = 0, values = 0;
  double print_tolerance = 0.0;  // the largest
  std::vector<LocalRank> ranks;  // best first, those that could not run last
  bool none_near = false;        // unobservable, as not even the best is near the vendor
};

[[nodiscard]] LocalRanking rank_candidates(const VendorEvidence& evidence,
                                           std::span<const LocalCandidate> candidates);

// Tokens of n that would be nearer to one of two alike sides at least as often as `k`.
[[nodiscard]] double sign_test(std::int64_t k, std::int64_t n);

[[nodiscard]] nlohmann::ordered_json ranking_json(const LocalRanking& ranking,
                                                  std::span<const LocalCandidate> candidates);
[[nodiscard]] std::string ranking_text(const LocalRanking& ranking,
                                       std::span<const LocalCandidate> candidates);

}  // namespace driftscope
