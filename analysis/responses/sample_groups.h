// SPDX-License-Identifier: Apache-2.0
// Answers as the samples of prompts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/import/response.h"
#include "analysis/responses/populations.h"

namespace driftscope {

// What the comparison of populations needs of a response, without its tokens and alternatives.
struct SampleRecord {
  struct Answer {
    std::optional<SymbolSequence> token_ids = {};  // empty: not known of every token
    std::string text;
    std::optional<double> mean_logprob = {};
  };
  std::string custom_id;
  std::vector<Answer> answers;  // none: an error, or a line that could not be read
};
[[nodiscard]] SampleRecord sample_record(const Response& response);

// Grouped by custom_id where every response with an answer has one, else all are samples of one
// prompt. Sequences are token ids if both sides know them of every answer, else the code points of
// the texts.
struct SampleSides {
  std::vector<SampleGroup> a, b;
  bool by_token_ids = false;
  bool by_custom_id = false;
};
[[nodiscard]] SampleSides sample_sides(std::vector<SampleRecord> a, std::vector<SampleRecord> b);
[[nodiscard]] SampleSides sample_sides(const std::vector<Response>& a,
                                       const std::vector<Response>& b);

}  // namespace driftscope
