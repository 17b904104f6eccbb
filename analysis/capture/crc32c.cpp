// SPDX-License-Identifier: Apache-2.0
#include "analysis/capture/crc32c.h"

#include <array>
#include <cstring>

namespace driftscope {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78U;
constexpr std::size_t kSlices = 8;

using SliceTables = std::array<std::array<std::uint32_t, 256>, kSlices>;

// Table s holds the effect of a byte that is followed by s zero bytes, so that eight bytes are
// folded at once ("slicing by 8").
constexpr SliceTables make_tables() {
  SliceTables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit) {
      remainder = (remainder >> 1U) ^ ((remainder & 1U) != 0 ? kPolynomial : 0U);
    }
    tables[0][byte] = remainder;
  }
  for (std::size_t s = 1; s < kSlices; ++s) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[s - 1][byte];
      tables[s][byte] = (before >> 8U) ^ tables[0][before & 0xFFU];
    }
  }
  return tables;
}
constexpr SliceTables kTables = make_tables();

std::uint32_t fold_byte(std::uint32_t state, unsigned char byte) {
  return (state >> 8U) ^ kTables[0][(state ^ byte) & 0xFFU];
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t fold_sse42(const unsigned char* bytes,
                                                           std::size_t size, std::uint32_t state) {
  std::uint64_t wide = state;
  for (; size >= 8; size -= 8, bytes += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  auto narrow = static_cast<std::uint32_t>(wide);
  for (; size > 0; --size, ++bytes) narrow = __builtin_ia32_crc32qi(narrow, *bytes);
  return narrow;
}
#endif

}  // namespace

std::uint32_t crc32c_portable(const void* data, std::size_t size, std::uint32_t previous) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::uint32_t state = ~previous;
  for (; size >= kSlices; size -= kSlices, bytes += kSlices) {
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < kSlices; ++i) {
      const std::uint32_t carried = i < 4 ? (state >> (8U * i)) & 0xFFU : 0U;
      next ^= kTables[kSlices - 1 - i][(bytes[i] ^ carried) & 0xFFU];
    }
    state = next;
  }
  for (; size > 0; --size, ++bytes) state = fold_byte(state, *bytes);
  return ~state;
}

std::uint32_t crc32c(const void* data, std::size_t size, std::uint32_t previous) {
#if defined(__x86_64__)
  static const bool has_sse42 = __builtin_cpu_supports("sse4.2") != 0;
  if (has_sse42) return ~fold_sse42(static_cast<const unsigned char*>(data), size, ~previous);
#endif
  return crc32c_portable(data, size, previous);
}

}  // namespace driftscope
