// SPDX-License-Identifier: Apache-2.0
// Which token follows from a row of logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/config/run_config.h"
#include "kernels/base/types.h"

namespace driftscope {

// The highest logit; ties go to the lower id; NaN is never chosen (a row of NaN alone gives id 0).
[[nodiscard]] TokenId greedy_choice(std::span<const float> logits);

// In this order, all in f64 with portable functions:
//  1. penalties. repetition: logits of tokens in prompt or output are divided by it where positive
//  and
//     multiplied where negative (Keskar et al. 2019). presence and frequency: of tokens in the
//     output, subtracted once, and once per occurrence.
//  2. temperature 0: the highest penalised logit, ties to the lower id. Otherwise divide by it.
//  3. top_k: the k highest; ties at the edge go to the lower ids.
//  4. top_p: the fewest of the highest whose probability, among what is left, reaches top_p.
//  5. min_p: those with at least min_p times the highest probability.
//  6. draw: inverse of the cumulative distribution with tokens in rising id and sums in that order;
//     the uniform number is philox_uniform(seed, step), so a draw depends on (seed, step) and
//     the distribution, never on other requests or on draws before it.
class Sampler {
 public:
  explicit Sampler(const SamplingConfig& config) : m_config(config) {}
  // logits: [vocabulary]. `step` counts this request's draws from 0.
  [[nodiscard]] TokenId choose(std::span<const float> logits, std::span<const TokenId> prompt,
                               std::span<const TokenId> output, std::uint64_t step);

 private:
  struct Candidate {
    double value = 0.0;  // logit, later exp(logit - highest)
    std::int32_t id = 0;
  };
  [[nodiscard]] bool has_penalties() const;
  void penalise(std::span<const TokenId> prompt, std::span<const TokenId> output);
  void collect_candidates();
  void keep_top_k();
  void keep_top_p();
  void keep_min_p();
  [[nodiscard]] TokenId draw(std::uint64_t step);

  SamplingConfig m_config;
  std::vector<double> m_logits;
  std::vector<std::int32_t> m_counts;  // [vocabulary]: occurrences in the output
  std::vector<std::uint8_t> m_seen;    // [vocabulary]: in prompt or output
  std::vector<Candidate> m_candidates;
};

}  // namespace driftscope
