// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/sample_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
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

bool tells_prompts(const std::vector<SampleRecord>& records) {
  return std::any_of(records.begin(), records.end(), [](const SampleRecord& record) {
    return !record.prompt.empty() && !record.answers.empty();
  });
}

AnswerCount count_of(const std::vector<SampleRecord>& records) {
  AnswerCount count;
  for (const SampleRecord& record : records) {
    count.answers += std::max<std::int64_t>(1, static_cast<std::int64_t>(record.answers.size()));
    if (record.answers.empty()) ++count.errors;
  }
  return count;
}

// Names of the groups: the custom_id alone where it always stands for the same prompt.
class GroupNames {
 public:
  GroupNames(bool by_custom_id, bool by_prompt)
      : m_by_custom_id(by_custom_id), m_by_prompt(by_prompt) {}
  void note(const std::vector<SampleRecord>& records) {
    if (!m_by_custom_id || !m_by_prompt) return;
    for (const SampleRecord& record : records) {
      if (record.answers.empty()) continue;
      const auto [slot, fresh] = m_prompts.try_emplace(record.custom_id, record.prompt);
      if (!fresh && slot->second != record.prompt) m_several.insert(record.custom_id);
    }
  }
  [[nodiscard]] std::string of(const SampleRecord& record) const {
    if (!m_by_custom_id) return m_by_prompt ? record.prompt : std::string();
    return m_several.contains(record.custom_id) ? record.custom_id + ": " + record.prompt
                                                : record.custom_id;
  }

 private:
  bool m_by_custom_id, m_by_prompt;
  std::map<std::string, std::string> m_prompts;
  std::set<std::string> m_several;
};

// What the samples of one group of one side were asked with.
struct AskedWith {
  std::set<std::string> temperature, top_p, most_tokens, seed;

  template <class Value>
  static void note(std::set<std::string>& values, const std::optional<Value>& value, bool known) {
    if (value) values.insert(fmt::format("{}", *value));
    if (!value && known) values.insert("none given");
  }
  void add(const SampleRecord& record) {
    note(temperature, record.temperature, record.request_known);
    note(top_p, record.top_p, record.request_known);
    note(most_tokens, record.most_tokens, record.request_known);
    note(seed, record.seed, record.request_known);
  }
  // Seeds of their own make independent samples on both sides; one seed for all does not.
  [[nodiscard]] std::set<std::string> seeds() const {
    return seed.size() > 1 && !seed.contains("none given") ? std::set<std::string>{"several"}
                                                           : seed;
  }
};

std::string listed(const std::set<std::string>& values) {
  constexpr std::size_t kShown = 4;
  std::string out;
  std::size_t count = 0;
  for (const std::string& value : values) {
    if (count++ == kShown) return out + ", …";
    out += (out.empty() ? "" : ", ") + value;
  }
  return out;
}

class SettingDifferences {
 public:
  void compare(const AskedWith& a, const AskedWith& b) {
    note("temperature", a.temperature, b.temperature);
    note("top_p", a.top_p, b.top_p);
    note("max_tokens", a.most_tokens, b.most_tokens);
    note("seed", a.seeds(), b.seeds());
  }
  [[nodiscard]] std::vector<SettingDifference> found() && { return std::move(m_found); }

 private:
  void note(const char* name, const std::set<std::string>& a, const std::set<std::string>& b) {
    if (a.empty() || b.empty() || a == b) return;
    const std::string of_a = listed(a);
    const std::string of_b = listed(b);
    for (SettingDifference& known : m_found) {
      if (known.name != name || known.a != of_a || known.b != of_b) continue;
      ++known.prompts;
      return;
    }
    m_found.push_back({.name = name, .a = of_a, .b = of_b, .prompts = 1});
  }
  std::vector<SettingDifference> m_found;
};

struct Grouped {
  std::vector<SampleGroup> groups;
  std::vector<AskedWith> asked;  // of each group
  std::map<std::string, std::size_t> place;
};

Grouped groups_of(std::vector<SampleRecord>&& records, const GroupNames& names, bool by_token_ids) {
  Grouped out;
  for (SampleRecord& record : records) {
    if (record.answers.empty()) continue;
    const std::string key = names.of(record);
    const auto [slot, fresh] = out.place.try_emplace(key, out.groups.size());
    if (fresh) {
      out.groups.emplace_back();
      out.groups.back().prompt = key;
      out.asked.emplace_back();
    }
    out.asked[slot->second].add(record);
    SampleGroup& group = out.groups[slot->second];
    for (SampleRecord::Answer& answer : record.answers) {
      group.sequences.push_back(by_token_ids ? std::move(*answer.token_ids)
                                             : code_points(answer.text));
      group.texts.push_back(std::move(answer.text));
      if (answer.mean_logprob) group.mean_logprobs.push_back(*answer.mean_logprob);
    }
  }
  return out;
}

std::vector<LeftOutPrompt> without_partner(const Grouped& side, const Grouped& other) {
  std::vector<LeftOutPrompt> out;
  for (const SampleGroup& group : side.groups) {
    if (!other.place.contains(group.prompt))
      out.push_back({group.prompt, static_cast<std::int64_t>(group.sequences.size())});
  }
  return out;
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
  const ResponseRequest& asked = response.request;
  record.prompt = asked.prompt.empty() ? response.prompt_text.value_or("") : asked.prompt;
  record.request_known = !asked.prompt.empty();
  record.temperature = asked.temperature ? asked.temperature : response.temperature;
  record.top_p = asked.top_p ? asked.top_p : response.top_p;
  record.seed = asked.seed ? asked.seed : response.seed;
  record.most_tokens = asked.most_tokens;
  if (!response.error.empty()) return record;
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
  sides.by_prompt = tells_prompts(a) && tells_prompts(b);
  sides.one_tells_prompts = tells_prompts(a) != tells_prompts(b);
  sides.count_a = count_of(a);
  sides.count_b = count_of(b);
  GroupNames names(sides.by_custom_id, sides.by_prompt);
  names.note(a);
  names.note(b);
  Grouped grouped_a = groups_of(std::move(a), names, sides.by_token_ids);
  Grouped grouped_b = groups_of(std::move(b), names, sides.by_token_ids);
  sides.only_a = without_partner(grouped_a, grouped_b);
  sides.only_b = without_partner(grouped_b, grouped_a);
  SettingDifferences differences;
  for (const auto& [name, index] : grouped_a.place) {
    const auto partner = grouped_b.place.find(name);
    if (partner != grouped_b.place.end())
      differences.compare(grouped_a.asked[index], grouped_b.asked[partner->second]);
  }
  sides.settings = std::move(differences).found();
  sides.a = std::move(grouped_a.groups);
  sides.b = std::move(grouped_b.groups);
  return sides;
}

SampleSides sample_sides(const std::vector<Response>& a, const std::vector<Response>& b) {
  return sample_sides(records_of(a), records_of(b));
}

}  // namespace driftscope
