// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation/activation.h"

#include <cmath>
#include <limits>

#include "kernels/plan/soft_cap.h"
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
  ActivationKind kind = ActivationKind::silu;
  float limit = 0.0F;
  bool gated = true;

  [[nodiscard]] SwigluArguments filled(float* y) const {
    return {.gate = gate_up.data(),
            .up = gated ? gate_up.data() + width : nullptr,
            .y = y,
            .rows = rows,
            .width = width,
            .gate_stride = 2 * width,
            .up_stride = 2 * width,
            .silu_dtype = silu_dtype,
            .output_dtype = output_dtype,
            .kind = kind,
            .limit = limit};
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

TEST(Gelu, KnownValues) {
  for (const ActivationKind kind : {ActivationKind::gelu_tanh, ActivationKind::gelu_erf}) {
    // gelu(0) = 0 and far out gelu(x) is x or 0.
    expect_everywhere({.width = 4, .gate_up = {0, 20, -20, 8, 3, 2, 2, 0.25F}, .kind = kind},
                      {0.0F, 40.0F, -0.0F, 2.0F});
    expect_everywhere({.width = 2, .gate_up = {20, -20, 7, 7}, .kind = kind, .gated = false},
                      {20.0F, -0.0F});
  }
}

TEST(ClampedSwiglu, KnownValues) {
  // Limit 7. Gate 0: nothing passes. Gate 200 is 7, up 100 is 7: 8 · 7 · sigmoid(11.914). Gate -200
  // is not clamped: sigmoid(-340.4) is below half the least subnormal. Up -100 is -7: -6 · …
  const double at_limit = 7.0 / (1.0 + std::exp(-1.702 * 7.0));
  const GatedProblem problem{.width = 4,
                             .gate_up = {0, 200, -200, 7, 5, 100, 1, -100},
                             .kind = ActivationKind::clamped_silu,
                             .limit = 7.0F};
  for (const SwigluVariant& variant : swiglu_variants()) {
    if (!isa_supported(variant.isa)) continue;
    const std::vector<float> y = problem.run(variant.isa);
    EXPECT_EQ(y[0], 0.0F);
    EXPECT_NEAR(y[1], 8.0 * at_limit, 8 * 7 * 4 * 0x1p-24);
    EXPECT_EQ(y[2], 0.0F);
    EXPECT_NEAR(y[3], -6.0 * at_limit, 6 * 7 * 4 * 0x1p-24);
  }
}

TEST(ClampedSwiglu, RoundsEveryStep) {
  // bf16. Gate 1: 1.702 is 1.703125; sigmoid(1.703125) = 0.845930…, in steps of 2^-8 217/256 =
  // 0.84765625; up + 1 = 1.00390625 + 1, in steps of 2^-6 2. The product is 1.6953125.
  expect_everywhere({.width = 1,
                     .gate_up = {1.0F, 1.00390625F},
                     .silu_dtype = Dtype::bf16,
                     .kind = ActivationKind::clamped_silu,
                     .limit = 7.0F},
                    {1.6953125F});
}

TEST(Activations, BitsAreTheScalarOnes) {
  for (const ActivationKind kind : {ActivationKind::silu, ActivationKind::gelu_tanh,
                                    ActivationKind::gelu_erf, ActivationKind::clamped_silu}) {
    for (const bool gated : {true, false}) {
      if (!gated && kind == ActivationKind::clamped_silu) continue;
      for (const std::int64_t width : {1, 7, 16, 45, 9001}) {
        for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
          GatedProblem problem{.rows = 2,
                               .width = width,
                               .silu_dtype = dtype,
                               .output_dtype = dtype,
                               .kind = kind,
                               .limit = 5.0F,
                               .gated = gated};
          problem.gate_up = Values(static_cast<std::uint64_t>(width)).uniform(4 * width, 9.0F);
          problem.gate_up[0] = std::numeric_limits<float>::quiet_NaN();
          const std::vector<float> expected = problem.run(Isa::scalar);
          EXPECT_TRUE(std::isnan(expected[0]));
          for (const SwigluVariant& variant : swiglu_variants()) {
            if (!isa_supported(variant.isa)) continue;
            EXPECT_EQ(bit_difference(problem.run(variant.isa, 3), expected), "")
                << variant.name << " " << name_of(kind);
          }
        }
      }
    }
  }
}

// With u = 2^-24. GELU: 1 + tanh or 1 + erf is off by 4 u (2 ulp of a value up to 1), by what the
// argument's error makes of it and by u of itself; the argument's relative error is below 6 u (four
// roundings and two of the constants), and |t · f'(t)| is below 0.55 for tanh, 0.49 for erf, while
// the cubic triples the relative error of t at most. So 4 u + 0.55 · 6 u < 8 u of |x| / 2 · |up|,
// and 4 u of the value for the other products. The clamped form: exp is off by 2 u and by 2 u ·
// |1.702 g| < 2 u · 35 from the scaled gate; sigmoid, products and sums add 5 u.
TEST(Activations, StayWithinTheirBound) {
  const double u = unit_roundoff(Dtype::f32);
  for (const ActivationKind kind :
       {ActivationKind::gelu_tanh, ActivationKind::gelu_erf, ActivationKind::clamped_silu}) {
    GatedProblem problem{.rows = 4, .width = 300, .kind = kind, .limit = 7.0F};
    problem.gate_up = Values(3).uniform(2400, 20.0F);
    std::vector<double> exact(1200);
    swiglu_reference(problem.filled(nullptr), exact.data());
    for (const SwigluVariant& variant : swiglu_variants()) {
      if (!isa_supported(variant.isa)) continue;
      const std::vector<float> y = problem.run(variant.isa);
      for (std::size_t i = 0; i < y.size(); ++i) {
        const std::size_t at = i / 300 * 600 + i % 300;
        const double gate = std::abs(double{problem.gate_up[at]});
        const double up = std::abs(double{problem.gate_up[at + 300]});
        const double bound = kind == ActivationKind::clamped_silu
                                 ? (2 + 2 * 35 + 5) * u * std::abs(exact[i])
                                 : 8 * u * gate / 2 * up + 4 * u * std::abs(exact[i]);
        EXPECT_LE(std::abs(y[i] - exact[i]), 1.01 * bound) << variant.name << name_of(kind);
      }
    }
  }
}

TEST(SoftCapRow, BitsAreTheScalarOnesAndTheDefinition) {
  for (const std::int64_t count : {1, 7, 33, 10000}) {
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
      const std::vector<float> x = Values(static_cast<std::uint64_t>(count)).uniform(count, 90.0F);
      std::vector<float> expected;
      for (const float value : x) expected.push_back(soft_capped(value, 30.0F, dtype, dtype));
      for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
        if (!isa_supported(isa)) continue;
        std::vector<float> y = x;
        BackwardParallel parallel(3);
        soft_cap({.x = y.data(),
                  .count = count,
                  .cap = 30.0F,
                  .step_dtype = dtype,
                  .output_dtype = dtype},
                 isa, parallel);
        EXPECT_EQ(bit_difference(y, expected), "") << isa_name(isa);
      }
    }
  }
}

}  // namespace
}  // namespace driftscope::testing
