// SPDX-License-Identifier: Apache-2.0
// Which token follows from a row of logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/trace/trace.h"
#include "kernels/base/types.h"

namespace driftscope {

// The highest logit; ties go to the lower id; NaN is never chosen (a row of NaN alone gives id 0).
[[nodiscard]] TokenId greedy_choice(std::span<const float> logits);

// In this order, all in f64 with portable functions:
//  1. penalties. repetition: logits of tokens in prompt or output are divided by it where positive
//     and multiplied where negative (Keskar et al. 2019). Then presence and frequency: of tokens in
//     the output, subtracted once, and once per occurrence.
//  2. temperature 0: the highest penalised logit, ties to the lower id. Otherwise divide by it.
//  3. top_k: the k highest; ties at the edge go to the lower ids.
//  4. top_p: the fewest of the highest whose probability, among what is left, reaches top_p.
//  5. min_p: those with at least min_p times the highest probability.
//  6. draw, as a function of seed, number of the draw and what is left, never of draws before it:
//      inverse_cdf  tokens in rising id and sums in that order; the first token whose cumulative
//                   weight is above philox_uniform(seed, draw) times the total.
//      gumbel_max   the highest logit / temperature - log(-log(u)) with u =
//                   philox_token_uniform(seed, draw, id), ties to the lower id: the same
//                   distribution (Gumbel 1954), without a sum whose order could matter.
// This is the order of Hugging Face's generate(). Where others differ:
//  - vLLM (V1) applies the penalties in the order repetition, frequency, presence (the same values
//    but for rounding) and min_p before top_k and top_p, so that there top_p counts among what
//    min_p has left. Its draw is a race of exponentials, which is gumbel_max with other numbers.
//  - vLLM and Hugging Face keep every token that ties with the k-th of top_k; here exactly k stay.
//  - llama.cpp applies the temperature last, so that top_p and min_p see the logits undivided.
//  - All of them compute in f32.
class Sampler {
 public:
  explicit Sampler(const SamplingConfig& config) : m_config(config) {}
  // logits: [vocabulary]. `draw` is its number in the stream of the seed, from 0.
  [[nodiscard]] TokenId choose(std::span<const float> logits, std::span<const TokenId> prompt,
                               std::span<const TokenId> output, std::uint64_t draw);
  // The random numbers behind the last choice; null if it needed none. Valid until the next.
  [[nodiscard]] const Draw* draw() const { return m_drawn ? &m_draw : nullptr; }

 private:
  struct Candidate {
    double score = 0.0;  // logit / temperature, later less the highest
    double value = 0.0;  // the same, later exp(score)
    std::int32_t id = 0;
  };
  [[nodiscard]] bool has_penalties() const;
  void penalise(std::span<const TokenId> prompt, std::span<const TokenId> output);
  void collect_candidates();
  void keep_top_k();
  void keep_top_p();
  void keep_min_p();
  [[nodiscard]] TokenId invert(std::uint64_t draw);
  [[nodiscard]] TokenId race(std::uint64_t draw);

  SamplingConfig m_config;
  std::vector<double> m_logits;
  std::vector<std::int32_t> m_counts;  // [vocabulary]: occurrences in the output
  std::vector<std::uint8_t> m_seen;    // [vocabulary]: in prompt or output
  std::vector<Candidate> m_candidates;
  Draw m_draw;
  bool m_drawn = false;
};

}  // namespace driftscope
