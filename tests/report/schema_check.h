// SPDX-License-Identifier: Apache-2.0
// The part of JSON Schema (2020-12) that our schemas use. A keyword that it does not know fails the
// check.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace driftscope::testing {

// Empty if `value` is valid, else the first place that is not, and why.
[[nodiscard]] std::string schema_problem(const nlohmann::json& schema, const nlohmann::json& value);
[[nodiscard]] nlohmann::json load_schema(const std::string& name);

}  // namespace driftscope::testing
