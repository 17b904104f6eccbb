// SPDX-License-Identifier: Apache-2.0
// Many answers in a few lines: which are the same, where the others part from them, which are none,
// and what is odd about how many.
#pragma once

#include <string>
#include <vector>

#include "analysis/responses/response_set.h"

namespace driftscope {

// Notices and graver ones, one for each kind: "3 of 8 answers: …" in the words of the first of
// them.
[[nodiscard]] std::vector<Finding> common_findings(const std::vector<const Response*>& responses);
// A line for each cluster: how often, its text from where it parts from the largest one, and who
// gave it first. Lines ended by '\n'.
[[nodiscard]] std::string clusters_text(const std::vector<Answer>& answers,
                                        const std::vector<AnswerCluster>& clusters);
// A line for each response that holds an error or nothing; empty for none.
[[nodiscard]] std::string errors_text(const std::vector<Response>& responses);

}  // namespace driftscope
