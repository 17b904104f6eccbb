// SPDX-License-Identifier: Apache-2.0
#include "analysis/probe/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "analysis/import/response_file.h"
#include "analysis/probe/base64.h"
#include "analysis/probe/redaction.h"
#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

void put_bytes(Json& json, const std::string& name, const std::string& bytes) {
  if (find_invalid_utf8(bytes) == std::string::npos) {
    json[name] = bytes;
  } else {
    json[name + "_base64"] = to_base64(bytes);
  }
}

std::string get_bytes(const Json& json, const std::string& name) {
  if (json.contains(name + "_base64"))
    return from_base64(json[name + "_base64"].get<std::string>());
  return json.value(name, std::string());
}

}  // namespace

std::string_view name_of(ProbeStage stage) {
  constexpr std::array<std::string_view, 4> kNames{"discovery", "alone", "together", "across"};
  return kNames[static_cast<std::size_t>(stage)];
}

std::optional<ProbeStage> probe_stage_from_name(std::string_view name) {
  for (const ProbeStage stage :
       {ProbeStage::discovery, ProbeStage::alone, ProbeStage::together, ProbeStage::across}) {
    if (name_of(stage) == name) return stage;
  }
  return std::nullopt;
}

std::string Exchange::key() const {
  return fmt::format("{} {} {} {} {}", name_of(stage), replica, concurrency, index, url);
}

std::string exchange_line(const Exchange& exchange) {
  Json headers = Json::array();
  for (const auto& [name, value] : exchange.headers) {
    Json pair = Json::array({name});
    pair.push_back(find_invalid_utf8(value) == std::string::npos ? value : to_base64(value));
    headers.push_back(std::move(pair));
  }
  Json json{{"stage", std::string(name_of(exchange.stage))},
            {"replica", exchange.replica},
            {"concurrency", exchange.concurrency},
            {"index", exchange.index},
            {"url", exchange.url},
            {"request", exchange.request},
            {"status", exchange.status},
            {"attempts", exchange.attempts},
            {"seconds", exchange.seconds},
            {"given_up", exchange.given_up},
            {"error", exchange.error},
            {"headers", headers}};
  put_bytes(json, "body", exchange.body);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Exchange> read_exchange(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object())
    return fail(ErrorKind::malformed, "a line of the probe's file is no JSON object");
  try {
    Exchange exchange;
    const auto stage = probe_stage_from_name(json.at("stage").get<std::string>());
    if (!stage)
      return fail(ErrorKind::malformed, "a line of the probe's file has an unknown stage");
    exchange.stage = *stage;
    exchange.replica = json.at("replica").get<std::int64_t>();
    exchange.concurrency = json.at("concurrency").get<std::int64_t>();
    exchange.index = json.at("index").get<std::int64_t>();
    exchange.url = json.at("url").get<std::string>();
    exchange.request = json.value("request", std::string());
    exchange.status = json.at("status").get<std::int64_t>();
    exchange.attempts = json.value("attempts", std::int64_t{1});
    exchange.seconds = json.value("seconds", 0.0);
    exchange.error = json.value("error", std::string());
    exchange.given_up = json.value("given_up", std::vector<std::string>());
    for (const Json& pair : json.at("headers")) {
      exchange.headers.emplace_back(pair.at(0).get<std::string>(), pair.at(1).get<std::string>());
    }
    exchange.body = get_bytes(json, "body");
    return exchange;
  } catch (const Json::exception& problem) {
    return fail(
        ErrorKind::malformed,
        fmt::format("a line of the probe's file lacks a field or has it in another type ({})",
                    problem.what()));
  }
}

bool holds_answer(const Exchange& exchange) {
  if (!exchange.error.empty()) return false;
  // That a server does not know a route is what it says of itself.
  if (exchange.stage == ProbeStage::discovery)
    return exchange.status == 200 || exchange.status == 404;
  if (exchange.status != 200) return false;
  const auto responses = read_responses(exchange.body, "answer");
  return responses && !responses->empty() && responses->front().error.empty() &&
         !responses->front().choices.empty();
}

void redact(Exchange& exchange, const std::vector<std::string>& secrets) {
  constexpr std::array<std::string_view, 3> kDropped{"set-cookie", "authorization",
                                                     "proxy-authenticate"};
  std::erase_if(exchange.headers, [&](const auto& header) {
    return std::find(kDropped.begin(), kDropped.end(), header.first) != kDropped.end();
  });
  for (std::string* text : {&exchange.body, &exchange.error, &exchange.url, &exchange.request}) {
    redact_text(*text, secrets);
  }
  for (auto& [name, value] : exchange.headers) {
    redact_text(name, secrets);
    redact_text(value, secrets);
  }
}

}  // namespace driftscope
