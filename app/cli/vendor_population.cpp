// SPDX-License-Identifier: Apache-2.0
#include "app/cli/vendor_population.h"

#include "analysis/responses/population_caveats.h"
#include "analysis/responses/population_documents.h"

namespace driftscope::cli {

PopulationReport describe_populations(const SampleSides& sides, std::int64_t permutations,
                                      std::uint64_t seed, Parallel& parallel) {
  if (permutations == 0) permutations = usual_permutations(sides.a.size());
  const PopulationComparison comparison =
      compare_populations(sides.a, sides.b, permutations, seed, parallel);
  const PopulationCaveats caveats = caveats_of(sides, comparison);
  PopulationReport report;
  report.json = population_json(comparison);
  report.json.update(caveats_json(sides, caveats));
  report.json["symbols"] = sides.by_token_ids ? "token ids" : "characters";
  report.json["seed"] = seed;
  for (const std::string& sentence : caveats.sentences) report.text += sentence + "\n";
  if (!comparison.prompts.empty()) report.text += population_text(comparison);
  // Of several prompts, one at least must be able to pass Holm's first step.
  const auto prompts = static_cast<double>(comparison.prompts.size());
  bool too_few = false;
  bool any_possible = false;
  for (const PromptComparison& prompt : comparison.prompts) {
    too_few = too_few || prompt.test.permutations == 0 || prompt.test.smallest_p > 0.05;
    const double tests = prompt.logprobs_known ? 2.0 : 1.0;
    any_possible = any_possible || prompt.test.smallest_p * tests * prompts <= 0.05;
  }
  too_few = too_few || !any_possible;
  const bool inconclusive = too_few || caveats.inconclusive;
  // One sample proves nothing about a distribution; a change that was found is none of the tiers.
  report.tier = inconclusive             ? Tier::inconclusive
                : comparison.changed > 0 ? Tier::different
                                         : Tier::semantic;
  report.json["verdict"] = inconclusive             ? "inconclusive"
                           : comparison.changed > 0 ? "different"
                                                    : "no_difference_found";
  if (caveats.inconclusive) {
    report.text += "inconclusive: for what stands above the numbers\n";
  } else if (too_few) {
    report.text +=
        "inconclusive: too few samples of a prompt, or permutations, to find any change at 5%\n";
  }
  return report;
}

}  // namespace driftscope::cli
