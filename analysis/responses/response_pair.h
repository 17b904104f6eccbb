// SPDX-License-Identifier: Apache-2.0
// Internal to analysis/responses: the two sides of compare_responses(), and what is found of them.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/responses/response_compare.h"
#include "analysis/responses/token_edges.h"

namespace driftscope {

// Lives during compare_responses() only.
class ResponsePair {
 public:
  ResponsePair(const Response& a, std::size_t choice_a, const Response& b, std::size_t choice_b);
  ResponseComparison run();

 private:
  // The steps of a channel that count, where they are.
  class Steps {
   public:
    explicit Steps(std::vector<const ResponseStep*> steps) : m_steps(std::move(steps)) {}
    [[nodiscard]] std::size_t size() const { return m_steps.size(); }
    [[nodiscard]] bool empty() const { return m_steps.empty(); }
    [[nodiscard]] const ResponseStep& operator[](std::size_t i) const { return *m_steps[i]; }
    template <class Predicate>
    [[nodiscard]] bool any(const Predicate& predicate) const {
      return std::any_of(m_steps.begin(), m_steps.end(),
                         [&](const ResponseStep* step) { return predicate(*step); });
    }

   private:
    std::vector<const ResponseStep*> m_steps;
  };
  // A step of each side.
  struct Place {
    std::size_t a = 0, b = 0;
  };
  [[nodiscard]] bool texts_known() const;
  void align();
  // One id that stands for two texts: the ids are of two vocabularies.
  [[nodiscard]] bool same_vocabulary() const;
  // Where the texts still agree, tokens begin at other bytes.
  [[nodiscard]] bool other_boundaries() const;
  void count_equal();
  [[nodiscard]] bool equal_at(std::size_t i, std::size_t j) const;
  // Tokens that begin at the same byte and are equal, as long as the texts are.
  void pair_by_offset();
  // Tokens of a side between two places of its text that are known.
  struct Stretch {
    const std::vector<TokenEdge>* edges = nullptr;
    std::size_t begin = 0, end = 0;
  };
  // Where bytes are lost: by places of the texts that are known on both sides, up to where the
  // texts part. Between two of them pieces of characters stand for as many pieces of the other
  // side; where one side has fewer (a token that holds the whole character), neither's are paired.
  void pair_by_position();
  // Ends both stretches at the next place that is known on both sides; false: there is none.
  static bool next_meeting(Stretch& a, Stretch& b);
  // Of two stretches of the same text; false: their tokens are others, and no pieces.
  bool pair_stretch(const Stretch& a, const Stretch& b);
  [[nodiscard]] bool numbers_comparable() const;
  // Why not, where they are not: what the fields of either side hold.
  [[nodiscard]] std::string kinds_of_numbers() const;
  static void add_difference(LogprobDrift& drift, std::int64_t step, const Logprob& a,
                             const Logprob& b);
  static void finish(LogprobDrift& drift);
  void measure_drift();
  void compare_prompts();
  // Empty: the prompts are the same, or not known on both sides.
  [[nodiscard]] std::string prompt_difference() const;
  void compare_tools();
  void find_divergence();
  // The first token of each side that differs, or else the texts from where they part.
  void describe_divergence(ResponseDivergence& divergence, const std::optional<Place>& at) const;
  static void describe_side(const Steps& steps, std::size_t at, std::string& text,
                            std::optional<std::int64_t>& id);
  // The texts' ends agree: they run together again after what differs.
  void find_joining(ResponseDivergence& divergence) const;
  [[nodiscard]] static std::optional<double> margin(const Steps& steps, std::size_t at,
                                                    const TokenText& other_token);
  // At least what margin() would be of a token that is not among those listed: the list holds the
  // largest values. Empty where it cannot be told that it is not.
  [[nodiscard]] static std::optional<double> least_margin(const Steps& steps, std::size_t at,
                                                          const TokenText& other_token);
  [[nodiscard]] static bool sampled(const ResponseStep& step);
  // True where a side's token was not its most likely one; the cause is set.
  bool explain_by_rank(const Place& at);
  void set_cause(ResponseCause cause, std::string reason);
  void explain_divergence();
  [[nodiscard]] bool margins_mean_something(const Place& at) const;
  void explain_by_margin(ResponseDivergence& divergence, const Place& at);
  // "the answers' drift before was …"
  [[nodiscard]] std::string drift_before(const Place& at) const;
  void explain_tie(const Place& at);
  void explain_without_margins(const std::string& versions, double least_gap);
  void decide();
  void decide_by_prompt();
  void decide_divergence();
  void decide_equal();
  void decide_equal_without_tokens();
  void decide_equal_tokens();
  [[nodiscard]] bool aligned_by_tokens() const;
  // What else differs beside equal content: no more than `token`, and the verdict says so.
  void weaken();
  void weaken_by(std::string id, Severity severity, const std::string& what, bool contradicts);
  // What is listed beside equal tokens, as far as it differs beyond printing.
  struct AlternativesDrift {
    std::size_t steps = 0;  // where it does
    double largest = 0.0;
    bool at_least = false;  // of a token that only one side lists
    std::size_t step = 0;   // A's, of the largest
    bool unread = false;    // lists that are not read and are not the same text
  };
  [[nodiscard]] AlternativesDrift alternatives_drift() const;
  void compare_alternatives();
  void compare_reasoning();
  // The largest difference of logprobs of the same reasoning tokens; empty: none beyond printing.
  [[nodiscard]] std::optional<std::pair<double, std::size_t>> reasoning_drift() const;
  void compare_finish_reasons();
  // What each side lists behind its text: other marks are other tokens.
  void compare_end_marks();
  void conclude(Tier tier, std::string verdict);
  void collect_findings();
  void add_prompt_finding();
  // Prompt and answer in one list: whether what drifts is the prompt.
  void add_echo_finding();
  // The last of the equal tokens that is too unlikely to be generated on either side, and so stands
  // in the prompt with all before it; -1: none.
  [[nodiscard]] std::pair<std::int64_t, double> last_given_token() const;
  // Rounding has both signs. All differences of one sign, larger where the token is less certain:
  // one side's values went through a temperature.
  void add_bias_finding();
  // Confident tokens: -log p is about exp(-gap / T), so the ratio of their logarithms is 1 / T.
  [[nodiscard]] std::pair<double, std::int64_t> implied_temperature() const;
  void add_scale_finding();
  // A near-tie after values that are all equal: what moved it began at that very token.
  void add_sudden_finding();
  // Something before the answers part differs: the prompt's values, the reasoning, alternatives.
  [[nodiscard]] bool drifts_elsewhere() const;

  const Response& m_a;
  const Response& m_b;
  const ResponseChoice& m_choice_a;
  const ResponseChoice& m_choice_b;
  const ResponseChannel& m_channel_a;
  const ResponseChannel& m_channel_b;
  Steps m_steps_a, m_steps_b;
  std::string m_text_a, m_text_b;
  std::vector<std::pair<std::size_t, std::size_t>> m_pairs;  // equal tokens, A's and B's step
  std::optional<Place> m_parted;  // by position: the first tokens that differ, where known
  ResponseComparison m_out;
};

// A drift of this size is no rounding of a working server: half a nat is a factor of 1.6.
inline constexpr double kBugScale = 0.5;

// Bytes that two texts have in common at their fronts.
[[nodiscard]] std::int64_t common_prefix(std::string_view a, std::string_view b);

}  // namespace driftscope
