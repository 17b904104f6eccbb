// SPDX-License-Identifier: Apache-2.0
#include "analysis/probe/ladder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "analysis/probe/ladder_parts.h"
#include "analysis/responses/response_lint.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

// A cause is named where chance would make the same picture in fewer than one of twenty probes.
constexpr double kMostChance = 0.05;

enum class By : std::uint8_t { text, numbers };

std::int64_t sampled_steps(const ProbeGroup& group) {
  std::int64_t count = 0;
  for (const Response& response : group.responses) {
    for (const ResponseStep& step : response.choices[0].content.steps) {
      const auto rank = rank_of_chosen(step);
      if (rank && rank->first > 1) ++count;
    }
  }
  return count;
}

bool logprobs_known(const ProbeGroup& group) {
  return std::any_of(group.responses.begin(), group.responses.end(), [](const Response& response) {
    const auto& steps = response.choices[0].content.steps;
    return std::any_of(steps.begin(), steps.end(),
                       [](const ResponseStep& step) { return step.logprob.usable(); });
  });
}

// Answers by what they have in common, and whether each such set is one class of its own.
class Sets {
 public:
  void add(const std::string& name, std::int64_t label) {
    m_labels[name].insert(label);
    ++m_sizes[name];
  }
  [[nodiscard]] std::size_t count() const { return m_labels.size(); }
  [[nodiscard]] bool separate() const {
    std::set<std::int64_t> seen;
    for (const auto& [name, labels] : m_labels) {
      if (labels.size() != 1 || !seen.insert(*labels.begin()).second) return false;
    }
    return true;
  }
  // With `times` as many answers in each but in the one that does not grow.
  [[nodiscard]] double chance(std::int64_t times, std::string_view fixed = {}) const {
    std::vector<std::int64_t> sizes;
    for (const auto& [name, size] : m_sizes) sizes.push_back(name == fixed ? size : times * size);
    return chance_of_separation(sizes);
  }
  [[nodiscard]] std::string names() const {
    std::vector<std::string> names;
    for (const auto& [name, labels] : m_labels) names.push_back(name);
    return escape_for_display(fmt::format("{}", fmt::join(names, "; ")));
  }

 private:
  std::map<std::string, std::set<std::int64_t>> m_labels;
  std::map<std::string, std::int64_t> m_sizes;
};

// Lives during find_cause() only. The rungs are climbed by the texts; where all of them are the
// same, again by the numbers.
class Ladder {
 public:
  Ladder(std::optional<double> temperature, ProbeReport& report)
      : m_temperature(temperature), m_report(report) {
    for (const ProbeGroup& group : report.groups) {
      if (group.stage == ProbeStage::alone) m_alone.push_back(&group);
    }
  }

  void climb() {
    const bool enough = std::any_of(m_report.groups.begin(), m_report.groups.end(),
                                    [](const ProbeGroup& group) { return group.answered >= 2; });
    if (!enough) {
      return conclude(ProbeCause::not_enough, too_few());
    }
    for (const By by : {By::text, By::numbers}) {
      m_by = by;
      m_report.numbers_only = by == By::numbers;
      if (sampling() || hidden_backends() || prompt_cache() || unstable_alone() || replicas() ||
          batches() || rare()) {
        return;
      }
    }
    m_report.numbers_only = false;
    nothing_seen();
  }

 private:
  [[nodiscard]] std::string too_few() const {
    std::int64_t asked = 0;
    std::int64_t answered = 0;
    for (const ProbeGroup& group : m_report.groups) {
      asked += group.asked;
      answered += group.answered;
    }
    return fmt::format(
        "{} of {} requests were answered; it takes two answers to the same request "
        "on one replica to say anything (why the others failed: see below)",
        answered, asked);
  }
  [[nodiscard]] std::int64_t label(const ProbeGroup& group, std::size_t i) const {
    return m_by == By::text ? group.text_class[i] : group.number_class[i];
  }
  [[nodiscard]] std::int64_t unique(const ProbeGroup& group) const {
    return m_by == By::text ? group.unique : group.unique_numbers;
  }
  [[nodiscard]] std::string_view kind() const {
    return m_by == By::text ? "answers" : "sets of logprobs (the texts are all equal)";
  }
  void conclude(ProbeCause cause, std::string sentence) {
    m_report.cause = cause;
    m_report.sentence = std::move(sentence);
  }
  // Names the cause only where the answers are enough to support it.
  void support(ProbeCause cause, const ChanceOfTimes& chance, std::string sentence) {
    if (chance(1) <= kMostChance) return conclude(cause, std::move(sentence));
    leave_open(fmt::format("{} as the cause: the answers fit it", name_of(cause)));
    conclude(ProbeCause::unresolved,
             fmt::format("{}; but so few answers fall like this by chance with a probability of "
                         "{:.2g}: ask for more with --samples{}",
                         sentence, chance(1), more_samples(chance, kMostChance, m_report.groups)));
  }
  void leave_open(std::string possibility) {
    m_report.not_ruled_out.push_back(std::move(possibility));
  }

  // Rung 1: is it the sampler at all?
  bool sampling() {
    if (m_by != By::text) return false;
    for (const ProbeGroup& group : m_report.groups) {
      if (group.unique < 2) continue;
      const std::int64_t steps = sampled_steps(group);
      if (!m_temperature && steps > 0) {
        conclude(ProbeCause::sampling,
                 fmt::format("{}: the server takes no temperature, and {} tokens were not the most "
                             "likely ones: it samples in its own way",
                             name_of(group), steps));
      } else if (m_temperature.value_or(0.0) > 0.0) {
        conclude(ProbeCause::sampling,
                 fmt::format("{}: temperature {} was asked for, and the seed did not make the "
                             "answers equal: {} different of {}",
                             name_of(group), *m_temperature, group.unique, group.answered));
      } else if (steps > 0) {
        conclude(ProbeCause::sampling,
                 fmt::format("{}: {} tokens were not the most likely ones although temperature 0 "
                             "was asked: the server samples (it overrides or ignores the "
                             "temperature)",
                             name_of(group), steps));
      } else {
        continue;
      }
      leave_open("drift of the numerics as well: it cannot be seen below the sampler");
      return true;
    }
    return false;
  }

  // Rung 2: does one URL answer as one version?
  bool hidden_backends() {
    std::map<std::int64_t, Sets> replicas;
    std::map<std::int64_t, std::set<std::int64_t>> labels;
    for (const ProbeGroup& group : m_report.groups) {
      for (std::size_t i = 0; i < group.responses.size(); ++i) {
        replicas[group.replica].add(version_of(group.responses[i]), label(group, i));
        labels[group.replica].insert(label(group, i));
      }
    }
    for (const auto& [replica, sets] : replicas) {
      if (sets.count() < 2 || labels[replica].size() < 2) continue;
      if (!sets.separate()) {
        leave_open("several versions behind one URL (" + sets.names() +
                   "): they alone do not explain the answers");
        continue;
      }
      support(
          ProbeCause::hidden_backends, [&](std::int64_t times) { return sets.chance(times); },
          fmt::format("replica {}: one URL answers as several versions ({}), and each repeats "
                      "itself",
                      replica, sets.names()));
      leave_open("the batch: which requests share a batch changes along with the backend");
      return true;
    }
    return false;
  }

  // Do prompts that were read from a cache answer otherwise?
  bool prompt_cache() {
    for (const ProbeGroup& group : m_report.groups) {
      if (unique(group) < 2) continue;
      Sets sets;
      bool known = true;
      for (std::size_t i = 0; i < group.responses.size(); ++i) {
        const auto cached = group.responses[i].usage.cached_tokens;
        known = known && cached.has_value();
        sets.add(cached.value_or(0) > 0 ? "cached" : "not cached", label(group, i));
      }
      if (!known || sets.count() != 2 || !sets.separate()) continue;
      // More requests find the prompt in the cache.
      const auto chance = [&](std::int64_t times) { return sets.chance(times, "not cached"); };
      support(ProbeCause::prompt_cache, chance,
              fmt::format("{}: answers whose prompt came from the cache are all the same, and "
                          "differ from those without{}",
                          name_of(group), first_parting(group)));
      leave_open("other things that change along with a first request");
      return true;
    }
    return false;
  }

  // Rung 3: does one replica repeat itself when nobody else asks through us?
  bool unstable_alone() {
    for (const ProbeGroup* group : m_alone) {
      if (unique(*group) < 2) continue;
      conclude(ProbeCause::unstable_alone,
               fmt::format("{}: the same request, one at a time, gave {} different {} of {}{}",
                           name_of(*group), unique(*group), kind(), group->answered,
                           first_parting(*group)));
      if (only_first_differs(*group))
        leave_open("a prompt cache: only the first answer differs from the others");
      leave_open("requests of other users in the same batch: they cannot be seen from here");
      leave_open("several machines behind the URL that do not name themselves");
      leave_open("kernels that do not give the same bits twice (atomic sums)");
      if (!logprobs_known(*group))
        leave_open("sampling: the server gave no logprobs to rule it out");
      return true;
    }
    return false;
  }

  [[nodiscard]] bool only_first_differs(const ProbeGroup& group) const {
    for (std::size_t i = 2; i < group.responses.size(); ++i) {
      if (label(group, i) != label(group, 1)) return false;
    }
    return group.responses.size() > 2 && label(group, 0) != label(group, 1);
  }

  // Rung 4: do replicas agree, each being stable?
  bool replicas() {
    Sets sets;
    std::set<std::int64_t> labels;
    const ProbeGroup* other = nullptr;
    for (const ProbeGroup* group : m_alone) {
      for (std::size_t i = 0; i < group->responses.size(); ++i) {
        sets.add(fmt::format("{}", group->replica), label(*group, i));
        if (!labels.empty() && labels.insert(label(*group, i)).second) other = group;
        labels.insert(label(*group, i));
      }
    }
    if (labels.size() < 2 || other == nullptr) return false;
    const ProbeGroup& first = *m_alone[0];
    const std::string named = version_difference(first, *other);
    const auto chance = [&](std::int64_t times) {
      return chance_of_separation({times * first.answered, times * other->answered});
    };
    support(
        named.empty() ? ProbeCause::replica : ProbeCause::version, chance,
        fmt::format("replicas {} and {} each repeat themselves and differ: {}; they name {}",
                    first.replica, other->replica, parting(first.responses[0], other->responses[0]),
                    named.empty() ? "the same version" : "different versions" + named));
    leave_open(named.empty()
                   ? "weights, build, hardware or settings that differ without being named"
                   : "hardware or settings that differ along with the version");
    return true;
  }

  // What two replicas say of themselves, in answers and on their routes; empty: the same.
  [[nodiscard]] std::string version_difference(const ProbeGroup& a, const ProbeGroup& b) const {
    std::string text;
    if (!a.responses.empty() && !b.responses.empty() &&
        version_of(a.responses[0]) != version_of(b.responses[0])) {
      text = fmt::format(" ({} and {})", version_of(a.responses[0]), version_of(b.responses[0]));
    }
    for (const ProbeVersion& of_a : m_report.versions) {
      for (const ProbeVersion& of_b : m_report.versions) {
        if (of_a.replica != a.replica || of_b.replica != b.replica) continue;
        if (of_a.field == of_b.field && of_a.value != of_b.value)
          text += fmt::format(" ({}: {} and {})", of_a.field, of_a.value, of_b.value);
      }
    }
    return escape_for_display(text);
  }

  // Rung 5: does company change the answer?
  bool batches() {
    for (const ProbeGroup* alone : m_alone) {
      if (alone->responses.empty()) continue;
      std::int64_t together = 0;
      std::int64_t odd = 0;
      std::set<std::int64_t> crowds;
      std::string example;
      for (const ProbeGroup& group : m_report.groups) {
        if (group.stage == ProbeStage::alone || group.replica != alone->replica) continue;
        for (std::size_t i = 0; i < group.responses.size(); ++i) {
          ++together;
          if (label(group, i) == label(*alone, 0)) continue;
          ++odd;
          crowds.insert(group.concurrency);
          if (example.empty()) example = parting(alone->responses[0], group.responses[i]);
        }
      }
      if (odd == 0) continue;
      const auto chance = [&](std::int64_t times) {
        return chance_of_company(times * alone->answered, times * together, times * odd);
      };
      support(ProbeCause::batch_composition, chance,
              fmt::format("replica {}: alone {} {} were the same; with others in flight ({}) {} of "
                          "{} differ from them; {}",
                          alone->replica, alone->answered, kind(), fmt::join(crowds, ", "), odd,
                          together, example));
      leave_open("a load balancer that sends requests to other machines only under load");
      leave_open("an answer cache that hid drift while we asked one at a time");
      if (m_by == By::text && alone->unique_numbers > 1)
        leave_open("drift without company: the logprobs move already when asked one at a time");
      return true;
    }
    return false;
  }

  // Different, and nothing to set it against: no replica was asked alone.
  bool rare() {
    for (const ProbeGroup& group : m_report.groups) {
      if (unique(group) < 2) continue;
      conclude(ProbeCause::unresolved,
               fmt::format("{}: {} different {} of {}, and none was asked alone to compare with",
                           name_of(group), unique(group), kind(), group.answered));
      return true;
    }
    return false;
  }

  void nothing_seen() {
    const bool numbers = std::any_of(m_report.groups.begin(), m_report.groups.end(),
                                     [](const ProbeGroup& group) { return logprobs_known(group); });
    conclude(ProbeCause::none_seen,
             fmt::format("every answer is the same{}, alone and together, on every replica",
                         numbers ? ", and its logprobs too" : ""));
    if (!numbers) leave_open("drift that changes no token: the server gave no logprobs");
    leave_open("differences rarer than one in the number of samples taken");
    leave_open("an answer cache in front of the server");
    leave_open("batches larger than the requests that were in flight");
  }

  [[nodiscard]] std::string first_parting(const ProbeGroup& group) const {
    for (std::size_t i = 1; i < group.responses.size(); ++i) {
      if (label(group, i) != label(group, 0))
        return "; " + parting(group.responses[0], group.responses[i]);
    }
    return {};
  }

  std::optional<double> m_temperature;  // empty: the server refuses the field
  By m_by = By::text;
  ProbeReport& m_report;
  std::vector<const ProbeGroup*> m_alone;
};

void describe_rungs(ProbeReport& report) {
  for (const ProbeGroup& group : report.groups) {
    std::string line = fmt::format("{} ({}): {} asked, {} answered, {} unique", name_of(group),
                                   name_of(group.stage), group.asked, group.answered, group.unique);
    if (group.unique_numbers > group.unique)
      line += fmt::format(", {} counting their logprobs too", group.unique_numbers);
    if (group.failed > 0) line += fmt::format(", {} failed", group.failed);
    report.rungs.push_back(std::move(line));
  }
}

}  // namespace

std::string_view name_of(ProbeCause cause) {
  constexpr std::array<std::string_view, 10> kNames{
      "none_seen",         "sampling",       "hidden_backends", "version",      "replica",
      "batch_composition", "unstable_alone", "not_enough",      "prompt_cache", "unresolved"};
  return kNames[static_cast<std::size_t>(cause)];
}

void find_cause(const std::vector<Exchange>& exchanges, ProbeReport& report) {
  Ladder(temperature_asked(exchanges), report).climb();
}

ProbeReport climb_ladder(const std::vector<Exchange>& exchanges) {
  ProbeReport report;
  report.groups = group_exchanges(exchanges);
  report.versions = versions_of(exchanges);
  describe_rungs(report);
  find_cause(exchanges, report);
  add_probe_findings(exchanges, report);
  return report;
}

}  // namespace driftscope
