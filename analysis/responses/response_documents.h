// SPDX-License-Identifier: Apache-2.0
// Answers and their comparisons as text for a terminal and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/responses/response_set.h"

namespace driftscope {

// `steps`: every token with its logprob and alternatives, else counts only.
[[nodiscard]] nlohmann::ordered_json response_json(const Response& response, bool steps);
[[nodiscard]] nlohmann::ordered_json comparison_json(const ResponseComparison& comparison);

// Lines ended by '\n'; text of models is escaped.
[[nodiscard]] std::string response_text(const Response& response);
[[nodiscard]] std::string comparison_text(const ResponseComparison& comparison);
[[nodiscard]] std::string findings_text(const std::vector<Finding>& findings);

}  // namespace driftscope
