// SPDX-License-Identifier: Apache-2.0
// Many answers: which are the same, and every pair of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/responses/response_compare.h"

namespace driftscope {

// One choice of one response. Valid as long as the responses are.
struct Answer {
  const Response* response = nullptr;
  std::size_t choice = 0;
  [[nodiscard]] std::string name() const;  // "a.json", "a.jsonl:3", "a.json choice 1"
};

// Every choice of every response; one that holds an error or nothing has none.
[[nodiscard]] std::vector<Answer> answers_of(const std::vector<Response>& responses);

// Both name their questions (custom_id), and not the same one: there is nothing to compare.
[[nodiscard]] bool answer_other_questions(const Response& a, const Response& b);

// Answers with the same text and the same tool calls.
struct AnswerCluster {
  std::vector<std::size_t> members;  // rising, indices of the answers
  std::string text;
};
// Largest first; equal sizes by first member.
[[nodiscard]] std::vector<AnswerCluster> cluster_answers(const std::vector<Answer>& answers);

// What a pair of sides came to, joined by custom_id where both have them, else by order.
struct AnswerPair {
  std::string key;  // custom_id, or the position
  ResponseComparison comparison;
};
struct PairedSides {
  std::vector<AnswerPair> pairs;
  std::vector<std::string> only_a, only_b;  // keys without a partner
};
// A response that could not be read and has no custom_id does not decide how the others are joined;
// where they are joined by custom_id, its key is its source.
[[nodiscard]] PairedSides pair_sides(const std::vector<Response>& a,
                                     const std::vector<Response>& b);
// The choices of two responses under a key, added to `out`; with choices of A and B under "key
// choice N".
void pair_choices(const std::string& key, const Response& a, const Response& b, PairedSides& out);

// The strongest tier that every pair reaches; inconclusive where one is.
[[nodiscard]] Tier weakest_tier(const std::vector<AnswerPair>& pairs);
// The strongest tier that no conclusive pair contradicts; bitwise where there is none.
[[nodiscard]] Tier known_tier(const std::vector<AnswerPair>& pairs);

}  // namespace driftscope
