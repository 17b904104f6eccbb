// SPDX-License-Identifier: Apache-2.0
#include "app/cli/vendor_policy.h"

#include <fmt/format.h>

namespace driftscope::cli {
namespace {

constexpr int kBeyondTier = 1;
constexpr int kInconclusive = 3;

}  // namespace

PolicyOutcome judge_policy(const ReachedTier& reached, std::optional<Tier> fail_on) {
  if (!fail_on)
    return {.exit_code = reached.tier == Tier::inconclusive ? kInconclusive : 0, .sentence = {}};
  // Answers hold no bits: equal as far as printed contradicts no equality of them.
  const Tier contradicted = reached.known == Tier::tolerance ? Tier::bitwise : reached.known;
  if (contradicted > *fail_on) {
    return {.exit_code = kBeyondTier,
            .sentence = fmt::format("--fail-on {}: not reached; the weakest is {}",
                                    name_of(*fail_on), name_of(reached.known))};
  }
  if (reached.tier <= *fail_on) return {};
  return {.exit_code = kInconclusive,
          .sentence = fmt::format("--fail-on {}: cannot be told; {}", name_of(*fail_on),
                                  reached.tier == Tier::inconclusive
                                      ? "an answer is missing or holds too little to compare"
                                      : fmt::format("what the answers hold shows {} and no more",
                                                    name_of(reached.tier)))};
}

}  // namespace driftscope::cli
