// SPDX-License-Identifier: Apache-2.0
// What the files of lint_response() share. Internal to analysis/responses.
#pragma once

#include <vector>

#include "analysis/compare/findings.h"
#include "analysis/import/response.h"

namespace driftscope {

// The channel that answers: a refusal where there is nothing else.
[[nodiscard]] const ResponseChannel& main_channel(const ResponseChoice& choice);

template <class Visit>
void each_step(const Response& response, const Visit& visit) {
  for (const ResponseChoice& choice : response.choices) {
    for (const ResponseStep& step : main_channel(choice).steps) visit(step);
  }
}

void find_states(const Response& response, std::vector<Finding>& findings);
void find_collisions(const Response& response, std::vector<Finding>& findings);
void find_short_lists(const Response& response, std::vector<Finding>& findings);
void find_crumbs(const Response& response, std::vector<Finding>& findings);
void find_mass(const Response& response, std::vector<Finding>& findings);
void find_ties(const Response& response, std::vector<Finding>& findings);
void find_repeated_lists(const Response& response, std::vector<Finding>& findings);
void find_grid(const Response& response, std::vector<Finding>& findings);
void find_bos(const Response& response, std::vector<Finding>& findings);
void find_prompt_date(const Response& response, std::vector<Finding>& findings);
void find_unlikely_prompt(const Response& response, std::vector<Finding>& findings);
void find_ignored_request(const Response& response, std::vector<Finding>& findings);
// The place of the chosen token among its alternatives; empty where it is not listed.
[[nodiscard]] std::optional<std::size_t> chosen_entry(const ResponseStep& step);

}  // namespace driftscope
