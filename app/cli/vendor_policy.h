// SPDX-License-Identifier: Apache-2.0
// driftscope vendor --fail-on: what is asked of a comparison, and what it comes to.
#pragma once

#include <optional>
#include <string>

#include "analysis/compare/comparison.h"

namespace driftscope::cli {

struct ReachedTier {
  // What all pairs reach; inconclusive where one is, or an answer has no partner.
  Tier tier = Tier::inconclusive;
  // The strongest tier that no conclusive pair contradicts: what is missing elsewhere does not
  // undo it.
  Tier known = Tier::bitwise;
};

// Of one judgement on the whole.
[[nodiscard]] constexpr ReachedTier reached_by(Tier tier) {
  return {.tier = tier, .known = tier == Tier::inconclusive ? Tier::bitwise : tier};
}

struct PolicyOutcome {
  int exit_code = 0;
  std::string sentence;  // why the code is not 0 though a tier was asked for; may be empty
};

// 1: a pair is known not to reach `fail_on`. 3: whether all do cannot be told from the answers (the
// bits of logits are in none). Without `fail_on` 3 stands for inconclusive.
[[nodiscard]] PolicyOutcome judge_policy(const ReachedTier& reached, std::optional<Tier> fail_on);

}  // namespace driftscope::cli
