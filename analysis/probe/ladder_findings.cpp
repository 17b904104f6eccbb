// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "analysis/compare/findings.h"
#include "analysis/probe/ladder_parts.h"
#include "analysis/responses/response_overview.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

void add(ProbeReport& report, std::string id, Severity severity, std::string text,
         const Json& evidence) {
  report.findings.push_back(make_finding(std::move(id), severity, std::move(text), evidence));
}

bool is_markup(std::string_view body) {
  const std::size_t begin = body.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && body[begin] == '<';
}

void add_failures(const std::vector<Exchange>& exchanges, ProbeReport& report) {
  std::map<std::string, std::int64_t> errors;
  for (const Exchange& exchange : exchanges) {
    if (exchange.stage == ProbeStage::discovery) continue;
    if (!exchange.error.empty()) ++errors[exchange.error];
    if (exchange.error.empty() && exchange.status != 200)
      ++errors[fmt::format("HTTP {}{}", exchange.status,
                           is_markup(exchange.body) ? ", with a page of HTML" : "")];
  }
  std::int64_t failed = 0;
  for (const ProbeGroup& group : report.groups) failed += group.failed;
  for (const auto& [error, count] : errors) {
    failed -= count;
    add(report, "request_failed", Severity::warning,
        fmt::format("{} request{} failed: {}", count, count == 1 ? "" : "s",
                    escape_for_display(error)),
        Json{{"count", count}});
  }
  if (failed > 0) {
    add(report, "no_answer", Severity::warning,
        fmt::format("{} answer{} arrived but could not be read as a whole answer (a cut stream, an "
                    "error in the body, or no known format); see them with driftscope vendor",
                    failed, failed == 1 ? "" : "s"),
        Json{{"count", failed}});
  }
}

void add_concessions(const std::vector<Exchange>& exchanges, ProbeReport& report) {
  std::set<std::string> given_up;
  std::int64_t retried = 0;
  for (const Exchange& exchange : exchanges) {
    given_up.insert(exchange.given_up.begin(), exchange.given_up.end());
    if (exchange.attempts > 1) ++retried;
  }
  for (const std::string& field : given_up) {
    add(report, "field_refused", Severity::notice,
        fmt::format("The server refuses {}; the request was made without it",
                    escape_for_display(field)),
        Json{{"field", field}});
  }
  if (retried > 0) {
    add(report, "retried", Severity::info,
        fmt::format("{} requests needed more than one attempt", retried), Json{{"count", retried}});
  }
}

// Versions that change behind one URL and go with the same text.
void add_versions(ProbeReport& report) {
  for (const ProbeGroup& group : report.groups) {
    std::set<std::string> versions;
    for (const Response& response : group.responses) versions.insert(version_of(response));
    if (versions.size() < 2) continue;
    add(report, "several_versions", Severity::notice,
        fmt::format("{} answered as several versions ({}), with {} different text{}",
                    name_of(group),
                    escape_for_display(fmt::format("{}", fmt::join(versions, "; "))), group.unique,
                    group.unique == 1 ? "" : "s"),
        Json{{"versions", versions}});
  }
  std::map<std::string, std::map<std::string, std::vector<std::int64_t>>> fields;
  for (const ProbeVersion& version : report.versions)
    fields[version.field][version.value].push_back(version.replica);
  for (const auto& [field, values] : fields) {
    if (values.size() < 2) continue;
    std::string text = fmt::format("The replicas differ in {}:", field);
    for (const auto& [value, replicas] : values)
      text += fmt::format(" \"{}\" ({})", escape_for_display(value), fmt::join(replicas, ", "));
    add(report, "replicas_differ_in_version", Severity::notice, text, Json{{"field", field}});
  }
}

void add_movement(ProbeReport& report) {
  for (const ProbeGroup& group : report.groups) {
    if (group.unique_numbers <= group.unique || report.numbers_only) continue;
    add(report, "logprobs_move", Severity::notice,
        fmt::format("{}: {} different texts, but {} different sets of logprobs", name_of(group),
                    group.unique, group.unique_numbers),
        Json{{"texts", group.unique}, {"numbers", group.unique_numbers}});
  }
}

// What is odd about the numbers themselves, once for all answers.
void add_oddities(ProbeReport& report) {
  std::vector<const Response*> responses;
  for (const ProbeGroup& group : report.groups) {
    for (const Response& response : group.responses) responses.push_back(&response);
  }
  for (Finding& finding : common_findings(responses)) report.findings.push_back(std::move(finding));
}

}  // namespace

void add_probe_findings(const std::vector<Exchange>& exchanges, ProbeReport& report) {
  add_failures(exchanges, report);
  add_concessions(exchanges, report);
  add_versions(report);
  add_movement(report);
  add_oddities(report);
}

}  // namespace driftscope
