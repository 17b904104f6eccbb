// SPDX-License-Identifier: Apache-2.0
// OCP 8-bit floating point E4M3 (OFP8 specification, revision 1.0): 1 sign, 4 exponent bits with
// bias 7, 3 fraction bits; subnormals in units of 2^-9; no infinity; 0x7f and 0xff are NaN; the
// largest value is 448.
#pragma once

#include <cstdint>

namespace driftscope {

inline constexpr float kE4m3Largest = 448.0F;

[[nodiscard]] float e4m3_to_float(std::uint8_t code);
// To nearest, ties to even; beyond ±448 (infinities too) saturates; every NaN becomes 0x7f.
[[nodiscard]] std::uint8_t e4m3_from_float(float value);

}  // namespace driftscope
