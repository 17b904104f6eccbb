// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analysis/probe/probe_events.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

Json groups_json(const ProbeReport& report) {
  Json groups = Json::array();
  for (const ProbeGroup& group : report.groups) {
    Json entry = Json::object();
    entry["stage"] = std::string(name_of(group.stage));
    entry["replica"] = group.replica;
    entry["concurrency"] = group.concurrency;
    entry["asked"] = group.asked;
    entry["answered"] = group.answered;
    entry["failed"] = group.failed;
    entry["unique"] = group.unique;
    entry["unique_numbers"] = group.unique_numbers;
    groups.push_back(std::move(entry));
  }
  return groups;
}

Json report_json(const ProbeReport& report) {
  Json document = Json::object();
  document["cause"] = std::string(name_of(report.cause));
  document["numbers_only"] = report.numbers_only;
  document["sentence"] = report.sentence;
  document["not_ruled_out"] = report.not_ruled_out;
  document["groups"] = groups_json(report);
  Json versions = Json::array();
  for (const ProbeVersion& version : report.versions) {
    Json entry = Json::object();
    entry["replica"] = version.replica;
    entry["field"] = version.field;
    entry["value"] = version.value;
    versions.push_back(std::move(entry));
  }
  document["versions"] = std::move(versions);
  Json findings = Json::array();
  for (const Finding& finding : report.findings) {
    Json entry = Json::object();
    entry["id"] = finding.id;
    entry["severity"] = std::string(name_of(finding.severity));
    entry["text"] = finding.text;
    findings.push_back(std::move(entry));
  }
  document["findings"] = std::move(findings);
  return document;
}

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string probe_text(const ProbeReport& report) {
  std::string out = fmt::format("{}{}: {}\n", name_of(report.cause),
                                report.numbers_only ? " (numbers only)" : "", report.sentence);
  for (const std::string& rung : report.rungs) out += fmt::format("  {}\n", rung);
  if (!report.not_ruled_out.empty()) out += "not ruled out:\n";
  for (const std::string& open : report.not_ruled_out) out += fmt::format("  {}\n", open);
  for (const Finding& finding : report.findings) {
    out += fmt::format("  {:<8} {}  [{}]\n", name_of(finding.severity), finding.text, finding.id);
  }
  return out;
}

std::string probe_json(const ProbeReport& report) {
  return report_json(report).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string probe_started_event(const std::vector<std::string>& endpoints, std::int64_t total) {
  Json event = Json::object();
  event["event"] = "started";
  event["version"] = 1;
  event["command"] = "probe";
  event["endpoints"] = endpoints;
  event["total"] = total;
  return line_of(event);
}

std::string exchange_event(const Exchange& exchange) {
  Json event = Json::object();
  event["event"] = "exchange";
  event["stage"] = std::string(name_of(exchange.stage));
  event["replica"] = exchange.replica;
  event["concurrency"] = exchange.concurrency;
  event["index"] = exchange.index;
  event["status"] = exchange.status;
  event["attempts"] = exchange.attempts;
  event["seconds"] = exchange.seconds;
  event["error"] = exchange.error;
  return line_of(event);
}

std::string probe_done_event(const ProbeReport& report, int exit_code) {
  Json event = Json::object();
  event["event"] = "done";
  event["exit_code"] = exit_code;
  event["report"] = report_json(report);
  return line_of(event);
}

}  // namespace driftscope
