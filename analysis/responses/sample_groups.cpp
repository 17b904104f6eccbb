// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/sample_groups.h"

#include <algorithm>
#include <map>
#include <string>

#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

bool ids_known(const ResponseChoice& choice) {
  const auto& steps = choice.content.steps;
  return !choice.token_ids.empty() ||
         (!steps.empty() && std::all_of(steps.begin(), steps.end(), [](const ResponseStep& step) {
           return step.token.id.has_value();
         }));
}

bool all_ids_known(const std::vector<Response>& responses) {
  for (const Response& response : responses) {
    for (const ResponseChoice& choice : response.choices) {
      if (!ids_known(choice)) return false;
    }
  }
  return true;
}

SymbolSequence sequence_of(const ResponseChoice& choice, bool by_token_ids) {
  SymbolSequence sequence;
  if (by_token_ids) {
    if (!choice.token_ids.empty()) return choice.token_ids;
    for (const ResponseStep& step : choice.content.steps) sequence.push_back(*step.token.id);
    return sequence;
  }
  const std::string& text = choice.content.text;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text, at);
    sequence.push_back(static_cast<std::int64_t>(step.code_point));
    at += step.length;
  }
  return sequence;
}

void add_mean_logprob(const Response& response, const ResponseChoice& choice, SampleGroup& group) {
  if (response.scale != LogprobScale::log_probability || response.fake_certainty ||
      response.after_sampling) {
    return;
  }
  double sum = 0.0;
  std::int64_t count = 0;
  for (const ResponseStep& step : choice.content.steps) {
    if (!step.logprob.usable()) continue;
    sum += step.logprob.value;
    ++count;
  }
  if (count > 0) group.mean_logprobs.push_back(sum / static_cast<double>(count));
}

std::vector<SampleGroup> groups_of(const std::vector<Response>& responses, bool by_custom_id,
                                   bool by_token_ids) {
  std::vector<SampleGroup> groups;
  std::map<std::string, std::size_t> place;
  for (const Response& response : responses) {
    const std::string key = by_custom_id ? response.custom_id : std::string();
    const auto [slot, fresh] = place.try_emplace(key, groups.size());
    if (fresh) {
      groups.emplace_back();
      groups.back().prompt = key;
    }
    SampleGroup& group = groups[slot->second];
    for (const ResponseChoice& choice : response.choices) {
      group.sequences.push_back(sequence_of(choice, by_token_ids));
      group.texts.push_back(choice.content.text);
      add_mean_logprob(response, choice, group);
    }
  }
  return groups;
}

bool have_custom_ids(const std::vector<Response>& responses) {
  return std::all_of(responses.begin(), responses.end(),
                     [](const Response& response) { return !response.custom_id.empty(); });
}

}  // namespace

SampleSides sample_sides(const std::vector<Response>& a, const std::vector<Response>& b) {
  SampleSides sides;
  sides.by_custom_id = have_custom_ids(a) && have_custom_ids(b);
  sides.by_token_ids = all_ids_known(a) && all_ids_known(b);
  sides.a = groups_of(a, sides.by_custom_id, sides.by_token_ids);
  sides.b = groups_of(b, sides.by_custom_id, sides.by_token_ids);
  return sides;
}

}  // namespace driftscope
