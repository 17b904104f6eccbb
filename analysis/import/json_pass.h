// SPDX-License-Identifier: Apache-2.0
// Passes over a list whose elements nobody wants to read. Internal to analysis/import.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace driftscope {

struct PassedList {
  std::size_t end = 0;         // behind the list's bracket
  std::uint32_t elements = 0;  // 1 or more
};

// The list at `begin`, which is at its bracket. Empty for an empty list and for everything that is
// not plain, strict JSON (literal NaN, duplicate keys, control characters, bytes that are no UTF-8,
// lone surrogates, errors, deep nesting): the parser has to look at that and to say what it is.
[[nodiscard]] std::optional<PassedList> pass_list(std::string_view text, std::size_t begin);

}  // namespace driftscope
