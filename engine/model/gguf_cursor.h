// SPDX-License-Identifier: Apache-2.0
// Reads numbers and strings of a GGUF file in turn and never beyond its end.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "kernels/base/result.h"

// Numbers are copied as they lie in the file, which is little-endian.
static_assert(std::endian::native == std::endian::little);

namespace driftscope {

// After the first failure every read gives zero or nothing, and the failure stays.
class GgufCursor {
 public:
  GgufCursor(std::string_view file, std::string_view name) : m_file(file), m_name(name) {}

  [[nodiscard]] std::uint64_t offset() const { return m_offset; }
  [[nodiscard]] std::uint64_t rest() const { return m_file.size() - m_offset; }
  [[nodiscard]] bool good() const { return m_reason.empty(); }

  // `what` is named in the message: "the number of tensors".
  template <class T>
  [[nodiscard]] T number(std::string_view what) {
    T value{};
    const std::string_view bytes = take(sizeof(T), what);
    if (good()) std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }

  [[nodiscard]] std::string_view text(std::string_view what) {
    const std::uint64_t at = m_offset;
    const auto length = number<std::uint64_t>(what);
    if (good() && length > rest()) {
      refuse(fmt::format("{} at byte {} is {} bytes long, but only {} bytes follow", what, at,
                         length, rest()));
    }
    return take(length, what);
  }

  [[nodiscard]] std::string_view take(std::uint64_t bytes, std::string_view what) {
    if (good() && bytes > rest()) {
      refuse(fmt::format("{} at byte {} needs {} bytes, but only {} follow: the file is cut short",
                         what, m_offset, bytes, rest()));
    }
    if (!good()) return {};
    const std::string_view taken = m_file.substr(m_offset, bytes);
    m_offset += bytes;
    return taken;
  }

  // The first reason stays.
  void refuse(std::string reason) {
    if (good()) m_reason = std::move(reason);
  }
  [[nodiscard]] tl::unexpected<Error> failure() const {
    return fail(ErrorKind::malformed,
                fmt::format("{}: {}; download or convert the file again", m_name, m_reason));
  }

 private:
  std::string_view m_file;
  std::string_view m_name;
  std::uint64_t m_offset = 0;
  std::string m_reason;
};

}  // namespace driftscope
