// SPDX-License-Identifier: GPL-3.0-or-later
// Answers as servers save them, written by hand for tests of the window.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ui/models/response_snapshot.h"

namespace driftscope::ui {

struct ChatToken {
  std::string text;
  double logprob = 0.0;
  std::vector<std::pair<std::string, double>> others = {};  // alternatives besides the token
};
// An OpenAI chat completion of these tokens; without `logprobs` the text alone.
[[nodiscard]] std::string chat_json(const std::vector<ChatToken>& tokens,
                                    const std::string& fingerprint = "fp_1", bool logprobs = true);
[[nodiscard]] std::vector<ChatToken> words(const std::vector<std::string>& texts);
// A line of a batch's output: the question and its answer.
[[nodiscard]] std::string batch_line(const std::string& id, const std::string& text);
// Parsed, graded and indexed, as if read from files "a.json", "b.json", …
[[nodiscard]] ResponseFilesPointer parsed(const std::vector<std::string>& bodies);
[[nodiscard]] ResponsePairPointer parsed_pair(const std::string& a, const std::string& b);

}  // namespace driftscope::ui
