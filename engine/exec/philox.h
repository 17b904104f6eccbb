// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10, a counter-based random number generator (Salmon, Moraes, Dror, Shaw: "Parallel
// random numbers: as easy as 1, 2, 3", SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace driftscope {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

// Four random words, a function of counter and key alone.
[[nodiscard]] constexpr PhiloxCounter philox4x32_10(PhiloxCounter counter, PhiloxKey key) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53U;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57U;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9U;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85U;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32U) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32U) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

// Uniform in [0, 1), a multiple of 2^-53, for draw `step` of the request with this seed.
[[nodiscard]] constexpr double philox_uniform(std::uint64_t seed, std::uint64_t step) {
  const PhiloxCounter words = philox4x32_10(
      {static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32U), 0, 0},
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)});
  const std::uint64_t bits = (std::uint64_t{words[0]} << 21U) | (words[1] >> 11U);
  return static_cast<double>(bits) * 0x1.0p-53;
}

// Uniform in (0, 1), an odd multiple of 2^-53, for one token of that draw. Its counters differ from
// those of philox_uniform().
[[nodiscard]] constexpr double philox_token_uniform(std::uint64_t seed, std::uint64_t step,
                                                    std::uint32_t token) {
  const PhiloxCounter words = philox4x32_10(
      {static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32U), token, 1},
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)});
  const std::uint64_t bits = (std::uint64_t{words[0]} << 20U) | (words[1] >> 12U);
  return static_cast<double>(2 * bits + 1) * 0x1.0p-53;
}

}  // namespace driftscope
