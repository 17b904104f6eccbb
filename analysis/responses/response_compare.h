// SPDX-License-Identifier: Apache-2.0
// Two answers side by side: where they part, how far their numbers are apart until there, and what
// the evidence can say about why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/compare/comparison.h"
#include "analysis/import/response.h"
#include "analysis/responses/similarity.h"

namespace driftscope {

// By what the tokens of two answers were matched.
enum class ResponseAlignment : std::uint8_t {
  none,  // nothing to match
  token_ids,
  token_bytes,
  byte_offsets,  // other tokenizers: the texts' bytes, tokens where both begin at the same byte
  positions,     // the tokens' bytes were lost: by number only
  text,          // no tokens on one side at least
};
[[nodiscard]] std::string_view name_of(ResponseAlignment alignment);

// What the evidence supports as a reason for a divergence.
enum class ResponseCause : std::uint8_t {
  unknown,    // no logprobs at this step: cannot be told from this evidence
  input,      // the prompts differ
  version,    // another model, fingerprint or provider answered
  sampler,    // a side's token was not its most likely one
  exact_tie,  // the two tokens have the same value
  near_tie,   // the gap is within rounding or within the drift seen before
  beyond_rounding,
  stopped,  // one side had ended: a limit on the length, a stop string
};
[[nodiscard]] std::string_view name_of(ResponseCause cause);

// Differences of logprobs, B minus A, of tokens that both chose after the same tokens.
struct LogprobDrift {
  std::int64_t count = 0;
  std::optional<std::int64_t> first_step = {};  // that differs by more than printing can explain
  double max_abs = 0.0;
  std::int64_t argmax_step = -1;
  double mean_abs = 0.0;
  double mean = 0.0;
  std::int64_t positive = 0, negative = 0;
  double print_tolerance = 0.0;                      // largest that was allowed for
  std::vector<std::optional<double>> per_step = {};  // [steps in common]; empty: not known
};

struct ResponseDivergence {
  std::int64_t step = -1;      // of A's tokens; -1 where there are none
  std::int64_t step_b = -1;    // of B's; another one where bytes were lost before
  std::int64_t byte = 0;       // of the text
  std::string text_a, text_b;  // of the token, or of the text that follows; empty: ended
  std::optional<std::int64_t> id_a = {}, id_b = {};
  // Each side's own value of its token minus that of the other side's token; empty: not listed.
  std::optional<double> margin_a = {}, margin_b = {};
  ResponseCause cause = ResponseCause::unknown;
  std::string reason;
  std::optional<std::int64_t> joined_again_byte = {};  // of A, where the texts run together again
};

struct ResponseComparison {
  std::string source_a, source_b;
  std::int64_t choice_a = 0, choice_b = 0;
  ResponseAlignment alignment = ResponseAlignment::none;
  std::int64_t tokens_a = 0, tokens_b = 0;
  std::int64_t equal_tokens = 0;  // at the front
  std::int64_t equal_bytes = 0;   // of the texts' fronts
  bool texts_equal = false;
  bool tools_equal = true;
  std::optional<ResponseDivergence> divergence = {};
  LogprobDrift drift;
  LogprobDrift prompt_drift;
  std::vector<FieldDifference> versions = {};  // model, fingerprint, provider, … that differ
  // Of two texts that differ; empty where they are equal or one is missing.
  std::optional<Similarity> similarity = {};
  Tier tier = Tier::inconclusive;
  // The strongest tier that nothing contradicts: better than `tier` where evidence is absent.
  Tier at_best = Tier::inconclusive;
  std::string verdict;  // one sentence
  std::vector<Finding> findings = {};
};

// Both responses are graded (grade_response). The choices are given by their place in the list.
[[nodiscard]] ResponseComparison compare_responses(const Response& a, std::size_t choice_a,
                                                   const Response& b, std::size_t choice_b);

// What is odd about each side by itself (lint_response), with "A: " and "B: " before it, the
// gravest first.
[[nodiscard]] std::vector<Finding> findings_of_sides(const Response& a, const Response& b);

// A bf16 logit between 16 and 32 moves in steps of 1/8: two of them may part by that much each by
// rounding alone.
inline constexpr double kBf16LogitStep = 0.125;

}  // namespace driftscope
