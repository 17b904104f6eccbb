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
// For each cluster how often it was given and by whom, and below its text; of others than the
// largest where they part from it, why, and what they say otherwise of their version. The largest
// is shown where the first of the others parts from it. Lines ended by '\n'.
[[nodiscard]] std::string clusters_text(const std::vector<Answer>& answers,
                                        const std::vector<AnswerCluster>& clusters);
// A line for each response that holds an error or nothing; empty for none.
[[nodiscard]] std::string errors_text(const std::vector<Response>& responses);

}  // namespace driftscope
