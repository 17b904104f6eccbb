// SPDX-License-Identifier: Apache-2.0
// Constants of the f32 tanh and erf, shared by their scalar, vector and device forms. Coefficients
// interpolate at Chebyshev nodes.
//
// Both are odd: the value at a = |x|, with z = x², and then the sign of x.
// tanh:
//   a < kTanhSplit:  p interpolates (tanh(a)/a - 1) / z in z;  fma(p·z, a, a)
//   else:            1 - 2 / (exp(2a) + 1)
// erf:
//   a < kErfSplit:   p interpolates erf(a)/a - 1 in z;  fma(p, a, a)
//   else:            with t = min(a, kErfHighest), q interpolates log(1 - erf(t)) / t in t;
//                    1 - exp(q·t). From kErfHighest on that is 1 exactly.
// Every polynomial by Horner, one fma a step. Both forms are computed and one is taken; NaN stays
// NaN, -0 stays -0.
#pragma once

namespace driftscope::portable {

inline constexpr float kTanhSplit = 0.625F;
inline constexpr float kTanhP[6] = {-0x1.555556p-2F, 0x1.1110eap-3F,  -0x1.ba08c4p-5F,
                                    0x1.64a976p-6F,  -0x1.116a16p-7F, 0x1.2c83c0p-9F};

inline constexpr float kErfSplit = 0.9375F;
inline constexpr float kErfHighest = 4.0F;
inline constexpr float kErfP[7] = {0x1.06eba8p-3F,  -0x1.812742p-2F, 0x1.ce2e00p-4F,
                                   -0x1.b80da6p-6F, 0x1.54be16p-8F,  -0x1.a9e08ap-11F,
                                   0x1.5b8862p-14F};
inline constexpr float kErfQ[7] = {-0x1.20f030p+0F, -0x1.4521d4p-1F, -0x1.b461d6p-4F,
                                   0x1.8aad12p-6F,  -0x1.f51182p-9F, 0x1.8614a0p-12F,
                                   -0x1.14b91ap-16F};

}  // namespace driftscope::portable
