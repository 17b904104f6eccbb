// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/response_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

// Equal for equal answers. One of which nothing is known is equal to none: `index` tells it apart.
std::string identity_of(const Answer& answer, std::size_t index) {
  const ResponseChoice& choice = answer.response->choices[answer.choice];
  std::string key = choice.content.text;
  for (const ToolCall& call : choice.tool_calls) {
    key += fmt::format("\x1f{}\x1f{}", call.name, call.arguments);
  }
  if (!choice.content.has_text) {
    for (const ResponseStep& step : choice.content.steps) {
      key += step.token.bytes;
      if (step.token.bytes.empty() && step.token.id) key += fmt::format("\x1d{}", *step.token.id);
    }
  }
  if (key.empty() && !choice.token_ids.empty()) {
    for (const std::int64_t id : choice.token_ids) key += fmt::format("{} ", id);
  }
  const bool known = choice.content.has_text || choice.refusal.has_text || !key.empty();
  if (!known) return fmt::format("\x1c{}", index);
  return choice.refusal.has_text ? key + '\x1e' + choice.refusal.text : key;
}

// Keys in the order in which they appear; the same id twice becomes "id", "id#2".
std::vector<std::pair<std::string, const Response*>> keyed(const std::vector<Response>& responses,
                                                           bool by_id) {
  std::map<std::string, int> seen;
  std::vector<std::pair<std::string, const Response*>> list;
  for (std::size_t i = 0; i < responses.size(); ++i) {
    std::string key = by_id ? responses[i].custom_id : std::to_string(i);
    if (key.empty()) key = responses[i].source;
    if (const int count = ++seen[key]; count > 1) key += fmt::format("#{}", count);
    list.emplace_back(std::move(key), &responses[i]);
  }
  return list;
}

bool have_custom_ids(const std::vector<Response>& responses) {
  return !responses.empty() &&
         std::all_of(responses.begin(), responses.end(), [](const Response& r) {
           return !r.custom_id.empty() || r.format == "unreadable";
         });
}

ResponseComparison without_answer(const Response& a, const Response& b) {
  ResponseComparison comparison;
  comparison.source_a = a.source;
  comparison.source_b = b.source;
  const Response& failed = a.choices.empty() ? a : b;
  const std::string source = escape_for_display(failed.source);
  comparison.verdict = failed.error.empty() ? source + " holds no answer"
                                            : fmt::format("{} is an error, not an answer: {}",
                                                          source, escape_for_display(failed.error));
  return comparison;
}

}  // namespace

std::string Answer::name() const {
  if (response->choices.size() == 1) return response->source;
  return fmt::format("{} choice {}", response->source, response->choices[choice].index);
}

std::vector<Answer> answers_of(const std::vector<Response>& responses) {
  std::vector<Answer> answers;
  for (const Response& response : responses) {
    for (std::size_t i = 0; i < response.choices.size(); ++i) answers.push_back({&response, i});
  }
  return answers;
}

bool answer_other_questions(const Response& a, const Response& b) {
  return !a.custom_id.empty() && !b.custom_id.empty() && a.custom_id != b.custom_id;
}

std::vector<AnswerCluster> cluster_answers(const std::vector<Answer>& answers) {
  std::map<std::string, std::size_t> place;
  std::vector<AnswerCluster> clusters;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto [slot, fresh] = place.try_emplace(identity_of(answers[i], i), clusters.size());
    if (fresh) {
      clusters.emplace_back();
      clusters.back().text = answers[i].response->choices[answers[i].choice].content.text;
    }
    clusters[slot->second].members.push_back(i);
  }
  std::stable_sort(clusters.begin(), clusters.end(),
                   [](const AnswerCluster& a, const AnswerCluster& b) {
                     return a.members.size() > b.members.size();
                   });
  return clusters;
}

void pair_choices(const std::string& key, const Response& a, const Response& b, PairedSides& out) {
  if (a.choices.empty() || b.choices.empty()) {
    out.pairs.push_back({key, without_answer(a, b)});
    return;
  }
  for (std::size_t i = 0; i < a.choices.size(); ++i) {
    const auto partner =
        std::find_if(b.choices.begin(), b.choices.end(),
                     [&](const ResponseChoice& c) { return c.index == a.choices[i].index; });
    const std::string name =
        a.choices.size() == 1 ? key : fmt::format("{} choice {}", key, a.choices[i].index);
    if (partner == b.choices.end()) {
      out.only_a.push_back(name);
      continue;
    }
    out.pairs.push_back(
        {name, compare_responses(a, i, b, static_cast<std::size_t>(partner - b.choices.begin()))});
  }
  for (const ResponseChoice& choice : b.choices) {
    const bool paired =
        std::any_of(a.choices.begin(), a.choices.end(),
                    [&](const ResponseChoice& c) { return c.index == choice.index; });
    if (!paired) out.only_b.push_back(fmt::format("{} choice {}", key, choice.index));
  }
}

PairedSides pair_sides(const std::vector<Response>& a, const std::vector<Response>& b) {
  PairedSides out;
  const bool by_id = have_custom_ids(a) && have_custom_ids(b);
  const auto left = keyed(a, by_id);
  const auto right = keyed(b, by_id);
  std::map<std::string, const Response*> partners(right.begin(), right.end());
  for (const auto& [key, response] : left) {
    const auto found = partners.find(key);
    if (found == partners.end()) {
      out.only_a.push_back(key);
      continue;
    }
    pair_choices(key, *response, *found->second, out);
    partners.erase(found);
  }
  for (const auto& [key, response] : right) {
    if (partners.contains(key)) out.only_b.push_back(key);
  }
  return out;
}

Tier weakest_tier(const std::vector<AnswerPair>& pairs) {
  Tier weakest = pairs.empty() ? Tier::inconclusive : Tier::bitwise;
  for (const AnswerPair& pair : pairs) weakest = std::max(weakest, pair.comparison.tier);
  return weakest;
}

Tier known_tier(const std::vector<AnswerPair>& pairs) {
  Tier known = Tier::bitwise;
  for (const AnswerPair& pair : pairs) {
    if (pair.comparison.tier != Tier::inconclusive)
      known = std::max(known, pair.comparison.at_best);
  }
  return known;
}

}  // namespace driftscope
