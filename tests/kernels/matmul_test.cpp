// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tests/kernels/matmul_test_support.h"

namespace driftscope {
namespace {

using test::MatmulCase;
using test::MatmulInputs;
using test::same_bits;
using test::ThreadsParallel;

std::string describe(const MatmulCase& shape, const ReductionPlan& plan) {
  return "m=" + std::to_string(shape.m) + " n=" + std::to_string(shape.n) +
         " k=" + std::to_string(shape.k) + " " + std::string(dtype_name(shape.dtype)) + " " +
         to_string(plan);
}

// The definition, output by output, through reduce_dot.
std::vector<float> oracle(const MatmulInputs& inputs, const MatmulCase& shape,
                          const ReductionPlan& plan, Dtype output = Dtype::f32) {
  std::vector<float> y(inputs.outputs());
  for (std::int64_t i = 0; i < shape.m; ++i) {
    for (std::int64_t j = 0; j < shape.n; ++j) {
      float value = reduce_dot(plan, inputs.x_row(i), inputs.w_row(j), shape.k);
      if (shape.bias) value += inputs.bias(j);
      y[static_cast<std::size_t>(i * shape.n + j)] = round_to(output, value);
    }
  }
  return y;
}

void expect_all_variants_match(const MatmulCase& shape, const ReductionPlan& plan,
                               Dtype output = Dtype::f32) {
  const MatmulInputs inputs(shape, static_cast<std::uint64_t>(shape.m * 131 + shape.k));
  const std::vector<float> expected = oracle(inputs, shape, plan, output);
  for (const MatmulVariant& variant : matmul_variants()) {
    if (!isa_supported(variant.isa) || !variant.portable) continue;
    for (const int workers : {1, 2, 3}) {
      if (workers > 1 && shape.n < 24) continue;
      std::vector<float> y(inputs.outputs(), std::numeric_limits<float>::quiet_NaN());
      MatmulArguments arguments = inputs.arguments(plan, y.data());
      arguments.output_dtype = output;
      ThreadsParallel parallel(workers);
      SerialParallel serial;
      variant.run(arguments, workers == 1 ? static_cast<Parallel&>(serial) : parallel);
      EXPECT_TRUE(same_bits(y, expected))
          << variant.name << " workers=" << workers << " " << describe(shape, plan);
    }
  }
}

TEST(Matmul, EveryLaneCountMatchesTheDefinition) {
  for (int lanes = 1; lanes <= 1024; lanes *= 2) {
    for (const LaneCombine combine : {LaneCombine::butterfly, LaneCombine::sequential}) {
      for (const std::int64_t k : {1, 3, 15, 16, 17, 31, 33, 63, 64, 65, 129, 300}) {
        for (const std::int64_t m : {1, 3, 13}) {
          expect_all_variants_match({.m = m, .n = 7, .k = k, .dtype = Dtype::bf16},
                                    {.lanes = lanes, .lane_combine = combine});
        }
      }
    }
  }
}

TEST(Matmul, EveryRowCountMatchesTheDefinition) {
  for (std::int64_t m = 1; m <= 20; ++m) {
    for (const int lanes : {8, 16, 32, 64}) {
      for (const std::int64_t n : {1, 5, 26}) {
        expect_all_variants_match({.m = m, .n = n, .k = 77, .dtype = Dtype::f16, .bias = true},
                                  {.lanes = lanes});
      }
    }
  }
  expect_all_variants_match({.m = 67, .n = 51, .k = 130, .dtype = Dtype::bf16}, {.lanes = 32});
  expect_all_variants_match({.m = 130, .n = 43, .k = 65, .dtype = Dtype::f32}, {.lanes = 16});
}

TEST(Matmul, EveryWeightAndOutputDtypeMatchesTheDefinition) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    for (const Dtype output : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
      for (const std::int64_t m : {1, 2, 4, 15}) {
        expect_all_variants_match({.m = m, .n = 29, .k = 101, .dtype = dtype, .bias = true},
                                  {.lanes = 32, .split_k = 2}, output);
      }
    }
  }
}

TEST(Matmul, EverySplitAndAccumulatorMatchesTheDefinition) {
  for (const int split : {1, 2, 3, 4, 7, 16, 100}) {
    for (const SplitCombine combine :
         {SplitCombine::sequential, SplitCombine::tree, SplitCombine::arrival}) {
      for (const Accumulator accumulator : {Accumulator::f32, Accumulator::f64, Accumulator::kahan,
                                            Accumulator::bf16, Accumulator::f16}) {
        for (const std::int64_t m : {1, 14}) {
          for (const int lanes : {4, 32}) {
            expect_all_variants_match({.m = m, .n = 25, .k = 90, .dtype = Dtype::bf16},
                                      {.lanes = lanes,
                                       .split_k = split,
                                       .split_combine = combine,
                                       .accumulator = accumulator,
                                       .arrival_seed = 5});
          }
        }
      }
    }
  }
}

// Enough rows that panels are packed: whole and part tiles, short and odd K, splits.
TEST(Matmul, ManyRowsMatchTheDefinition) {
  for (const int lanes : {8, 16, 32, 64}) {
    for (const LaneCombine combine : {LaneCombine::butterfly, LaneCombine::sequential}) {
      for (const int split : {1, 3}) {
        for (const std::int64_t k : {5, 64, 131}) {
          expect_all_variants_match({.m = 131, .n = 67, .k = k, .dtype = Dtype::bf16, .bias = true},
                                    {.lanes = lanes, .split_k = split, .lane_combine = combine});
        }
      }
    }
  }
  for (const Dtype dtype : {Dtype::f32, Dtype::f16}) {
    expect_all_variants_match({.m = 701, .n = 7, .k = 40, .dtype = dtype}, {.lanes = 32},
                              Dtype::bf16);
  }
  for (const Accumulator accumulator : {Accumulator::bf16, Accumulator::f16}) {
    for (const SplitCombine combine : {SplitCombine::tree, SplitCombine::arrival}) {
      expect_all_variants_match({.m = 128, .n = 61, .k = 90, .dtype = Dtype::bf16},
                                {.lanes = 16,
                                 .split_k = 5,
                                 .split_combine = combine,
                                 .accumulator = accumulator,
                                 .arrival_seed = 9});
    }
  }
}

// K beyond one block of the packed panels, so that sums pass through memory between blocks.
TEST(Matmul, LongSumsMatchTheDefinition) {
  for (const int lanes : {8, 16, 32, 64}) {
    for (const LaneCombine combine : {LaneCombine::butterfly, LaneCombine::sequential}) {
      expect_all_variants_match({.m = 53, .n = 9, .k = 4871, .dtype = Dtype::bf16},
                                {.lanes = lanes, .lane_combine = combine});
      expect_all_variants_match({.m = 48, .n = 6, .k = 3100, .dtype = Dtype::f32},
                                {.lanes = lanes, .split_k = 2, .lane_combine = combine});
    }
  }
}

// Subnormal products, infinities and NaN take the same way everywhere.
TEST(Matmul, SpecialValuesMatchTheDefinition) {
  const MatmulCase shape{.m = 14, .n = 11, .k = 40};
  MatmulInputs inputs(shape);
  const float infinity = std::numeric_limits<float>::infinity();
  inputs.x_row(0)[3] = infinity;
  inputs.x_row(1)[5] = std::numeric_limits<float>::quiet_NaN();
  for (int i = 0; i < 40; ++i) inputs.x_row(2)[i] = (i % 2 == 0 ? -1.0F : 1.0F) * 0x1p-140F;
  for (int i = 0; i < 40; ++i) inputs.x_row(3)[i] = -0.0F;
  for (int i = 0; i < 40; ++i) inputs.x_row(4)[i] = 0x1p+127F;
  for (const int lanes : {2, 16, 32, 64}) {
    for (const Accumulator accumulator : {Accumulator::f32, Accumulator::f64, Accumulator::kahan}) {
      const ReductionPlan plan{.lanes = lanes, .accumulator = accumulator};
      const std::vector<float> expected = oracle(inputs, shape, plan);
      EXPECT_TRUE(std::isnan(expected[11]));
      for (const MatmulVariant& variant : matmul_variants()) {
        if (!isa_supported(variant.isa) || !variant.portable) continue;
        std::vector<float> y(inputs.outputs());
        SerialParallel serial;
        variant.run(inputs.arguments(plan, y.data()), serial);
        EXPECT_TRUE(same_bits(y, expected)) << variant.name << " " << to_string(plan);
      }
    }
  }
}

// Batch invariance: a row gives the same bits alone and among any number of neighbours.
TEST(Matmul, RowsDoNotSeeTheirNeighbours) {
  const MatmulCase shape{.m = 143, .n = 45, .k = 200, .dtype = Dtype::bf16, .bias = true};
  const MatmulInputs inputs(shape);
  SerialParallel serial;
  const Isa isa = detect_isa();
  for (const int split : {1, 3}) {
    const ReductionPlan plan{.lanes = 32, .split_k = split};
    std::vector<float> together(inputs.outputs());
    matmul(inputs.arguments(plan, together.data()), isa, serial);
    for (std::int64_t batch = 1; batch <= 21; batch += 4) {
      for (std::int64_t first = 0; first + batch <= shape.m; first += 19) {
        std::vector<float> part(static_cast<std::size_t>(batch * shape.n));
        MatmulArguments arguments = inputs.arguments(plan, part.data());
        arguments.x = inputs.x_row(first);
        arguments.m = batch;
        matmul(arguments, isa, serial);
        EXPECT_EQ(0, std::memcmp(part.data(), together.data() + first * shape.n,
                                 part.size() * sizeof(float)))
            << "batch " << batch << " from row " << first;
      }
    }
  }
}

// A shard of a larger matrix: a block of its rows and columns, of the input's columns, and of the
// output's. The rest of the output keeps what it had.
TEST(Matmul, SlicesAreReadAndWrittenInPlace) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    for (const std::int64_t m : {1, 5, 150}) {
      const MatmulCase shape{.m = m, .n = 40, .k = 96, .dtype = dtype, .bias = true};
      const MatmulInputs inputs(shape);
      constexpr std::int64_t kRow = 8, kRows = 25, kColumn = 33, kColumns = 48, kWidth = 50;
      for (const ReductionPlan& plan :
           {ReductionPlan{.lanes = 16}, ReductionPlan{.lanes = 16, .split_k = 3},
            ReductionPlan{.lanes = 4}, ReductionPlan{.accumulator = Accumulator::f64}}) {
        for (const MatmulVariant& variant : matmul_variants()) {
          if (!isa_supported(variant.isa) || !variant.portable) continue;
          std::vector<float> y(static_cast<std::size_t>(m * kWidth), 7.0F);
          MatmulArguments arguments = inputs.arguments(plan, y.data() + 3);
          arguments.weight =
              column_slice(row_slice(arguments.weight, kRow, kRows), kColumn, kColumns);
          arguments.x += kColumn;
          arguments.x_stride = shape.k;
          arguments.y_stride = kWidth;
          arguments.bias += kRow;
          SerialParallel serial;
          variant.run(arguments, serial);
          std::vector<float> expected(y.size(), 7.0F);
          for (std::int64_t i = 0; i < m; ++i) {
            for (std::int64_t j = 0; j < kRows; ++j) {
              expected[static_cast<std::size_t>(i * kWidth + 3 + j)] =
                  reduce_dot(plan, inputs.x_row(i) + kColumn, inputs.w_row(kRow + j) + kColumn,
                             kColumns) +
                  inputs.bias(kRow + j);
            }
          }
          EXPECT_TRUE(same_bits(y, expected)) << variant.name << " " << describe(shape, plan);
        }
      }
    }
  }
}

// Plans are not decoration: another order gives other bits.
TEST(Matmul, AnotherPlanChangesBits) {
  const MatmulCase shape{.m = 2, .n = 64, .k = 896, .dtype = Dtype::bf16};
  const MatmulInputs inputs(shape);
  SerialParallel serial;
  std::vector<float> base(inputs.outputs());
  matmul(inputs.arguments({.lanes = 32}, base.data()), detect_isa(), serial);
  for (const ReductionPlan& plan :
       {ReductionPlan{.lanes = 16}, ReductionPlan{.lanes = 32, .split_k = 4},
        ReductionPlan{.lanes = 32, .lane_combine = LaneCombine::sequential},
        ReductionPlan{.lanes = 32, .accumulator = Accumulator::f64},
        ReductionPlan{.lanes = 32, .accumulator = Accumulator::kahan}}) {
    std::vector<float> other(inputs.outputs());
    matmul(inputs.arguments(plan, other.data()), detect_isa(), serial);
    EXPECT_FALSE(same_bits(base, other)) << to_string(plan);
  }
}

// Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1: an inner product in
// any order errs by at most gamma_K · Σ|x·w|, gamma_K = K·u / (1 - K·u); here K/L + log2(L) + S
// roundings at most meet in one output, and K + 2 bounds them all (bias included).
TEST(Matmul, StaysWithinTheRoundingBoundOfTheF64Reference) {
  for (const std::int64_t k : {64, 896, 4864}) {
    const MatmulCase shape{.m = 13, .n = 40, .k = k, .dtype = Dtype::bf16, .bias = true};
    const MatmulInputs inputs(shape);
    std::vector<double> reference(inputs.outputs());
    matmul_reference(inputs.arguments({}, nullptr), reference.data());
    for (const ReductionPlan& plan :
         {ReductionPlan{.lanes = 32}, ReductionPlan{.lanes = 16, .split_k = 4},
          ReductionPlan{.lanes = 1}, ReductionPlan{.lanes = 64, .accumulator = Accumulator::f64}}) {
      std::vector<float> y(inputs.outputs());
      SerialParallel serial;
      matmul(inputs.arguments(plan, y.data()), detect_isa(), serial);
      const double depth = static_cast<double>(k) / plan.lanes + plan.lanes + plan.split_k + 2.0;
      const double gamma = depth * 0x1p-24 / (1.0 - depth * 0x1p-24);
      for (std::size_t o = 0; o < y.size(); ++o) {
        const auto i = static_cast<std::int64_t>(o) / shape.n;
        const auto j = static_cast<std::int64_t>(o) % shape.n;
        double magnitude = std::fabs(static_cast<double>(inputs.bias(j)));
        for (std::int64_t t = 0; t < k; ++t) {
          magnitude += std::fabs(static_cast<double>(inputs.x_row(i)[t]) *
                                 static_cast<double>(inputs.w_row(j)[t]));
        }
        EXPECT_LE(std::fabs(static_cast<double>(y[o]) - reference[o]), gamma * magnitude)
            << "output " << o << " " << describe(shape, plan);
      }
    }
  }
}

TEST(Matmul, VariantsAreListedWithTheirPromises) {
  ASSERT_FALSE(matmul_variants().empty());
  EXPECT_EQ(matmul_variants()[0].isa, Isa::scalar);
  for (const MatmulVariant& variant : matmul_variants()) {
    const bool dot = variant.name == "bf16_dot";
    EXPECT_EQ(variant.portable, !dot);
    EXPECT_EQ(variant.determinism,
              dot ? Determinism::batch_invariant : Determinism::device_to_device);
    EXPECT_EQ(isa_name(variant.isa), dot ? "avx512" : variant.name);
  }
}

}  // namespace
}  // namespace driftscope
