// SPDX-License-Identifier: Apache-2.0
#include "analysis/capture/padded_copy.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

namespace driftscope {
namespace fs = std::filesystem;

std::optional<std::uint64_t> stated_length(const fs::path& file) {
  constexpr std::string_view kSignature{"\x89HDF\r\n\x1a\n", 8};
  constexpr std::size_t kVersion = 8;
  constexpr std::size_t kOffsetSize = 9;
  constexpr std::size_t kEndOfFile = 28;
  std::array<unsigned char, kEndOfFile + 8> header{};
  std::ifstream stream(file, std::ios::binary);
  if (!stream.read(reinterpret_cast<char*>(header.data()), header.size())) return std::nullopt;
  if (std::memcmp(header.data(), kSignature.data(), kSignature.size()) != 0) return std::nullopt;
  if (header[kVersion] < 2 || header[kVersion] > 3 || header[kOffsetSize] != 8) return std::nullopt;
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    length |= std::uint64_t{header[kEndOfFile + i]} << (8U * static_cast<unsigned>(i));
  }
  return length;
}

Result<PaddedCopy> PaddedCopy::make(const fs::path& file, const fs::path& place) {
  std::error_code code;
  const std::uintmax_t size = fs::file_size(file, code);
  const auto length = stated_length(file);
  // A header that states far more than is there is damaged itself: no terabytes of zeros from it.
  constexpr std::uint64_t kMostMissing = std::uint64_t{64} << 30U;
  if (code || !length || *length <= size || *length - size > kMostMissing) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: nothing can be recovered: it cannot be read, and not because its "
                            "end is missing; look for another copy",
                            file.string()));
  }
  PaddedCopy copy(place);
  if (!fs::copy_file(file, place, code) || code) {
    return fail(ErrorKind::output,
                fmt::format("{}: cannot write: {}", place.string(), code.message()));
  }
  fs::resize_file(place, *length, code);
  if (code) {
    return fail(ErrorKind::output,
                fmt::format("{}: cannot write: {}", place.string(), code.message()));
  }
  return copy;
}

PaddedCopy::~PaddedCopy() {
  std::error_code ignored;
  if (!m_path.empty()) fs::remove(m_path, ignored);
}

PaddedCopy::PaddedCopy(PaddedCopy&& other) noexcept
    : m_path(std::exchange(other.m_path, fs::path{})) {}

}  // namespace driftscope
