// SPDX-License-Identifier: Apache-2.0
#include "analysis/probe/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>

#include "analysis/import/response_file.h"
#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string to_base64(std::string_view bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t word = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      word = (word << 8U) | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      out += j <= count ? kAlphabet[(word >> (18U - 6U * j)) & 63U] : '=';
    }
  }
  return out;
}

std::string from_base64(std::string_view text) {
  std::string out;
  std::uint32_t word = 0;
  unsigned bits = 0;
  for (const char c : text) {
    const std::size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) break;
    word = (word << 6U) | static_cast<std::uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    out += static_cast<char>((word >> bits) & 255U);
  }
  return out;
}

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

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// Whatever the case of the letters.
void replace_all(std::string& text, std::string_view what) {
  constexpr std::string_view kMark = "[key]";
  const auto same = [](char a, char b) { return lower(a) == lower(b); };
  auto at = std::search(text.begin(), text.end(), what.begin(), what.end(), same);
  while (at != text.end()) {
    const auto place = at - text.begin();
    text.replace(static_cast<std::size_t>(place), what.size(), kMark);
    at = std::search(text.begin() + place + static_cast<std::ptrdiff_t>(kMark.size()), text.end(),
                     what.begin(), what.end(), same);
  }
}

std::string percent_encoded(std::string_view text, bool upper) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
                       (byte >= 'a' && byte <= 'z') || c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += upper ? fmt::format("%{:02X}", byte) : fmt::format("%{:02x}", byte);
    }
  }
  return out;
}

// Every byte in that form: "%41", "\\u0041", "41".
std::string byte_by_byte(std::string_view text, std::string_view before) {
  std::string out;
  for (const char c : text) out += fmt::format("{}{:02x}", before, static_cast<unsigned char>(c));
  return out;
}

// The characters that any text gets in base64 wherever it stands in a longer one: those that the
// bytes around it share are cut off.
std::string base64_at(std::string_view text, std::size_t offset) {
  const std::string coded = to_base64(std::string(offset, 'x') + std::string(text));
  const std::size_t begin = offset == 0 ? 0 : offset + 1;
  const std::size_t whole = (offset + text.size()) * 8 / 6;
  return coded.substr(begin, whole - begin);
}

// Longest first, so that no rest of one spelling is left by another.
std::vector<std::string> spellings_of(const std::string& secret) {
  std::string quoted = Json(secret).dump(-1, ' ', true, Json::error_handler_t::replace);
  quoted = quoted.substr(1, quoted.size() - 2);
  std::string slashes;
  for (const char c : quoted) slashes += c == '/' ? std::string("\\/") : std::string(1, c);
  std::vector<std::string> list{secret,
                                quoted,
                                slashes,
                                percent_encoded(secret, true),
                                percent_encoded(secret, false),
                                byte_by_byte(secret, "%"),
                                byte_by_byte(secret, "\\u00"),
                                byte_by_byte(secret, ""),
                                to_base64(secret),
                                base64_at(secret, 0),
                                base64_at(secret, 1),
                                base64_at(secret, 2)};
  std::sort(list.begin(), list.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  });
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
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
  for (const std::string& secret : secrets) {
    if (secret.empty()) continue;
    for (const std::string& spelling : spellings_of(secret)) {
      replace_all(exchange.body, spelling);
      replace_all(exchange.error, spelling);
      replace_all(exchange.url, spelling);
      replace_all(exchange.request, spelling);
      for (auto& [name, value] : exchange.headers) {
        replace_all(name, spelling);
        replace_all(value, spelling);
      }
    }
  }
}

}  // namespace driftscope
