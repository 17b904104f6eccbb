// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/population_caveats.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/base/display_text.h"
#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

// So many errors may be all of the answers that would have been different.
constexpr double kMostErrors = 0.05;

std::string prompts_text(std::int64_t count) {
  return fmt::format("{} prompt{}", count, count == 1 ? "" : "s");
}

void note_left_out(const char* side, const std::vector<LeftOutPrompt>& prompts,
                   std::vector<std::string>& sentences) {
  if (prompts.empty()) return;
  constexpr std::size_t kShownPrompts = 3;
  constexpr std::size_t kShownBytes = 60;
  std::int64_t samples = 0;
  std::string names;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    samples += prompts[i].samples;
    if (i == kShownPrompts) names += ", …";
    if (i >= kShownPrompts) continue;
    const std::string& prompt = prompts[i].prompt;
    names += fmt::format(
        "{}{}{}", i == 0 ? "" : ", ",
        prompt.empty() ? "(prompt not told)" : escape_for_display(prompt.substr(0, kShownBytes)),
        prompt.size() > kShownBytes ? "…" : "");
  }
  sentences.push_back(
      fmt::format("left out: {} of {} ({} samples) that the other side was not "
                  "asked: {}",
                  prompts_text(static_cast<std::int64_t>(prompts.size())), side, samples, names));
}

void note_errors(const char* side, const AnswerCount& count, PopulationCaveats& caveats) {
  if (count.errors == 0) return;
  const bool many =
      static_cast<double>(count.errors) > kMostErrors * static_cast<double>(count.answers);
  caveats.sentences.push_back(
      fmt::format("{} of {} answers of {} {} left out{}", count.errors, count.answers, side,
                  count.errors == 1 ? "is an error or cannot be read: it is"
                                    : "are errors or cannot be read: "
                                      "they are",
                  many ? "; with more than 5% of them the others may be no fair sample" : ""));
  caveats.inconclusive = caveats.inconclusive || many;
}

// Nothing tells prompts apart: how often each was asked then is in the figures, too.
void note_pooled(const SampleSides& sides, std::vector<std::string>& sentences) {
  const bool several = sides.count_a.answers > 1 || sides.count_b.answers > 1;
  if (sides.by_custom_id || sides.by_prompt || !several) return;
  sentences.emplace_back(
      "the files do not tell prompts apart (not every line has a custom_id, nor a request beside "
      "the answer): all answers of a side are taken as samples of one prompt. With the prompt's "
      "name as custom_id on every line, {\"custom_id\": \"q1\", \"response\": {…}}, each prompt is "
      "tested on its own");
}

Json left_out_json(const std::vector<LeftOutPrompt>& prompts) {
  Json list = Json::array();
  for (const LeftOutPrompt& prompt : prompts) {
    const bool valid = find_invalid_utf8(prompt.prompt) == std::string::npos;
    list.push_back({{"prompt", valid ? prompt.prompt : escape_for_display(prompt.prompt)},
                    {"samples", prompt.samples}});
  }
  return list;
}

Json count_json(const AnswerCount& count) {
  return {{"errors", count.errors}, {"answers", count.answers}};
}

constexpr double kLevelOfTest = 0.05;

// Some prompt has too few samples, or no prompt could pass the first step of Holm's correction.
bool too_few_samples(const PopulationComparison& comparison) {
  const auto prompts = static_cast<double>(comparison.prompts.size());
  bool any_possible = false;
  for (const PromptComparison& prompt : comparison.prompts) {
    if (prompt.test.permutations == 0 || prompt.test.smallest_p > kLevelOfTest) return true;
    const double tests = prompt.logprobs_known ? 2.0 : 1.0;
    any_possible = any_possible || prompt.test.smallest_p * tests * prompts <= kLevelOfTest;
  }
  return !any_possible;
}

}  // namespace

PopulationCaveats caveats_of(const SampleSides& sides, const PopulationComparison& comparison) {
  PopulationCaveats caveats;
  for (const SettingDifference& setting : sides.settings) {
    caveats.sentences.push_back(
        fmt::format("asked with {} {} and {} ({}): a difference is to be expected", setting.name,
                    escape_for_display(setting.a), escape_for_display(setting.b),
                    prompts_text(setting.prompts)));
    caveats.inconclusive = true;
  }
  note_errors("A", sides.count_a, caveats);
  note_errors("B", sides.count_b, caveats);
  note_left_out("A", sides.only_a, caveats.sentences);
  note_left_out("B", sides.only_b, caveats.sentences);
  if (sides.one_tells_prompts) {
    caveats.sentences.emplace_back(
        "only one side tells its prompts: that both were asked the same is taken on trust");
  }
  note_pooled(sides, caveats.sentences);
  const bool left_out = !sides.only_a.empty() || !sides.only_b.empty();
  if (comparison.prompts.empty()) {
    caveats.sentences.emplace_back("no prompt has answers on both sides: nothing was compared");
    caveats.inconclusive = true;
  } else if (left_out && comparison.changed == 0) {
    caveats.sentences.emplace_back(
        "nothing changed in what was compared; nobody knows of what was left out");
    caveats.inconclusive = true;
  }
  return caveats;
}

Json caveats_json(const SampleSides& sides, const PopulationCaveats& caveats) {
  Json settings = Json::array();
  for (const SettingDifference& setting : sides.settings) {
    settings.push_back({{"setting", setting.name},
                        {"a", escape_for_display(setting.a)},
                        {"b", escape_for_display(setting.b)},
                        {"prompts", setting.prompts}});
  }
  return {{"left_out", {{"a", left_out_json(sides.only_a)}, {"b", left_out_json(sides.only_b)}}},
          {"errors", {{"a", count_json(sides.count_a)}, {"b", count_json(sides.count_b)}}},
          {"settings", settings},
          {"caveats", caveats.sentences}};
}

PopulationVerdict judge_populations(const SampleSides& sides,
                                    const PopulationComparison& comparison) {
  PopulationVerdict verdict;
  verdict.caveats = caveats_of(sides, comparison);
  verdict.name = "inconclusive";
  if (verdict.caveats.inconclusive) {
    verdict.reason = "for what stands above the numbers";
  } else if (too_few_samples(comparison)) {
    verdict.reason = "too few samples of a prompt, or permutations, to find any change at 5%";
  } else {
    verdict.tier = comparison.changed > 0 ? Tier::different : Tier::semantic;
    verdict.name = comparison.changed > 0 ? "different" : "no_difference_found";
  }
  return verdict;
}

}  // namespace driftscope
