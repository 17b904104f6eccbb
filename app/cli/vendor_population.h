// SPDX-License-Identifier: Apache-2.0
// Two sides of many samples: the comparison with its verdict, as text and as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "analysis/compare/comparison.h"
#include "analysis/responses/sample_groups.h"
#include "kernels/base/parallel.h"

namespace driftscope::cli {

struct PopulationReport {
  nlohmann::ordered_json json;
  std::string text;
  Tier tier = Tier::inconclusive;
};
// `permutations` 0: usual_permutations().
[[nodiscard]] PopulationReport describe_populations(const SampleSides& sides,
                                                    std::int64_t permutations, std::uint64_t seed,
                                                    Parallel& parallel);

}  // namespace driftscope::cli
