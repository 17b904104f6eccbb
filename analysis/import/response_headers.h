// SPDX-License-Identifier: Apache-2.0
// HTTP headers that were saved along with an answer. Internal to analysis/import.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/import/response.h"

namespace driftscope {

struct HeaderBlock {
  std::optional<std::int64_t> status;
  std::vector<ResponseHeader> headers;
};

[[nodiscard]] std::string_view trimmed(std::string_view text);
// The line at `at`, without its end; moves `at` behind it.
[[nodiscard]] std::string_view next_line(std::string_view text, std::size_t& at);

// Keeps a header under its lower-case name, unless it may hold a credential.
void add_header(HeaderBlock& block, std::string_view name, std::string_view value);
// Takes the blocks of "curl -i" off the front; the last one counts (redirects, 100 Continue).
[[nodiscard]] HeaderBlock take_headers(std::string_view& text);
void apply(const HeaderBlock& block, Response& response);

}  // namespace driftscope
