// SPDX-License-Identifier: Apache-2.0
// Internal to analysis/responses: the random numbers of permutations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace driftscope {

// SplitMix64 (Steele, Lea, Flood 2014): small, and the same on every machine.
class SplitMix {
 public:
  explicit SplitMix(std::uint64_t seed) : m_state(seed) {}
  std::uint64_t next() {
    m_state += 0x9E3779B97F4A7C15U;
    std::uint64_t z = m_state;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
  }
  // Uniform in [0, limit): values that would favour small results are drawn again.
  std::size_t below(std::size_t limit) {
    const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    const std::uint64_t fair = most - most % limit;
    std::uint64_t value = next();
    while (value >= fair) value = next();
    return static_cast<std::size_t>(value % limit);
  }

 private:
  std::uint64_t m_state;
};

}  // namespace driftscope
