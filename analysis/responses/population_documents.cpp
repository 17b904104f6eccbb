// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/population_documents.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/compare/findings.h"
#include "kernels/base/display_text.h"
#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

Json share_json(const Share& share) {
  return {{"hits", share.hits},
          {"count", share.count},
          {"share", json_number(share.value)},
          {"low", share.low},
          {"high", share.high}};
}

Json side_json(const SideSummary& side) {
  return {{"samples", side.samples},
          {"unique", side.unique},
          {"all_equal", side.all_equal},
          {"all_equal_normalised", side.all_equal_normalised},
          {"first_divergence",
           {{"median", json_number(side.first_divergence.median)},
            {"low", json_number(side.first_divergence.low)},
            {"high", json_number(side.first_divergence.high)}}}};
}

std::string share_text(const Share& share) {
  return fmt::format("{} of {} ({:.1f}%, {:.1f} to {:.1f}%)", share.hits, share.count,
                     100.0 * share.value, 100.0 * share.low, 100.0 * share.high);
}

std::string tested_text(const PromptComparison& prompt) {
  const TwoSampleTest& test = prompt.test;
  if (test.permutations == 0 ||
      (test.samples_a == prompt.a.samples && test.samples_b == prompt.b.samples)) {
    return "";
  }
  return fmt::format("; tested on {} and {} of them, evenly chosen", test.samples_a,
                     test.samples_b);
}

std::string needed_text(const TwoSampleTest& test) {
  if (test.smallest_p > 0.05) {
    return fmt::format("; so few samples cannot give a p below {:.2g}: nothing can be told",
                       test.smallest_p);
  }
  if (test.p_value <= 0.05 || !test.samples_needed) return "";
  return fmt::format("; about {} samples a side would show an effect of this size",
                     *test.samples_needed);
}

}  // namespace

Json population_json(const PopulationComparison& comparison) {
  Json prompts = Json::array();
  for (const PromptComparison& prompt : comparison.prompts) {
    prompts.push_back(
        {{"prompt", find_invalid_utf8(prompt.prompt) == std::string::npos
                        ? prompt.prompt
                        : escape_for_display(prompt.prompt)},
         {"a", side_json(prompt.a)},
         {"b", side_json(prompt.b)},
         {"mmd", prompt.test.statistic},
         {"p_value", prompt.test.p_value},
         {"p_value_combined", prompt.combined_p},
         {"p_value_corrected", prompt.corrected_p},
         {"permutations", prompt.test.permutations},
         {"tested_a", prompt.test.samples_a},
         {"tested_b", prompt.test.samples_b},
         {"smallest_p_value", prompt.test.smallest_p},
         {"samples_needed",
          prompt.test.samples_needed ? Json(*prompt.test.samples_needed) : Json()},
         {"logprobs", prompt.logprobs_known ? Json{{"ks", prompt.logprobs.statistic},
                                                   {"p_value", prompt.logprobs.p_value}}
                                            : Json()}});
  }
  return {
      {"prompts", prompts},
      {"changed", comparison.changed},
      {"tar_raw",
       {{"a", share_json(comparison.tar_raw_a)}, {"b", share_json(comparison.tar_raw_b)}}},
      {"tar_answer",
       {{"a", share_json(comparison.tar_answer_a)}, {"b", share_json(comparison.tar_answer_b)}}},
      {"unique", {{"a", share_json(comparison.unique_a)}, {"b", share_json(comparison.unique_b)}}}};
}

std::string population_text(const PopulationComparison& comparison) {
  std::string out = fmt::format(
      "{} of {} prompts changed (two-sample tests of answers and of mean logprobs, 5% after Holm's "
      "correction)\n"
      "  unique answers      A {}; B {}\n"
      "  all answers agree   A {}; B {}\n"
      "  … once normalised   A {}; B {}\n",
      comparison.changed, comparison.prompts.size(), share_text(comparison.unique_a),
      share_text(comparison.unique_b), share_text(comparison.tar_raw_a),
      share_text(comparison.tar_raw_b), share_text(comparison.tar_answer_a),
      share_text(comparison.tar_answer_b));
  for (const PromptComparison& prompt : comparison.prompts) {
    out += fmt::format(
        "  {}: {} and {} samples, {} and {} unique; MMD² {:.4g}, p {:.4g}{}; corrected {:.4g}{}\n",
        prompt.prompt.empty() ? "all" : escape_for_display(prompt.prompt), prompt.a.samples,
        prompt.b.samples, prompt.a.unique, prompt.b.unique, prompt.test.statistic,
        prompt.test.p_value,
        prompt.logprobs_known ? fmt::format("; mean logprobs: KS {:.3g}, p {:.3g}",
                                            prompt.logprobs.statistic, prompt.logprobs.p_value)
                              : "",
        prompt.corrected_p, tested_text(prompt) + needed_text(prompt.test));
  }
  return out;
}

}  // namespace driftscope
