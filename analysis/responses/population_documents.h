// SPDX-License-Identifier: Apache-2.0
// The comparison of two populations as text and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analysis/responses/populations.h"

namespace driftscope {

[[nodiscard]] nlohmann::ordered_json population_json(const PopulationComparison& comparison);
[[nodiscard]] std::string population_text(const PopulationComparison& comparison);

}  // namespace driftscope
