// SPDX-License-Identifier: Apache-2.0
// What keeps the comparison of two populations from saying what it seems to say.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/compare/comparison.h"
#include "analysis/responses/populations.h"
#include "analysis/responses/sample_groups.h"

namespace driftscope {

struct PopulationCaveats {
  std::vector<std::string> sentences;  // to be read before any number
  // Sides that were asked otherwise, more than 5% errors of a side, no prompt that both sides have,
  // or prompts left out while nothing changed.
  bool inconclusive = false;
};
[[nodiscard]] PopulationCaveats caveats_of(const SampleSides& sides,
                                           const PopulationComparison& comparison);

struct PopulationVerdict {
  // One sample proves nothing about a distribution; a change that was found is none of the tiers.
  Tier tier = Tier::inconclusive;
  std::string_view name;    // "inconclusive", "different", "no_difference_found"
  std::string_view reason;  // why it is inconclusive; empty else
  PopulationCaveats caveats;
};
[[nodiscard]] PopulationVerdict judge_populations(const SampleSides& sides,
                                                  const PopulationComparison& comparison);

// "left_out", "errors", "settings" and "caveats" of the document.
[[nodiscard]] nlohmann::ordered_json caveats_json(const SampleSides& sides,
                                                  const PopulationCaveats& caveats);

}  // namespace driftscope
