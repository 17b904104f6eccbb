// SPDX-License-Identifier: Apache-2.0
// Differences between two answers' listed values that fall on multiples of a power of two: both
// sides' logits were rounded to a coarse type.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "analysis/compare/comparison.h"
#include "analysis/import/response.h"

namespace driftscope {

// `pairs`: steps of A and B after the same tokens. Empty: no grid, or too few values to tell.
[[nodiscard]] std::optional<Finding> find_pair_grid(
    const std::vector<std::pair<const ResponseStep*, const ResponseStep*>>& pairs);

}  // namespace driftscope
