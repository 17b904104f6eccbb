// SPDX-License-Identifier: Apache-2.0
// Files of answers that were ranked each on its own: may one configuration have given them all?
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/responses/local_ranking.h"

namespace driftscope {

struct LocalSide {
  std::string name;  // "A (a.json)"; for people
  LocalRanking ranking;
  std::vector<LocalCandidate> candidates;  // of all sides the same configurations, in one order
};

enum class SidesAgreement : std::uint8_t {
  same,    // every side is told, and at least one configuration leads all of them
  differ,  // no configuration leads all the sides that are told, of which there are two or more
  open,    // a side is unobservable, and the others do not differ
};
[[nodiscard]] std::string_view name_of(SidesAgreement agreement);

struct SidesComparison {
  SidesAgreement agreement = SidesAgreement::open;
  std::string sentence;
  std::vector<std::string> common;  // configurations that lead every side that is told
};

[[nodiscard]] SidesComparison compare_local_sides(std::span<const LocalSide> sides);

[[nodiscard]] nlohmann::ordered_json sides_json(const SidesComparison& comparison);

}  // namespace driftscope
