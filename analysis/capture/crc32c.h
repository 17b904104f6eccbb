// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78, initial value and final XOR 0xFFFFFFFF; RFC
// 3720 appendix B.4): the check value stored beside every row of a capture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace driftscope {

// The check value of `size` bytes. `previous` is the check value of the bytes before them (0:
// none).
[[nodiscard]] std::uint32_t crc32c(const void* data, std::size_t size, std::uint32_t previous = 0);
// The same from a table, without instructions that not every CPU has.
[[nodiscard]] std::uint32_t crc32c_portable(const void* data, std::size_t size,
                                            std::uint32_t previous = 0);

template <class T>
[[nodiscard]] std::uint32_t crc32c_of(std::span<const T> values, std::uint32_t previous = 0) {
  return crc32c(values.data(), values.size_bytes(), previous);
}

}  // namespace driftscope
