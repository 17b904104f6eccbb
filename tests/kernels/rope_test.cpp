// SPDX-License-Identifier: Apache-2.0
#include "kernels/rope/rope.h"

#include <array>
#include <cmath>
#include <limits>

#include "operation_support.h"

namespace driftscope::testing {
namespace {

std::vector<double> plain_frequencies(std::int64_t half) {
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < half; ++i) {
    frequencies.push_back(std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(half)));
  }
  return frequencies;
}

TEST(RopeTable, PositionZeroRotatesNothing) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::f16, Dtype::bf16}) {
    const RopeTable table = make_rope_table(plain_frequencies(8), 1, dtype, 1.0);
    EXPECT_EQ(table.cosine, std::vector<float>(8, 1.0F));
    EXPECT_EQ(table.sine, std::vector<float>(8, 0.0F));
  }
}

// The C library's f64 functions are within 1 ulp of the exact value, as ours are: 2^-52 apart at
// most on top of the rounding to f32 (half of 2^-24 near 1; absolute here, as cos may be small).
TEST(RopeTable, F64RoundsTheExactAngleOnce) {
  const std::vector<double> frequencies = plain_frequencies(16);
  const RopeTable table = make_rope_table(frequencies, 3000, Dtype::f64, 1.0);
  for (std::int64_t p = 0; p < 3000; p += 37) {
    for (std::size_t i = 0; i < 16; ++i) {
      const double angle = static_cast<double>(p) * frequencies[i];
      const std::size_t entry = static_cast<std::size_t>(p) * 16 + i;
      const double u = unit_roundoff(Dtype::f32);
      EXPECT_LE(std::abs(table.cosine[entry] - std::cos(angle)),
                0x1p-51 + u * std::abs(std::cos(angle)));
      EXPECT_LE(std::abs(table.sine[entry] - std::sin(angle)),
                0x1p-51 + u * std::abs(std::sin(angle)));
    }
  }
}

TEST(RopeTable, F32RoundsFrequencyAndAngleFirst) {
  const std::vector<double> frequencies = plain_frequencies(16);
  const RopeTable table = make_rope_table(frequencies, 3000, Dtype::f32, 1.0);
  const RopeTable wide = make_rope_table(frequencies, 3000, Dtype::f64, 1.0);
  double largest = 0.0;
  for (std::int64_t p = 0; p < 3000; ++p) {
    for (std::size_t i = 0; i < 16; ++i) {
      const float angle = static_cast<float>(p) * static_cast<float>(frequencies[i]);
      const std::size_t entry = static_cast<std::size_t>(p) * 16 + i;
      const double cosine = std::cos(double{angle});
      EXPECT_LE(std::abs(table.cosine[entry] - cosine),
                0x1p-51 + unit_roundoff(Dtype::f32) * std::abs(cosine));
      largest = std::max(largest, double{std::abs(table.cosine[entry] - wide.cosine[entry])});
    }
  }
  // The two roundings move the angle by at most 2 · 2^-24 · 3000 = 3.6e-4, and do move it.
  EXPECT_LE(largest, 2 * unit_roundoff(Dtype::f32) * 3000 + 0x1p-24);
  EXPECT_GT(largest, 1e-6);
}

TEST(RopeTable, NarrowTypesRoundTheResultOfF32) {
  const RopeTable single = make_rope_table(plain_frequencies(8), 50, Dtype::f32, 1.0);
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    const RopeTable table = make_rope_table(plain_frequencies(8), 50, dtype, 1.0);
    for (std::size_t i = 0; i < table.cosine.size(); ++i) {
      EXPECT_EQ(table.cosine[i], round_to(dtype, single.cosine[i]));
      EXPECT_EQ(table.sine[i], round_to(dtype, single.sine[i]));
    }
  }
}

TEST(RopeTable, AttentionFactorMultipliesBoth) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::bf16}) {
    const RopeTable plain = make_rope_table(plain_frequencies(4), 20, dtype, 1.0);
    const RopeTable doubled = make_rope_table(plain_frequencies(4), 20, dtype, 2.0);
    for (std::size_t i = 0; i < plain.cosine.size(); ++i) {
      EXPECT_EQ(doubled.cosine[i], 2 * plain.cosine[i]);
      EXPECT_EQ(doubled.sine[i], 2 * plain.sine[i]);
    }
  }
}

// One head of one row at position 0 of a table given by hand.
void expect_rotated(std::vector<float> x, const RopeTable& table, const RopeArguments& how,
                    const std::vector<float>& expected) {
  const std::int32_t position = 0;
  for (const RopeVariant& variant : rope_variants()) {
    if (!isa_supported(variant.isa)) continue;
    std::vector<float> rotated = x;
    RopeArguments call = how;
    call.x = rotated.data();
    call.positions = &position;
    call.rows = 1;
    call.heads = 1;
    call.head_dim = static_cast<std::int64_t>(x.size());
    call.table = &table;
    SerialParallel serial;
    variant.run(call, serial);
    EXPECT_EQ(bit_difference(rotated, expected), "") << variant.name;
  }
}

TEST(Rope, AQuarterTurnSwapsThePairsOfItsLayout) {
  const RopeTable quarter{.positions = 1, .half = 2, .cosine = {0, 0}, .sine = {1, 1}};
  expect_rotated({1, 2, 3, 4}, quarter, {.layout = RopeLayout::rotate_half}, {-3, -4, 1, 2});
  expect_rotated({1, 2, 3, 4}, quarter, {.layout = RopeLayout::interleaved}, {-2, 1, -4, 3});
}

TEST(Rope, OneProductAndOneFma) {
  // With x = cos = sin = 1 + 2^-12 the product is 1 + 2^-11 + 2^-24, in f32 1 + 2^-11 (a tie to
  // even). The fma keeps the exact product: the difference is 2^-24, the sum 2 + 2^-10 + 2^-24,
  // in f32 2 + 2^-10. Products rounded to bf16 are 1 each: 0 and 2.
  const float value = 1.0F + 0x1p-12F;
  const RopeTable table{.positions = 1, .half = 1, .cosine = {value}, .sine = {value}};
  for (const RopeLayout layout : {RopeLayout::rotate_half, RopeLayout::interleaved}) {
    expect_rotated({value, value}, table, {.layout = layout}, {0x1p-24F, 2.0F + 0x1p-10F});
    expect_rotated({value, value}, table,
                   {.layout = layout, .round_products = true, .output_dtype = Dtype::bf16},
                   {0.0F, 2.0F});
    expect_rotated({value, value}, table, {.layout = layout, .output_dtype = Dtype::bf16},
                   {0x1p-24F, 2.0F});
  }
}

struct RopeProblem {
  std::int64_t rows, heads, head_dim;
  std::vector<float> x;
  std::vector<std::int32_t> positions;
  RopeTable table;
  RopeArguments how;

  RopeProblem(std::int64_t r, std::int64_t h, std::int64_t d)
      : rows(r),
        heads(h),
        head_dim(d),
        x(Values(static_cast<std::uint64_t>(r * h * d)).uniform(r * h * d, 2.0F)),
        table(make_rope_table(plain_frequencies(d / 2), 100, Dtype::f32, 1.0)) {
    for (std::int64_t i = 0; i < r; ++i) {
      positions.push_back(static_cast<std::int32_t>((i * 7 + 3) % 100));
    }
  }
  [[nodiscard]] RopeArguments filled(float* data) const {
    RopeArguments call = how;
    call.x = data;
    call.positions = positions.data();
    call.rows = rows;
    call.heads = heads;
    call.head_dim = head_dim;
    call.table = &table;
    return call;
  }
  [[nodiscard]] std::vector<float> run(Isa isa) const {
    std::vector<float> rotated = x;
    BackwardParallel parallel(2);
    apply_rope(filled(rotated.data()), isa, parallel);
    return rotated;
  }
};

TEST(Rope, BitsAreTheScalarOnes) {
  for (const std::int64_t head_dim : {2, 6, 16, 34, 64, 128}) {
    for (const RopeLayout layout : {RopeLayout::rotate_half, RopeLayout::interleaved}) {
      for (const bool round_products : {false, true}) {
        for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
          RopeProblem problem(41, 3, head_dim);
          problem.x[1] = std::numeric_limits<float>::quiet_NaN();
          problem.how = {.layout = layout, .round_products = round_products, .output_dtype = dtype};
          const std::vector<float> expected = problem.run(Isa::scalar);
          for (const RopeVariant& variant : rope_variants()) {
            if (!isa_supported(variant.isa)) continue;
            EXPECT_EQ(bit_difference(problem.run(variant.isa), expected), "") << variant.name;
          }
        }
      }
    }
  }
}

TEST(Rope, ARowDependsOnItsPositionAlone) {
  RopeProblem batch(200, 2, 64);
  const std::vector<float> together = batch.run(detect_isa());
  for (std::ptrdiff_t row = 0; row < 200; row += 13) {
    RopeProblem alone(1, 2, 64);
    alone.x.assign(batch.x.begin() + row * 128, batch.x.begin() + (row + 1) * 128);
    alone.positions = {batch.positions[static_cast<std::size_t>(row)]};
    const std::vector<float> expected(together.begin() + row * 128,
                                      together.begin() + (row + 1) * 128);
    EXPECT_EQ(bit_difference(alone.run(detect_isa()), expected), "");
  }
}

// y = x1 cos - x2 sin: one rounded product and one fma, so at most u |x2 sin| + u |y| off, and
// |y| <= |x1| + |x2| <= 2 range; with range 2: 6 u.
TEST(Rope, StaysWithinItsBound) {
  for (const RopeLayout layout : {RopeLayout::rotate_half, RopeLayout::interleaved}) {
    RopeProblem problem(10, 2, 64);
    problem.how.layout = layout;
    std::vector<double> exact(problem.x.size());
    rope_reference(problem.filled(problem.x.data()), exact.data());
    for (const RopeVariant& variant : rope_variants()) {
      if (!isa_supported(variant.isa)) continue;
      const std::vector<float> y = problem.run(variant.isa);
      for (std::size_t i = 0; i < y.size(); ++i) {
        EXPECT_LE(std::abs(y[i] - exact[i]), 1.01 * 6 * unit_roundoff(Dtype::f32));
      }
    }
  }
}

// Partial rotation: a head of 20 of which 12 are rotated is a head of 12 rotated whole, and 8 that
// stay.
TEST(Rope, RotatesTheLeadingDimensionsOnly) {
  const RopeTable table = make_rope_table(plain_frequencies(6), 40, Dtype::f32, 1.25);
  const std::vector<std::int32_t> positions = {3, 39, 0};
  const std::vector<float> x = Values(7).uniform(3 * 2 * 20, 2.0F);
  std::vector<float> narrow;
  for (std::size_t head = 0; head < 6; ++head) {
    for (std::size_t i = 0; i < 12; ++i) narrow.push_back(x[head * 20 + i]);
  }
  SerialParallel serial;
  const auto rotate = [&](std::vector<float>& values, std::int64_t head_dim, Isa isa) {
    apply_rope({.x = values.data(),
                .positions = positions.data(),
                .rows = 3,
                .heads = 2,
                .head_dim = head_dim,
                .table = &table},
               isa, serial);
  };
  rotate(narrow, 12, Isa::scalar);
  std::vector<double> reference(x.size());
  std::vector<float> copy = x;
  rope_reference({.x = copy.data(),
                  .positions = positions.data(),
                  .rows = 3,
                  .heads = 2,
                  .head_dim = 20,
                  .table = &table},
                 reference.data());
  for (const RopeVariant& variant : rope_variants()) {
    if (!isa_supported(variant.isa)) continue;
    std::vector<float> y = x;
    rotate(y, 20, variant.isa);
    for (std::size_t head = 0; head < 6; ++head) {
      for (std::size_t i = 0; i < 20; ++i) {
        const float wanted = i < 12 ? narrow[head * 12 + i] : x[head * 20 + i];
        EXPECT_EQ(y[head * 20 + i], wanted) << variant.name << " " << i;
        EXPECT_NEAR(y[head * 20 + i], reference[head * 20 + i], 1e-6);
      }
    }
  }
}

}  // namespace
}  // namespace driftscope::testing
