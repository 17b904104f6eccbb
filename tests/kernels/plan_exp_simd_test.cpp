// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>

#include "kernels/base/isa.h"
#include "kernels/plan/portable_math.h"
#include "tests/kernels/plan_exp_vectors.h"

#if defined(__x86_64__)
namespace driftscope {
namespace {

// All bit patterns at a stride that no power of two divides: both signs, subnormals, infinities,
// NaN.
template <std::size_t Width>
void expect_scalar_bits(void (*vector)(const float*, float*)) {
  constexpr std::uint32_t kStride = 104729;
  std::array<float, Width> x{};
  std::array<float, Width> y{};
  std::uint64_t next = 0;
  while (next < (std::uint64_t{1} << 32U)) {
    for (float& value : x) {
      value = std::bit_cast<float>(static_cast<std::uint32_t>(next));
      next += kStride / Width;
    }
    vector(x.data(), y.data());
    for (std::size_t i = 0; i < Width; ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(y[i]),
                std::bit_cast<std::uint32_t>(portable::exp(x[i])))
          << std::hex << std::bit_cast<std::uint32_t>(x[i]);
    }
  }
}

TEST(PortableExpSimd, Avx2GivesTheScalarBits) {
  if (!isa_supported(Isa::avx2)) GTEST_SKIP() << "this CPU has no AVX2";
  expect_scalar_bits<8>(test::exp_vector_avx2);
}

TEST(PortableExpSimd, Avx512GivesTheScalarBits) {
  if (!isa_supported(Isa::avx512)) GTEST_SKIP() << "this CPU has no AVX-512";
  expect_scalar_bits<16>(test::exp_vector_avx512);
}

}  // namespace
}  // namespace driftscope
#endif
