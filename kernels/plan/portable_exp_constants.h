// SPDX-License-Identifier: Apache-2.0
// Constants of the f32 exponential, shared by its scalar, vector and device forms.
//
// x = n·ln 2 + r with n the nearest integer; exp(x) = 2^n · (1 + r + r²·q(r)). q interpolates
// (exp(r) - 1 - r) / r² at Chebyshev nodes of [-0.3467, 0.3467].
// Order of operations, which every form follows:
//   c = x > kExpHighest ? kExpHighest : x;  c = c < kExpLowest ? kExpLowest : c;   NaN stays
//   t = fma(c, kExpLog2E, kExpRound);  n = t - kExpRound
//   r = fma(n, -kExpLn2High, c);  r = fma(n, -kExpLn2Low, r)      the first is exact
//   q = kExpQ[5];  for i = 4 … 0: q = fma(q, r, kExpQ[i])
//   p = fma(q, r, 1);  y = fma(p, r, 1)
//   result y · 2^n rounded once (as y · 2^floor(n/2) · 2^ceil(n/2): the first product is exact)
#pragma once

namespace driftscope::portable {

inline constexpr float kExpHighest = 89.0F;   // exp overflows to infinity
inline constexpr float kExpLowest = -105.0F;  // exp is below half the least subnormal: 0
inline constexpr float kExpLog2E = 0x1.715476p+0F;
inline constexpr float kExpRound = 0x1.8p+23F;      // adding it rounds to an integer
inline constexpr float kExpLn2High = 0x1.62e4p-1F;  // 15 bits, so n times it is exact
inline constexpr float kExpLn2Low = 0x1.7f7d1cp-20F;
inline constexpr float kExpQ[6] = {0.5F,           0x1.555556p-3F,  0x1.5554e8p-5F,
                                   0x1.1110e0p-7F, 0x1.6d4342p-10F, 0x1.a1250cp-13F};

}  // namespace driftscope::portable
