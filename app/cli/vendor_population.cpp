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
  const PopulationVerdict verdict = judge_populations(sides, comparison);
  PopulationReport report;
  report.json = population_json(comparison);
  report.json.update(caveats_json(sides, verdict.caveats));
  report.json["symbols"] = sides.by_token_ids ? "token ids" : "characters";
  report.json["seed"] = seed;
  report.json["verdict"] = verdict.name;
  report.tier = verdict.tier;
  for (const std::string& sentence : verdict.caveats.sentences) report.text += sentence + "\n";
  if (!comparison.prompts.empty()) report.text += population_text(comparison);
  if (!verdict.reason.empty()) {
    report.text += std::string(verdict.name) + ": " + std::string(verdict.reason) + "\n";
  }
  return report;
}

}  // namespace driftscope::cli
