// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation/activation.h"

#include <cmath>
#include <limits>

#include "operation_support.h"

namespace driftscope::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct GatedProblem {
  std::int64_t rows = 1;
  std::int64_t width = 0;
  std::vector<float> gate_up = {};  // [rows, 2, width], as a fused projection leaves them
  Dtype silu_dtype = Dtype::f32;
  Dtype output_dtype = Dtype::f32;

  [[nodiscard]] SwigluArguments filled(float* y) const {
    return {.gate = gate_up.data(),
            .up = gate_up.data() + width,
            .y = y,
            .rows = rows,
            .width = width,
            .gate_stride = 2 * width,
            .up_stride = 2 * width,
            .silu_dtype = silu_dtype,
            .output_dtype = output_dtype};
  }
  [[nodiscard]] std::vector<float> run(Isa isa, int workers = 1) const {
    std::vector<float> y(static_cast<std::size_t>(rows * width));
    BackwardParallel parallel(workers);
    swiglu(filled(y.data()), isa, parallel);
    return y;
  }
};

void expect_everywhere(const GatedProblem& problem, const std::vector<float>& expected) {
  for (const SwigluVariant& variant : swiglu_variants()) {
    if (!isa_supported(variant.isa)) continue;
    EXPECT_EQ(bit_difference(problem.run(variant.isa), expected), "") << variant.name;
  }
}

TEST(Swiglu, KnownValues) {
  // silu(0) = 0 / 2; exp(-200) is below half the least subnormal, so silu(200) = 200 / 1;
  // exp(200) overflows, so silu(-200) = -200 / inf = -0.
  expect_everywhere({.width = 5, .gate_up = {0, 200, -200, 200, kInfinity, 3, 2, 2, -0.5F, 1}},
                    {0.0F, 400.0F, -0.0F, -100.0F, kInfinity});
}

TEST(Swiglu, RoundsWhereItSays) {
  // silu(200 + 1/2) is the gate: 200.5 in bf16 (steps of 1) ties to 200 (even). Times 1.0078125 it
  // is 201.5625, in bf16 202; unrounded silu gives 202.06640625, in bf16 202 as well, in f32 exact.
  GatedProblem problem{.width = 1, .gate_up = {200.5F, 1.0078125F}};
  expect_everywhere(problem, {202.06640625F});
  problem.silu_dtype = Dtype::bf16;
  expect_everywhere(problem, {201.5625F});
  problem.output_dtype = Dtype::bf16;
  expect_everywhere(problem, {202.0F});
}

TEST(Swiglu, NanStaysNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const SwigluVariant& variant : swiglu_variants()) {
    if (!isa_supported(variant.isa)) continue;
    const GatedProblem problem{.width = 4, .gate_up = {nan, 1, -kInfinity, 1, 1, nan, 1, 1}};
    const std::vector<float> y = problem.run(variant.isa);
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]) && std::isnan(y[2]));
    EXPECT_FALSE(std::isnan(y[3]));
    EXPECT_EQ(bit_difference(y, problem.run(Isa::scalar)), "");
  }
}

TEST(Swiglu, BitsAreTheScalarOnesAndRowsDoNotMatter) {
  for (const std::int64_t width : {1, 7, 16, 45, 512, 9001}) {
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
      GatedProblem batch{.rows = 3, .width = width, .silu_dtype = dtype, .output_dtype = dtype};
      batch.gate_up = Values(static_cast<std::uint64_t>(width)).uniform(6 * width, 120.0F);
      const std::vector<float> expected = batch.run(Isa::scalar);
      for (const SwigluVariant& variant : swiglu_variants()) {
        if (!isa_supported(variant.isa)) continue;
        EXPECT_EQ(bit_difference(batch.run(variant.isa, 3), expected), "") << variant.name;
        GatedProblem alone = batch;
        alone.rows = 1;
        alone.gate_up.assign(batch.gate_up.begin() + 2 * width, batch.gate_up.begin() + 4 * width);
        const std::vector<float> row(expected.begin() + width, expected.begin() + 2 * width);
        EXPECT_EQ(bit_difference(alone.run(variant.isa), row), "") << variant.name;
      }
    }
  }
}

// Relative error, u = 2^-24: exp is within 1 ulp (2 u) and enters with weight e / (1 + e) < 1; the
// addition, the division and the product round once each: 5 u, and a unit roundoff for each
// rounding point. Gates stay where silu is a normal number of every type.
TEST(Swiglu, StaysWithinItsBound) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    GatedProblem problem{.rows = 4, .width = 300, .silu_dtype = dtype, .output_dtype = dtype};
    problem.gate_up = Values(3).uniform(2400, 20.0F);
    std::vector<double> exact(1200);
    swiglu_reference(problem.filled(nullptr), exact.data());
    const double rounding = dtype == Dtype::f32 ? 0.0 : 2 * unit_roundoff(dtype);
    const double relative = 1.01 * (5 * unit_roundoff(Dtype::f32) + rounding);
    for (const SwigluVariant& variant : swiglu_variants()) {
      if (!isa_supported(variant.isa)) continue;
      const std::vector<float> y = problem.run(variant.isa);
      for (std::size_t i = 0; i < y.size(); ++i) {
        EXPECT_LE(std::abs(y[i] - exact[i]), relative * std::abs(exact[i])) << variant.name;
      }
    }
  }
}

}  // namespace
}  // namespace driftscope::testing
