// SPDX-License-Identifier: Apache-2.0
#include "analysis/probe/ladder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "analysis/compare/findings.h"
#include "analysis/import/response_file.h"
#include "analysis/responses/response_compare.h"
#include "analysis/responses/response_documents.h"
#include "analysis/responses/response_lint.h"
#include "analysis/responses/response_set.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

std::string name_of_group(const ProbeGroup& group) {
  return fmt::format("replica {}, {} in flight", group.replica, group.concurrency);
}

void add_response(ProbeGroup& group, const Exchange& exchange) {
  ++group.asked;
  if (exchange.status != 200) {
    ++group.failed;
    return;
  }
  auto responses = read_responses(exchange.body, exchange.key());
  if (!responses || responses->empty()) {
    ++group.failed;
    return;
  }
  Response response = std::move((*responses)[0]);
  grade_response(response);
  for (const auto& [name, value] : exchange.headers) response.headers.push_back({name, value});
  if (!response.error.empty() || response.choices.empty()) {
    ++group.failed;
    return;
  }
  ++group.answered;
  group.responses.push_back(std::move(response));
}

std::vector<ProbeGroup> group_exchanges(const std::vector<Exchange>& exchanges) {
  std::map<std::tuple<ProbeStage, std::int64_t, std::int64_t>, ProbeGroup> groups;
  for (const Exchange& exchange : exchanges) {
    if (exchange.stage == ProbeStage::discovery) continue;
    ProbeGroup& group = groups[{exchange.stage, exchange.concurrency, exchange.replica}];
    group.stage = exchange.stage;
    group.replica = exchange.replica;
    group.concurrency = exchange.concurrency;
    add_response(group, exchange);
  }
  std::vector<ProbeGroup> list;
  for (auto& [key, group] : groups) {
    group.unique = static_cast<std::int64_t>(cluster_answers(answers_of(group.responses)).size());
    list.push_back(std::move(group));
  }
  return list;
}

const ProbeGroup* group_of(const std::vector<ProbeGroup>& groups, ProbeStage stage,
                           std::int64_t replica) {
  for (const ProbeGroup& group : groups) {
    if (group.stage == stage && group.replica == replica) return &group;
  }
  return nullptr;
}

// Steps whose token was not the most likely one.
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

std::set<std::string> versions_of(const ProbeGroup& group) {
  std::set<std::string> versions;
  for (const Response& response : group.responses) {
    std::string version = response.model;
    if (response.fingerprint != "fp_ollama") version += " " + response.fingerprint;
    version += " " + response.provider + " " + response.weight_version;
    versions.insert(version);
  }
  return versions;
}

bool logprobs_known(const ProbeGroup& group) {
  return std::any_of(group.responses.begin(), group.responses.end(), [](const Response& response) {
    return response.choices[0].content.has_steps;
  });
}

// Lives during climb_ladder() only.
class Ladder {
 public:
  explicit Ladder(ProbeReport& report) : m_report(report) {}

  void climb() {
    for (const ProbeGroup& group : m_report.groups) {
      m_report.rungs.push_back(
          fmt::format("{} ({}): {} asked, {} answered, {} unique{}", name_of_group(group),
                      name_of(group.stage), group.asked, group.answered, group.unique,
                      group.failed > 0 ? fmt::format(", {} failed", group.failed) : std::string()));
      if (group.stage == ProbeStage::alone) m_alone.push_back(&group);
    }
    const bool enough = std::any_of(m_report.groups.begin(), m_report.groups.end(),
                                    [](const ProbeGroup& group) { return group.answered >= 2; });
    if (!enough) {
      return conclude(ProbeCause::not_enough,
                      "too few answers to say anything: two of the same request at least");
    }
    if (sampling() || hidden_backends() || unstable_alone() || replicas() || batches()) return;
    nothing_seen();
  }

 private:
  void conclude(ProbeCause cause, std::string sentence) {
    m_report.cause = cause;
    m_report.sentence = std::move(sentence);
  }
  void leave_open(std::string possibility) {
    m_report.not_ruled_out.push_back(std::move(possibility));
  }

  // Rung 1: is it the sampler at all?
  bool sampling() {
    for (const ProbeGroup& group : m_report.groups) {
      const std::int64_t steps = sampled_steps(group);
      if (steps == 0 || group.unique < 2) continue;
      conclude(ProbeCause::sampling,
               fmt::format("{}: {} tokens were not the most likely ones although temperature 0 was "
                           "asked: the server samples (it overrides or ignores the temperature)",
                           name_of_group(group), steps));
      leave_open("drift of the numerics as well: it cannot be seen below the sampler");
      return true;
    }
    return false;
  }

  // Rung 2: does one URL answer as one version?
  bool hidden_backends() {
    for (const ProbeGroup& group : m_report.groups) {
      const auto versions = versions_of(group);
      if (versions.size() < 2) continue;
      const std::string seen = escape_for_display(fmt::format("{}", fmt::join(versions, "; ")));
      if (group.unique < 2) {
        m_report.findings.push_back(make_finding(
            "several_versions", Severity::notice,
            fmt::format("{} answered as several versions ({}) and always with the same text",
                        name_of_group(group), seen),
            Json::object()));
        continue;
      }
      conclude(
          ProbeCause::hidden_backends,
          fmt::format("{}: one URL answers as several versions ({})", name_of_group(group), seen));
      leave_open("the batch: which requests share a batch changes along with the backend");
      return true;
    }
    return false;
  }

  // Rung 3: does one replica repeat itself when nobody else asks through us?
  bool unstable_alone() {
    for (const ProbeGroup* group : m_alone) {
      if (group->unique < 2) continue;
      conclude(ProbeCause::unstable_alone,
               fmt::format("{}: the same request, one at a time, gave {} different answers of {}{}",
                           name_of_group(*group), group->unique, group->answered,
                           first_parting(*group)));
      leave_open("requests of other users in the same batch: they cannot be seen from here");
      leave_open("several machines behind the URL that do not name themselves");
      leave_open("kernels that do not give the same bits twice (atomic sums)");
      if (!logprobs_known(*group))
        leave_open("sampling: the server gave no logprobs to rule it out");
      return true;
    }
    return false;
  }

  // Rung 4: do replicas agree, each being stable?
  bool replicas() {
    for (std::size_t i = 1; i < m_alone.size(); ++i) {
      const ProbeGroup& a = *m_alone[0];
      const ProbeGroup& b = *m_alone[i];
      if (a.responses.empty() || b.responses.empty()) continue;
      const auto c = compare_responses(a.responses[0], 0, b.responses[0], 0);
      if (c.tier != Tier::different) continue;
      const bool version = versions_of(a) != versions_of(b);
      conclude(
          version ? ProbeCause::version : ProbeCause::replica,
          fmt::format("replicas {} and {} each repeat themselves and differ: {}{}", a.replica,
                      b.replica, c.verdict,
                      version ? "; they name different versions" : "; they name the same version"));
      leave_open(version ? "hardware or settings that differ along with the version"
                         : "weights, build, hardware or settings that differ without being named");
      return true;
    }
    return false;
  }

  // Rung 5: does company change the answer?
  bool batches() {
    for (const ProbeGroup& group : m_report.groups) {
      if (group.stage != ProbeStage::together || group.responses.empty()) continue;
      const ProbeGroup* alone = group_of(m_report.groups, ProbeStage::alone, group.replica);
      if (alone == nullptr || alone->responses.empty()) continue;
      std::vector<Response> all = alone->responses;
      all.insert(all.end(), group.responses.begin(), group.responses.end());
      if (cluster_answers(answers_of(all)).size() < 2) continue;
      conclude(
          ProbeCause::batch_composition,
          fmt::format(
              "replica {}: alone {} answers were the same; with {} requests in flight {} of {} "
              "answers are unique and differ from it{}",
              group.replica, alone->answered, group.concurrency, group.unique, group.answered,
              first_parting_from(*alone, group)));
      leave_open("a load balancer that sends requests to other machines only under load");
      leave_open("an answer cache that hid drift while we asked one at a time");
      return true;
    }
    return false;
  }

  void nothing_seen() {
    conclude(ProbeCause::none_seen,
             "every answer is the same, alone and together, on every replica");
    leave_open("differences rarer than one in the number of samples taken");
    leave_open("an answer cache in front of the server");
    leave_open("batches larger than the requests that were in flight");
  }

  static std::string parting(const Response& a, const Response& b) {
    const auto c = compare_responses(a, 0, b, 0);
    return c.divergence ? "; " + c.verdict : std::string();
  }
  static std::string first_parting(const ProbeGroup& group) {
    for (std::size_t i = 1; i < group.responses.size(); ++i) {
      const std::string text = parting(group.responses[0], group.responses[i]);
      if (!text.empty()) return text;
    }
    return {};
  }
  static std::string first_parting_from(const ProbeGroup& alone, const ProbeGroup& group) {
    for (const Response& response : group.responses) {
      const std::string text = parting(alone.responses[0], response);
      if (!text.empty()) return text;
    }
    return {};
  }

  ProbeReport& m_report;
  std::vector<const ProbeGroup*> m_alone;
};

void add_transport_findings(const std::vector<Exchange>& exchanges, ProbeReport& report) {
  std::map<std::string, std::int64_t> errors;
  std::set<std::string> given_up;
  std::int64_t retried = 0;
  for (const Exchange& exchange : exchanges) {
    given_up.insert(exchange.given_up.begin(), exchange.given_up.end());
    if (exchange.attempts > 1) ++retried;
    if (exchange.stage == ProbeStage::discovery) continue;
    if (!exchange.error.empty()) ++errors[exchange.error];
    if (exchange.error.empty() && exchange.status != 200) {
      ++errors[fmt::format("HTTP {}", exchange.status)];
    }
  }
  for (const auto& [error, count] : errors) {
    report.findings.push_back(
        make_finding("request_failed", Severity::warning,
                     fmt::format("{} request{} failed: {}", count, count == 1 ? "" : "s",
                                 escape_for_display(error)),
                     Json{{"count", count}}));
  }
  for (const std::string& field : given_up) {
    report.findings.push_back(
        make_finding("field_refused", Severity::notice,
                     fmt::format("The server refuses {}; the request was made without it",
                                 escape_for_display(field)),
                     Json{{"field", field}}));
  }
  if (retried > 0) {
    report.findings.push_back(make_finding(
        "retried", Severity::info, fmt::format("{} requests needed more than one attempt", retried),
        Json{{"count", retried}}));
  }
}

}  // namespace

std::string_view name_of(ProbeCause cause) {
  constexpr std::array<std::string_view, 8> kNames{
      "none_seen", "sampling",          "hidden_backends", "version",
      "replica",   "batch_composition", "unstable_alone",  "not_enough"};
  return kNames[static_cast<std::size_t>(cause)];
}

ProbeReport climb_ladder(const std::vector<Exchange>& exchanges) {
  ProbeReport report;
  report.groups = group_exchanges(exchanges);
  Ladder(report).climb();
  add_transport_findings(exchanges, report);
  return report;
}

std::string probe_text(const ProbeReport& report) {
  std::string out = fmt::format("{}: {}\n", name_of(report.cause), report.sentence);
  for (const std::string& rung : report.rungs) out += fmt::format("  {}\n", rung);
  if (!report.not_ruled_out.empty()) out += "not ruled out:\n";
  for (const std::string& open : report.not_ruled_out) out += fmt::format("  {}\n", open);
  for (const Finding& finding : report.findings) {
    out += fmt::format("  {:<8} {}  [{}]\n", name_of(finding.severity), finding.text, finding.id);
  }
  return out;
}

std::string probe_json(const ProbeReport& report) {
  Json groups = Json::array();
  for (const ProbeGroup& group : report.groups) {
    groups.push_back({{"stage", std::string(name_of(group.stage))},
                      {"replica", group.replica},
                      {"concurrency", group.concurrency},
                      {"asked", group.asked},
                      {"answered", group.answered},
                      {"failed", group.failed},
                      {"unique", group.unique}});
  }
  Json findings = Json::array();
  for (const Finding& finding : report.findings) {
    findings.push_back({{"id", finding.id},
                        {"severity", std::string(name_of(finding.severity))},
                        {"text", finding.text}});
  }
  const Json document{{"cause", std::string(name_of(report.cause))},
                      {"sentence", report.sentence},
                      {"not_ruled_out", report.not_ruled_out},
                      {"groups", groups},
                      {"findings", findings}};
  return document.dump(2) + "\n";
}

}  // namespace driftscope
