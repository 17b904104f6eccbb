// SPDX-License-Identifier: Apache-2.0
#include "analysis/capture/crc32c.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <vector>

namespace driftscope {
namespace {

// RFC 3720, appendix B.4.
TEST(Crc32c, GivesTheValuesOfRfc3720) {
  const std::array<unsigned char, 32> zeros{};
  std::array<unsigned char, 32> ones{};
  ones.fill(0xFF);
  std::array<unsigned char, 32> rising{};
  std::iota(rising.begin(), rising.end(), static_cast<unsigned char>(0));
  const std::array<unsigned char, 32> falling = [&rising] {
    auto copy = rising;
    std::reverse(copy.begin(), copy.end());
    return copy;
  }();
  for (const auto function : {crc32c, crc32c_portable}) {
    EXPECT_EQ(function(zeros.data(), zeros.size(), 0), 0x8A9136AAU);
    EXPECT_EQ(function(ones.data(), ones.size(), 0), 0x62A8AB43U);
    EXPECT_EQ(function(rising.data(), rising.size(), 0), 0x46DD794EU);
    EXPECT_EQ(function(falling.data(), falling.size(), 0), 0x113FDB5CU);
    EXPECT_EQ(function("123456789", 9, 0), 0xE3069283U);
    EXPECT_EQ(function(nullptr, 0, 0), 0U);
  }
}

TEST(Crc32c, InstructionAndTableAgreeAtEveryLengthAndSplit) {
  std::vector<unsigned char> bytes(67);
  std::uint32_t state = 1;
  for (auto& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<unsigned char>(state >> 24U);
  }
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    const std::uint32_t whole = crc32c_portable(bytes.data(), size);
    EXPECT_EQ(crc32c(bytes.data(), size), whole) << size;
    for (std::size_t split = 0; split <= size; split += 5) {
      const std::uint32_t front = crc32c(bytes.data(), split);
      EXPECT_EQ(crc32c(bytes.data() + split, size - split, front), whole) << size << " " << split;
    }
  }
}

}  // namespace
}  // namespace driftscope
