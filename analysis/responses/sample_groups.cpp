// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/sample_groups.h"

#include <algorithm>
#include <map>
#include <utility>

#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

std::optional<SymbolSequence> ids_of(const ResponseChoice& choice) {
  if (!choice.token_ids.empty()) return choice.token_ids;
  const auto& steps = choice.content.steps;
  if (steps.empty()) return std::nullopt;
  SymbolSequence ids;
  for (const ResponseStep& step : steps) {
    if (!step.token.id) return std::nullopt;
    ids.push_back(*step.token.id);
  }
  return ids;
}

SymbolSequence code_points(const std::string& text) {
  SymbolSequence sequence;
  sequence.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text, at);
    sequence.push_back(static_cast<std::int64_t>(step.code_point));
    at += step.length;
  }
  return sequence;
}

std::optional<double> mean_logprob(const Response& response, const ResponseChoice& choice) {
  if (response.scale != LogprobScale::log_probability || response.fake_certainty ||
      response.after_sampling) {
    return std::nullopt;
  }
  double sum = 0.0;
  std::int64_t count = 0;
  for (const ResponseStep& step : choice.content.steps) {
    if (!step.logprob.usable()) continue;
    sum += step.logprob.value;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

bool all_ids_known(const std::vector<SampleRecord>& records) {
  return std::all_of(records.begin(), records.end(), [](const SampleRecord& record) {
    return std::all_of(record.answers.begin(), record.answers.end(),
                       [](const SampleRecord::Answer& answer) { return answer.token_ids; });
  });
}

bool have_custom_ids(const std::vector<SampleRecord>& records) {
  return std::all_of(records.begin(), records.end(), [](const SampleRecord& record) {
    return !record.custom_id.empty() || record.answers.empty();
  });
}

std::vector<SampleGroup> groups_of(std::vector<SampleRecord>&& records, bool by_custom_id,
                                   bool by_token_ids) {
  std::vector<SampleGroup> groups;
  std::map<std::string, std::size_t> place;
  for (SampleRecord& record : records) {
    if (record.answers.empty()) continue;
    const std::string key = by_custom_id ? record.custom_id : std::string();
    const auto [slot, fresh] = place.try_emplace(key, groups.size());
    if (fresh) {
      groups.emplace_back();
      groups.back().prompt = key;
    }
    SampleGroup& group = groups[slot->second];
    for (SampleRecord::Answer& answer : record.answers) {
      group.sequences.push_back(by_token_ids ? std::move(*answer.token_ids)
                                             : code_points(answer.text));
      group.texts.push_back(std::move(answer.text));
      if (answer.mean_logprob) group.mean_logprobs.push_back(*answer.mean_logprob);
    }
  }
  return groups;
}

std::vector<SampleRecord> records_of(const std::vector<Response>& responses) {
  std::vector<SampleRecord> records;
  for (const Response& response : responses) records.push_back(sample_record(response));
  return records;
}

}  // namespace

SampleRecord sample_record(const Response& response) {
  SampleRecord record;
  record.custom_id = response.custom_id;
  for (const ResponseChoice& choice : response.choices) {
    record.answers.push_back({.token_ids = ids_of(choice),
                              .text = choice.content.text,
                              .mean_logprob = mean_logprob(response, choice)});
  }
  return record;
}

SampleSides sample_sides(std::vector<SampleRecord> a, std::vector<SampleRecord> b) {
  SampleSides sides;
  sides.by_custom_id = have_custom_ids(a) && have_custom_ids(b);
  sides.by_token_ids = all_ids_known(a) && all_ids_known(b);
  sides.a = groups_of(std::move(a), sides.by_custom_id, sides.by_token_ids);
  sides.b = groups_of(std::move(b), sides.by_custom_id, sides.by_token_ids);
  return sides;
}

SampleSides sample_sides(const std::vector<Response>& a, const std::vector<Response>& b) {
  return sample_sides(records_of(a), records_of(b));
}

}  // namespace driftscope
