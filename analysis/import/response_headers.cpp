// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/response_headers.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>

namespace driftscope {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// What must never leave this file: a saved exchange may hold the caller's key.
bool is_secret(std::string_view name) {
  const auto holds = [&](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  };
  return holds("authorization") || holds("cookie") || holds("api-key") || holds("apikey") ||
         holds("secret") || name.ends_with("token");
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::string_view next_line(std::string_view text, std::size_t& at) {
  const std::size_t end = std::min(text.find('\n', at), text.size());
  std::string_view line = text.substr(at, end - at);
  at = std::min(end + 1, text.size());
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

void add_header(HeaderBlock& block, std::string_view name, std::string_view value) {
  const std::string key = lower(trimmed(name));
  if (key.empty() || is_secret(key)) return;
  block.headers.push_back({key, std::string(trimmed(value))});
}

HeaderBlock take_headers(std::string_view& text) {
  HeaderBlock block;
  while (text.starts_with("HTTP/")) {
    block = {};
    std::size_t at = 0;
    const std::string_view first = next_line(text, at);
    const std::size_t space = first.find(' ');
    std::int64_t status = 0;
    if (space != std::string_view::npos &&
        std::from_chars(first.data() + space + 1, first.data() + first.size(), status).ec ==
            std::errc{}) {
      block.status = status;
    }
    while (at < text.size()) {
      const std::string_view line = next_line(text, at);
      if (line.empty()) break;
      const std::size_t colon = line.find(':');
      if (colon != std::string_view::npos) {
        add_header(block, line.substr(0, colon), line.substr(colon + 1));
      }
    }
    text.remove_prefix(at);
  }
  return block;
}

void apply(const HeaderBlock& block, Response& response) {
  if (block.status) response.http_status = block.status;
  response.headers.insert(response.headers.end(), block.headers.begin(), block.headers.end());
  struct Row {
    std::string_view header;
    std::string Response::*field;
  };
  static constexpr Row kRows[] = {{"x-request-id", &Response::request_id},
                                  {"request-id", &Response::request_id},
                                  {"apim-request-id", &Response::request_id},
                                  {"x-ms-region", &Response::region}};
  for (const ResponseHeader& header : block.headers) {
    for (const Row& row : kRows) {
      if (header.name == row.header && (response.*row.field).empty()) {
        response.*row.field = header.value;
      }
    }
  }
}

}  // namespace driftscope
