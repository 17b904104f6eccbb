// SPDX-License-Identifier: Apache-2.0
// What the two files of findings share. Internal to analysis/compare.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/compare/conclusion.h"

namespace driftscope {

// A finite number as such, others as "nan", "inf", "-inf".
[[nodiscard]] nlohmann::ordered_json json_number(double value);
[[nodiscard]] Finding make_finding(std::string id, Severity severity, std::string text,
                                   const nlohmann::ordered_json& evidence);

void find_prompt_findings(const RunContext& context, std::vector<Finding>& findings);
void find_imported(const RunContext& context, std::vector<Finding>& findings);
void find_plan_difference(const RunContext& context, std::vector<Finding>& findings);
void find_rank_difference(const RunContext& context, std::vector<Finding>& findings);
void find_identity(const RunContext& context, std::vector<Finding>& findings);
void find_divergence(const RunContext& context, std::vector<Finding>& findings);
void find_flip(const RunContext& context, std::vector<Finding>& findings);
void find_flip_count(const RunContext& context, std::vector<Finding>& findings);
void find_drift_without_flip(const RunContext& context, std::vector<Finding>& findings);
void find_largest_drift(const RunContext& context, std::vector<Finding>& findings);
void find_first_tap_drift(const RunContext& context, std::vector<Finding>& findings);
void find_route_flips(const RunContext& context, std::vector<Finding>& findings);
void find_free_route_flips(const RunContext& context, std::vector<Finding>& findings);
void find_flip_after_route(const RunContext& context, std::vector<Finding>& findings);
void find_drift_without_cause(const RunContext& context, std::vector<Finding>& findings);
void find_noise_excess(const RunContext& context, std::vector<Finding>& findings);
void find_drift_split(const RunContext& context, std::vector<Finding>& findings);
void find_tap_jump(const RunContext& context, std::vector<Finding>& findings);

}  // namespace driftscope
