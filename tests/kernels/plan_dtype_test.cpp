// SPDX-License-Identifier: Apache-2.0
#include "kernels/plan/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace driftscope {
namespace {

// A 16-bit format from its definition: sign, exponent bits with a bias, fraction bits. The value
// is built with ldexp in f64, which holds every f16 and bf16 exactly.
struct Format {
  int fraction_bits;
  int exponent_bits;
  [[nodiscard]] double value(std::uint16_t bits) const {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
    const int fraction = bits & ((1 << fraction_bits) - 1);
    const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
    if (exponent == (1 << exponent_bits) - 1) {
      return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                           : sign * std::numeric_limits<double>::infinity();
    }
    if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
    return sign * std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
  }
};
constexpr Format kF16{.fraction_bits = 10, .exponent_bits = 5};
constexpr Format kBf16{.fraction_bits = 7, .exponent_bits = 8};

float widen_one(Dtype dtype, std::uint16_t bits) {
  return dtype == Dtype::f16 ? f16_to_float(bits) : bf16_to_float(bits);
}
std::uint16_t narrow_one(Dtype dtype, float value) {
  return dtype == Dtype::f16 ? f16_from_float(value) : bf16_from_float(value);
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class HalfFormats : public testing::TestWithParam<Dtype> {
 protected:
  [[nodiscard]] static const Format& format() { return GetParam() == Dtype::f16 ? kF16 : kBf16; }
};
INSTANTIATE_TEST_SUITE_P(Dtype, HalfFormats, testing::Values(Dtype::f16, Dtype::bf16),
                         [](const auto& format) { return std::string(dtype_name(format.param)); });

TEST_P(HalfFormats, EveryBitPatternWidensToItsValue) {
  for (std::uint32_t i = 0; i <= 0xffffU; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const double expected = format().value(bits);
    const float actual = widen_one(GetParam(), bits);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(actual)) << std::hex << i;
    } else {
      EXPECT_EQ(static_cast<double>(actual), expected) << std::hex << i;
      EXPECT_EQ(std::signbit(actual), (bits & 0x8000U) != 0) << std::hex << i;
    }
  }
}

TEST_P(HalfFormats, EveryBitPatternSurvivesARoundTrip) {
  for (std::uint32_t i = 0; i <= 0xffffU; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float value = widen_one(GetParam(), bits);
    const std::uint16_t back = narrow_one(GetParam(), value);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(widen_one(GetParam(), back))) << std::hex << i;
    } else {
      EXPECT_EQ(back, bits) << std::hex << i;
    }
  }
}

// Around every pair of neighbours: their midpoint goes to the even one, and the f32 next to it on
// either side to the nearer one.
TEST_P(HalfFormats, TiesGoToEvenAndNeighboursOfTiesToTheNearest) {
  const auto infinity = static_cast<std::uint16_t>(GetParam() == Dtype::f16 ? 0x7c00 : 0x7f80);
  for (std::uint16_t low = 0; low + 1 < infinity; ++low) {
    const auto high = static_cast<std::uint16_t>(low + 1);
    const double middle = (format().value(low) + format().value(high)) / 2.0;
    const auto tie = static_cast<float>(middle);
    ASSERT_EQ(static_cast<double>(tie), middle);  // one more bit than the format: fits f32
    const std::uint16_t even = (low & 1U) == 0 ? low : high;
    for (const std::uint16_t sign : {std::uint16_t{0}, std::uint16_t{0x8000}}) {
      const float signed_tie = sign != 0 ? -tie : tie;
      const float above = std::nextafter(signed_tie, sign != 0 ? -kInfinity : kInfinity);
      const float below = std::nextafter(signed_tie, 0.0F);
      EXPECT_EQ(narrow_one(GetParam(), signed_tie), even | sign) << std::hex << low;
      EXPECT_EQ(narrow_one(GetParam(), above), high | sign) << std::hex << low;
      EXPECT_EQ(narrow_one(GetParam(), below), low | sign) << std::hex << low;
    }
  }
}

TEST(Dtype, HandVectors) {
  EXPECT_EQ(f16_from_float(1.0F), 0x3c00);
  EXPECT_EQ(f16_from_float(-2.0F), 0xc000);
  EXPECT_EQ(f16_from_float(65504.0F), 0x7bff);    // the largest
  EXPECT_EQ(f16_from_float(65519.996F), 0x7bff);  // below the midpoint to 65536
  EXPECT_EQ(f16_from_float(65520.0F), 0x7c00);    // the midpoint: to even, infinity
  EXPECT_EQ(f16_from_float(1e30F), 0x7c00);
  EXPECT_EQ(f16_from_float(0x1p-24F), 0x0001);  // the least subnormal
  EXPECT_EQ(f16_from_float(0x1p-25F), 0x0000);  // a tie with zero: to even
  EXPECT_EQ(f16_from_float(0x1.8p-25F), 0x0001);
  EXPECT_EQ(f16_from_float(0x1.ffcp-15F), 0x0400);  // rounds up out of the subnormals
  EXPECT_EQ(f16_from_float(-0.0F), 0x8000);
  EXPECT_EQ(f16_from_float(0x1p-140F), 0x0000);  // an f32 subnormal
  EXPECT_EQ(f16_from_float(-std::numeric_limits<float>::infinity()), 0xfc00);
  EXPECT_EQ(bf16_from_float(1.0F), 0x3f80);
  EXPECT_EQ(bf16_from_float(1.00390625F), 0x3f80);    // 1 + 2^-8: a tie, down to even
  EXPECT_EQ(bf16_from_float(1.01171875F), 0x3f82);    // 1 + 3·2^-8: a tie, up to even
  EXPECT_EQ(bf16_from_float(3.4028235e38F), 0x7f80);  // the largest f32 overflows
  EXPECT_EQ(bf16_from_float(0x1p-133F), 0x0001);      // the least subnormal
  EXPECT_EQ(bf16_from_float(0x1p-134F), 0x0000);
}

TEST(Dtype, NanStaysNanWithItsSign) {
  for (const std::uint32_t bits : {0x7f800001U, 0xff800001U, 0x7fc00000U, 0xffffffffU}) {
    const auto nan = std::bit_cast<float>(bits);
    for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
      const float back = widen_one(dtype, narrow_one(dtype, nan));
      EXPECT_TRUE(std::isnan(back)) << std::hex << bits;
      EXPECT_EQ(std::signbit(back), (bits >> 31U) != 0) << std::hex << bits;
    }
  }
}

// The span versions against the single ones, at every offset of a vector and with odd lengths.
TEST(Dtype, SpansGiveTheSameBitsAsSingles) {
  std::mt19937_64 random(7);
  std::vector<float> values(1031);
  for (float& value : values) value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    for (std::size_t offset = 0; offset < 9; ++offset) {
      const std::size_t count = values.size() - 2 * offset;
      std::vector<float> rounded(values.begin() + static_cast<std::ptrdiff_t>(offset),
                                 values.begin() + static_cast<std::ptrdiff_t>(offset + count));
      std::vector<std::uint8_t> stored(count * dtype_size(dtype));
      std::vector<float> widened(count);
      narrow(dtype, rounded.data(), stored.data(), count);
      widen(dtype, stored.data(), widened.data(), count);
      round_span(dtype, rounded.data(), count);
      for (std::size_t i = 0; i < count; ++i) {
        const auto expected = std::bit_cast<std::uint32_t>(round_to(dtype, values[offset + i]));
        EXPECT_EQ(std::bit_cast<std::uint32_t>(rounded[i]), expected);
        EXPECT_EQ(std::bit_cast<std::uint32_t>(widened[i]), expected);
      }
    }
  }
}

TEST(Dtype, NamesSizesAndBits) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::f64}) {
    EXPECT_EQ(dtype_from_name(dtype_name(dtype)), dtype);
  }
  EXPECT_EQ(dtype_from_name("float32"), std::nullopt);
  EXPECT_EQ(dtype_size(Dtype::bf16), 2U);
  EXPECT_EQ(dtype_size(Dtype::f64), 8U);
  EXPECT_EQ(significand_bits(Dtype::bf16), 8);
  EXPECT_EQ(significand_bits(Dtype::f16), 11);
}

}  // namespace
}  // namespace driftscope
