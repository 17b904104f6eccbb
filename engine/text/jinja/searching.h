// SPDX-License-Identifier: Apache-2.0
// Finding a text in another in linear time, whatever the two are.
#pragma once

#include <string.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace driftscope::jinja {

// As text.find(wanted, begin), which takes |text| * |wanted| at worst.
[[nodiscard]] inline std::size_t find_text(std::string_view text, std::string_view wanted,
                                           std::size_t begin = 0) {
  if (begin > text.size()) return std::string_view::npos;
  if (wanted.empty()) return begin;
  const void* found =
      ::memmem(text.data() + begin, text.size() - begin, wanted.data(), wanted.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

// As text.rfind(wanted).
[[nodiscard]] inline std::size_t find_last_text(std::string_view text, std::string_view wanted) {
  const std::string reversed(text.rbegin(), text.rend());
  const std::string reversed_wanted(wanted.rbegin(), wanted.rend());
  const std::size_t found = find_text(reversed, reversed_wanted);
  if (found == std::string_view::npos) return found;
  return text.size() - found - wanted.size();
}

}  // namespace driftscope::jinja
