// SPDX-License-Identifier: Apache-2.0
// What answers that are held at once come to: described, in pairs, or all against all.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/import/response.h"
#include "app/cli/vendor_policy.h"

namespace driftscope::cli {

struct VendorOutcome {
  nlohmann::ordered_json json;
  std::string text;
  ReachedTier reached = {.tier = Tier::bitwise, .known = Tier::bitwise};
  bool compared = true;  // false: nothing was held against anything
};

// Which pairs the text shows.
enum class PairsShown : std::uint8_t {
  all,
  differing,  // those that differ, and of such as say the same the first with the others' keys
};
// Side A against side B, by custom_id or by order.
[[nodiscard]] VendorOutcome compare_sides(const std::vector<Response>& a,
                                          const std::vector<Response>& b,
                                          PairsShown shown = PairsShown::all);
// Clusters, and every answer against every other that answers the same question.
[[nodiscard]] VendorOutcome compare_all(const std::vector<Response>& responses);
// `steps`: every token in the document.
[[nodiscard]] VendorOutcome describe_responses(const std::vector<Response>& responses, bool steps);

}  // namespace driftscope::cli
