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
  std::string prompt = {};      // that was asked, where the file tells
  bool request_known = false;   // a setting that is not there was not given
  std::optional<double> temperature = {}, top_p = {};
  std::optional<std::string> seed = {};
  std::optional<std::int64_t> most_tokens = {};
};
[[nodiscard]] SampleRecord sample_record(const Response& response);

struct LeftOutPrompt {
  std::string prompt;
  std::int64_t samples = 0;
};

// A setting with which the sides of so many prompts were asked differently.
struct SettingDifference {
  std::string name;  // "temperature"
  std::string a, b;  // values as text, "0.2, 1", or "none given"
  std::int64_t prompts = 0;
};

struct AnswerCount {
  std::int64_t answers = 0;  // those that are errors too
  std::int64_t errors = 0;   // or lines that could not be read
};

// Grouped by custom_id where every response with an answer has one, and by the prompt where both
// sides tell prompts; else all are samples of one prompt. Sequences are token ids if both sides
// know them of every answer, else the code points of the texts.
struct SampleSides {
  std::vector<SampleGroup> a, b;
  bool by_token_ids = false;
  bool by_custom_id = false;
  bool by_prompt = false;
  bool one_tells_prompts = false;  // the other side does not: nobody knows if they are the same
  std::vector<LeftOutPrompt> only_a, only_b;  // without a partner on the other side
  std::vector<SettingDifference> settings;
  AnswerCount count_a, count_b;
};
[[nodiscard]] SampleSides sample_sides(std::vector<SampleRecord> a, std::vector<SampleRecord> b);
[[nodiscard]] SampleSides sample_sides(const std::vector<Response>& a,
                                       const std::vector<Response>& b);

}  // namespace driftscope
