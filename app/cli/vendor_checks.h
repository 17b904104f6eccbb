// SPDX-License-Identifier: Apache-2.0
// driftscope vendor --expect: answers held against a file of checks.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/import/response.h"
#include "analysis/responses/assertions.h"
#include "kernels/base/result.h"

namespace driftscope::cli {

[[nodiscard]] Result<std::vector<Assertion>> load_checks(const std::string& path);

struct CheckedSides {
  nlohmann::ordered_json json;
  std::string text;
  int exit_code = 0;  // 1: a check failed; 3: one applies to no answer
};
[[nodiscard]] CheckedSides check_sides(const std::vector<Assertion>& checks,
                                       const std::vector<std::vector<Response>>& sides);

// The kinds of checks, a line each.
[[nodiscard]] std::string check_kinds_text();

}  // namespace driftscope::cli
