// SPDX-License-Identifier: Apache-2.0
#include "kernels/quant/quant_format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/quant/fp8.h"
#include "kernels/quant/kv_codec.h"
#include "tests/kernels/quant_support.h"

namespace driftscope::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// OFP8 specification, table 2: exponent bias 7, largest 1.75 · 2^8, smallest subnormal 2^-9.
TEST(E4m3, ValuesByHand) {
  EXPECT_EQ(e4m3_to_float(0x00), 0.0F);
  EXPECT_EQ(e4m3_to_float(0x01), 0x1p-9F);
  EXPECT_EQ(e4m3_to_float(0x07), 7.0F * 0x1p-9F);
  EXPECT_EQ(e4m3_to_float(0x08), 0x1p-6F);
  EXPECT_EQ(e4m3_to_float(0x38), 1.0F);
  EXPECT_EQ(e4m3_to_float(0x3c), 1.5F);
  EXPECT_EQ(e4m3_to_float(0x7e), 448.0F);
  EXPECT_EQ(e4m3_to_float(0xfe), -448.0F);
  EXPECT_TRUE(std::isnan(e4m3_to_float(0x7f)));
  EXPECT_TRUE(std::isnan(e4m3_to_float(0xff)));
  EXPECT_TRUE(std::signbit(e4m3_to_float(0x80)));
}

TEST(E4m3, EveryFiniteCodeReadsBack) {
  for (unsigned code = 0; code < 256; ++code) {
    if ((code & 0x7fU) == 0x7fU) continue;
    EXPECT_EQ(e4m3_from_float(e4m3_to_float(static_cast<std::uint8_t>(code))), code);
  }
}

TEST(E4m3, BetweenTwoCodesTheNearerWinsAndTiesGoToTheEvenOne) {
  for (unsigned code = 0; code < 0x7eU; ++code) {
    const float low = e4m3_to_float(static_cast<std::uint8_t>(code));
    const float high = e4m3_to_float(static_cast<std::uint8_t>(code + 1));
    const float middle = (low + high) / 2;  // exact: few bits
    const unsigned even = code % 2 == 0 ? code : code + 1;
    for (const float sign : {1.0F, -1.0F}) {
      const unsigned bit = sign < 0 ? 0x80U : 0U;
      EXPECT_EQ(e4m3_from_float(sign * middle), bit | even) << middle;
      EXPECT_EQ(e4m3_from_float(sign * std::nextafter(middle, 0.0F)), bit | code) << middle;
      EXPECT_EQ(e4m3_from_float(sign * std::nextafter(middle, 1000.0F)), bit | (code + 1));
    }
  }
}

TEST(E4m3, SaturatesAndHasOneNan) {
  for (const float value : {448.0F, 463.0F, 464.0F, 465.0F, 480.0F, 511.0F, 1e30F, kInfinity}) {
    EXPECT_EQ(e4m3_from_float(value), 0x7e) << value;
    EXPECT_EQ(e4m3_from_float(-value), 0xfe) << value;
  }
  EXPECT_EQ(e4m3_from_float(std::numeric_limits<float>::quiet_NaN()), 0x7f);
  EXPECT_EQ(e4m3_from_float(-std::numeric_limits<float>::quiet_NaN()), 0x7f);
}

TEST(QuantFormats, TableIsInTheOrderOfTheEnumeration) {
  for (const QuantFormatInfo& info : quant_formats()) {
    EXPECT_EQ(quant_format_info(info.format).name, info.name);
  }
  EXPECT_EQ(to_string({.format = QuantFormat::int4_symmetric, .group = 64}),
            "int4_symmetric group=64");
  EXPECT_EQ(to_string({.format = QuantFormat::fp8_tensor}), "fp8_tensor");
}

// amax 127 gives scale 1, so codes are the rounded weights; 2.5 and 3.5 are ties.
TEST(Quantise, Int8ByHand) {
  const std::vector<float> w = {127.0F, -127.0F, 2.5F, 3.5F, -2.5F, 0.4F, -0.6F, 0.0F};
  const QuantisedMatrix q({.format = QuantFormat::int8_channel}, w, 1, 8);
  EXPECT_EQ(q.scales()[0], 1.0F);
  EXPECT_EQ(q.values(), (std::vector<float>{127, -127, 2, 4, -2, 0, -1, 0}));
}

// Two rows: fp8_channel scales each by its own amax, fp8_tensor both by the larger.
TEST(Quantise, Fp8ByHand) {
  const std::vector<float> w = {448.0F, 1.0F, 224.0F, 17.0F};  // 17: between 16 and 18, to even
  const QuantisedMatrix channel({.format = QuantFormat::fp8_channel}, w, 2, 2);
  EXPECT_EQ(channel.scales()[0], 1.0F);
  EXPECT_EQ(channel.scales()[1], 0.5F);
  EXPECT_EQ(channel.values(), (std::vector<float>{448, 1, 224, 16}));  // 34 steps of 0.5: to 32
  const QuantisedMatrix tensor({.format = QuantFormat::fp8_tensor}, w, 2, 2);
  EXPECT_EQ(tensor.scales()[1], 1.0F);
  EXPECT_EQ(tensor.values(), (std::vector<float>{448, 1, 224, 16}));
}

// Groups of 16: the first has amax 7, the second 14, the last is short and has amax 3.5.
TEST(Quantise, Int4SymmetricByHand) {
  std::vector<float> w(36, 0.0F);
  w[0] = 7.0F;
  w[1] = -7.0F;
  w[2] = 2.5F;  // tie: 2
  w[16] = 14.0F;
  w[17] = 3.0F;  // 1.5: tie, to 2
  w[32] = -3.5F;
  w[33] = 0.6F;  // 1.2
  const QuantisedMatrix q({.format = QuantFormat::int4_symmetric, .group = 16}, w, 1, 36);
  std::vector<float> expected(36, 0.0F);
  expected[0] = 7.0F;
  expected[1] = -7.0F;
  expected[2] = 2.0F;
  expected[16] = 14.0F;
  expected[17] = 4.0F;
  expected[32] = -3.5F;
  expected[33] = 0.5F;
  EXPECT_EQ(q.values(), expected);
  EXPECT_EQ(q.scales()[0], 1.0F);
  EXPECT_EQ(q.scales()[1], 2.0F);
  EXPECT_EQ(q.scales()[2], 0.5F);
}

// lo = -5, hi = 10: scale 1, zero 5. A group of positive numbers keeps 0 as its lowest value.
TEST(Quantise, Int4AsymmetricByHand) {
  std::vector<float> w(32, 0.0F);
  w[0] = -5.0F;
  w[1] = 10.0F;
  w[2] = 0.5F;  // tie: 0
  w[3] = 1.5F;  // tie: 2
  for (int i = 16; i < 32; ++i) w[static_cast<std::size_t>(i)] = 30.0F;
  w[16] = 15.0F;
  const QuantisedMatrix q({.format = QuantFormat::int4_asymmetric, .group = 16}, w, 1, 32);
  std::vector<float> expected = w;
  expected[2] = 0.0F;
  expected[3] = 2.0F;
  expected[16] = 16.0F;  // 7.5 steps of 2: to 8
  EXPECT_EQ(q.values(), expected);
  EXPECT_EQ(q.zeros()[0], 5);
  EXPECT_EQ(q.zeros()[1], 0);
}

TEST(Quantise, ZerosStayZeroInEveryFormat) {
  for (const QuantFormatInfo& info : quant_formats()) {
    const std::vector<float> w(3 * 40, 0.0F);
    const QuantisedMatrix q({.format = info.format, .group = 16}, w, 3, 40);
    EXPECT_EQ(q.values(), w) << info.name;
  }
}

// quantise.h: half a step, and the roundings of the quotient (at most 127 steps, each relative
// 2^-24) and of the product.
TEST(Quantise, ErrorsStayWithinHalfAStep) {
  for (const QuantFormatInfo& info : quant_formats()) {
    for (const std::int64_t columns : {1, 15, 16, 17, 127, 128, 129, 300}) {
      const std::vector<float> w = random_weights(5 * columns, 3 + columns);
      const QuantisedMatrix q({.format = info.format, .group = 32}, w, 5, columns);
      const std::vector<float> values = q.values();
      for (std::int64_t i = 0; i < 5 * columns; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const double scale = q.scale_of(i / columns, i % columns);
        double step = scale;
        if (info.name.starts_with("fp8")) {  // three fraction bits, subnormals in 2^-9
          const double size = std::fabs(double{w[at]}) / scale;
          step = scale * std::max(0x1p-9, std::ldexp(1.0, std::ilogb(std::max(size, 1e-30)) - 3));
        }
        EXPECT_LE(std::fabs(double{values[at]} - double{w[at]}), step / 2 + scale * 448.0 * 0x1p-23)
            << info.name << " columns=" << columns << " at " << i;
      }
    }
  }
}

// Quantised values quantise to the same codes; a symmetric scale comes back to within the two
// roundings of amax = code · scale and of its quotient.
TEST(Quantise, IsIdempotent) {
  for (const QuantFormatInfo& info : quant_formats()) {
    const QuantSpec spec{.format = info.format, .group = 32};
    const QuantisedMatrix once(spec, random_weights(7 * 130, 11), 7, 130);
    const QuantisedMatrix twice(spec, once.values(), 7, 130);
    EXPECT_EQ(once.codes(), twice.codes()) << info.name;
    EXPECT_EQ(once.zeros(), twice.zeros()) << info.name;
    for (std::size_t i = 0; i < once.scales().size(); ++i) {
      EXPECT_NEAR(once.scales()[i], twice.scales()[i], once.scales()[i] * 0x1p-22F) << info.name;
    }
  }
}

TEST(Quantise, StoredTypesGiveTheirExactValues) {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    std::vector<float> w = random_weights(4 * 70, 5);
    round_span(dtype, w.data(), w.size());
    std::vector<std::uint16_t> stored(w.size());
    narrow(dtype, w.data(), stored.data(), w.size());
    const QuantSpec spec{.format = QuantFormat::int4_asymmetric, .group = 64};
    const QuantisedMatrix narrowed(spec, dtype, stored.data(), 4, 70);
    const QuantisedMatrix wide(spec, w, 4, 70);
    EXPECT_EQ(narrowed.codes(), wide.codes());
    EXPECT_EQ(narrowed.scales(), wide.scales());
  }
}

TEST(Quantise, ThreadsChangeNothing) {
  for (const QuantFormatInfo& info : quant_formats()) {
    const QuantSpec spec{.format = info.format, .group = 64};
    const std::vector<float> w = random_weights(200 * 70, 5);
    ThreadedParallel threads(3);
    const QuantisedMatrix many(spec, Dtype::f32, w.data(), 200, 70, threads);
    const QuantisedMatrix one(spec, w, 200, 70);
    EXPECT_EQ(many.codes(), one.codes()) << info.name;
    EXPECT_EQ(many.scales(), one.scales()) << info.name;
  }
}

TEST(Quantise, NamesTheFirstElementThatIsNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity}) {
    std::vector<float> w = random_weights(100 * 10, 5);
    w[537] = bad;
    w[990] = bad;
    const QuantSpec spec{.format = QuantFormat::fp8_tensor};
    std::vector<std::uint8_t> codes(100 * 64);
    std::vector<float> scales(100);
    SerialParallel serial;
    EXPECT_EQ(quantise_matrix(spec, Dtype::f32, w.data(), 100, 10,
                              {.codes = codes.data(), .scales = scales.data()}, serial),
              537);
  }
}

// The largest f32 values: the scales must not overflow.
TEST(Quantise, LargestWeights) {
  const float largest = std::numeric_limits<float>::max();
  const std::vector<float> w = {largest, -largest, 0.0F, largest / 2};
  for (const QuantFormatInfo& info : quant_formats()) {
    const QuantisedMatrix q({.format = info.format, .group = 16}, w, 1, 4);
    EXPECT_TRUE(std::isfinite(q.scales()[0])) << info.name;
    EXPECT_GT(q.values()[3], 0.0F) << info.name;
  }
}

// scale = 254 / 127 = 2: 3 is 1.5 steps, a tie, and goes to 2 steps.
TEST(QuantiseActivations, ByHand) {
  const std::vector<float> x = {-254.0F, 3.0F, 1.0F, 0.0F};
  std::vector<std::int16_t> codes(4);
  EXPECT_EQ(quantise_activations(x.data(), 4, codes.data()), 2.0F);
  EXPECT_EQ(codes, (std::vector<std::int16_t>{-127, 2, 0, 0}));
  const std::vector<float> bad = {1.0F, kInfinity};
  EXPECT_TRUE(std::isnan(quantise_activations(bad.data(), 2, codes.data())));
}

TEST(KvCodec, Int8HasAScalePerHead) {
  const std::vector<float> heads = {127.0F, 2.5F, -254.0F, 3.0F, 0.0F, 0.0F};
  std::vector<std::uint8_t> codes(6);
  std::vector<float> scales(3);
  kv_store(KvDtype::int8, heads.data(), 3, 2, codes.data(), scales.data());
  EXPECT_EQ(scales, (std::vector<float>{1.0F, 2.0F, 0.0F}));
  std::vector<float> back(6);
  for (std::size_t head = 0; head < 3; ++head) {
    kv_widen(KvDtype::int8, codes.data() + 2 * head, &scales[head], back.data() + 2 * head, 2);
  }
  EXPECT_EQ(back, (std::vector<float>{127, 2, -254, 4, 0, 0}));
}

TEST(KvCodec, Fp8RoundsAndSaturates) {
  const std::vector<float> values = {1.0625F, 1000.0F, -1000.0F, 0x1p-10F};  // the first is a tie
  std::vector<std::uint8_t> codes(4);
  kv_store(KvDtype::fp8_e4m3, values.data(), 1, 4, codes.data(), nullptr);
  std::vector<float> back(4);
  kv_widen(KvDtype::fp8_e4m3, codes.data(), nullptr, back.data(), 4);
  EXPECT_EQ(back, (std::vector<float>{1, 448, -448, 0}));
}

}  // namespace
}  // namespace driftscope::testing
