// SPDX-License-Identifier: Apache-2.0
// Matmuls on quantised weights: the same bits as the definition, whatever computes them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tests/kernels/matmul_test_support.h"
#include "tests/kernels/quant_support.h"

namespace driftscope::testing {
namespace {

using test::same_bits;
using test::ThreadsParallel;

struct Shape {
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
};

class Problem {
 public:
  Problem(const Shape& shape, const QuantSpec& spec)
      : m_shape(shape),
        m_weights(spec, random_weights(shape.n * shape.k, shape.k + 7), shape.n, shape.k),
        m_values(m_weights.values()) {
    Values values(static_cast<std::uint64_t>(shape.m * 31 + shape.k));
    m_x = values.uniform(shape.m * shape.k, 2.0F);
    // Products below the smallest number round to -0, which padding must turn back where the
    // definition pads, and nowhere else.
    for (std::size_t i = 0; i < m_x.size(); i += 3) m_x[i] *= i % 2 == 0 ? 0x1p-149F : -0x1p-149F;
    m_bias = values.uniform(shape.n, 1.0F);
  }
  [[nodiscard]] MatmulArguments arguments(const ReductionPlan& plan, float* y) const {
    return {.x = m_x.data(),
            .m = m_shape.m,
            .weight = m_weights.weight(),
            .bias = m_bias.data(),
            .y = y,
            .plan = plan};
  }
  [[nodiscard]] std::vector<float> run(const ReductionPlan& plan, const MatmulVariant& variant,
                                       int workers) const {
    std::vector<float> y(static_cast<std::size_t>(m_shape.m * m_shape.n),
                         std::numeric_limits<float>::quiet_NaN());
    ThreadsParallel threads(workers);
    SerialParallel serial;
    variant.run(arguments(plan, y.data()), workers == 1 ? static_cast<Parallel&>(serial) : threads);
    return y;
  }
  // reduce_dot over the dequantised weights.
  [[nodiscard]] std::vector<float> by_definition(const ReductionPlan& plan) const {
    std::vector<float> y;
    for (std::int64_t i = 0; i < m_shape.m; ++i) {
      for (std::int64_t j = 0; j < m_shape.n; ++j) {
        y.push_back(reduce_dot(plan, m_x.data() + i * m_shape.k, m_values.data() + j * m_shape.k,
                               m_shape.k) +
                    m_bias[static_cast<std::size_t>(j)]);
      }
    }
    return y;
  }
  [[nodiscard]] const std::vector<float>& x() const { return m_x; }
  [[nodiscard]] std::vector<float>& x() { return m_x; }
  [[nodiscard]] const QuantisedMatrix& weights() const { return m_weights; }
  [[nodiscard]] const std::vector<float>& values() const { return m_values; }
  [[nodiscard]] float bias(std::int64_t j) const { return m_bias[static_cast<std::size_t>(j)]; }

 private:
  Shape m_shape;
  QuantisedMatrix m_weights;
  std::vector<float> m_values;
  std::vector<float> m_x;
  std::vector<float> m_bias;
};

std::vector<QuantSpec> float_specs() {
  return {{.format = QuantFormat::int8_channel},
          {.format = QuantFormat::fp8_channel},
          {.format = QuantFormat::int4_symmetric, .group = 128},
          {.format = QuantFormat::int4_symmetric, .group = 256},
          {.format = QuantFormat::int4_asymmetric, .group = 16},
          {.format = QuantFormat::int4_asymmetric, .group = 64}};
}

void expect_definition(const Shape& shape, const ReductionPlan& plan,
                       const std::vector<QuantSpec>& specs = float_specs()) {
  for (const QuantSpec& spec : specs) {
    const Problem problem(shape, spec);
    const std::vector<float> expected = problem.by_definition(plan);
    for (const MatmulVariant& variant : matmul_variants()) {
      if (!isa_supported(variant.isa) || !variant.portable) continue;
      for (const int workers : {1, 3}) {
        if (workers > 1 && shape.n < 24) continue;
        EXPECT_EQ(bit_difference(problem.run(plan, variant, workers), expected), "")
            << variant.name << " workers=" << workers << " " << to_string(spec) << " m=" << shape.m
            << " n=" << shape.n << " k=" << shape.k << " " << to_string(plan);
      }
    }
  }
}

TEST(QuantMatmul, EveryLaneCountAndLengthMatchesTheDefinition) {
  for (const int lanes : {1, 8, 16, 32, 64, 128}) {
    for (const LaneCombine combine : {LaneCombine::butterfly, LaneCombine::sequential}) {
      for (const std::int64_t k : {1, 15, 17, 64, 127, 128, 129, 160, 191, 300}) {
        for (const std::int64_t m : {1, 2}) {
          expect_definition({.m = m, .n = 9, .k = k}, {.lanes = lanes, .lane_combine = combine});
        }
      }
    }
  }
}

// Few rows straight from the codes, more from widened blocks, many packed.
TEST(QuantMatmul, EveryRowCountMatchesTheDefinition) {
  for (const std::int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 13, 50}) {
    for (const int lanes : {16, 32}) {
      expect_definition({.m = m, .n = 53, .k = 210}, {.lanes = lanes});
    }
  }
  expect_definition({.m = 131, .n = 67, .k = 143}, {.lanes = 32});
  expect_definition({.m = 50, .n = 5, .k = 2300}, {.lanes = 32});
}

TEST(QuantMatmul, EverySplitAndAccumulatorMatchesTheDefinition) {
  for (const int split : {2, 3, 5}) {
    for (const SplitCombine combine :
         {SplitCombine::sequential, SplitCombine::tree, SplitCombine::arrival}) {
      for (const Accumulator accumulator : {Accumulator::f32, Accumulator::f64, Accumulator::kahan,
                                            Accumulator::bf16, Accumulator::f16}) {
        for (const std::int64_t m : {1, 9, 140}) {
          // 256 terms in two chunks begin on whole blocks of int4 codes, the others do not.
          expect_definition({.m = m, .n = 7, .k = split == 2 ? 256 : 263},
                            {.lanes = 32,
                             .split_k = split,
                             .split_combine = combine,
                             .accumulator = accumulator,
                             .arrival_seed = 5});
        }
      }
    }
  }
}

// The definition of int8_dynamic, from matmul.h.
std::vector<float> int8_by_definition(const Problem& problem, const Shape& shape,
                                      const ReductionPlan& plan) {
  std::vector<float> y;
  std::vector<std::int16_t> codes(static_cast<std::size_t>(shape.k));
  const std::int64_t chunk = chunk_length(plan, shape.k);
  const std::vector<int> order = arrival_order(plan.arrival_seed, plan.split_k);
  for (std::int64_t i = 0; i < shape.m; ++i) {
    const float x_scale =
        quantise_activations(problem.x().data() + i * shape.k, shape.k, codes.data());
    for (std::int64_t j = 0; j < shape.n; ++j) {
      std::vector<float> sums(static_cast<std::size_t>(plan.split_k), 0.0F);
      const QuantisedView view = problem.weights().weight().quantised.from_row(j);
      for (std::int64_t c = 0; c < plan.split_k; ++c) {
        std::int64_t dot = 0;
        for (std::int64_t k = c * chunk; k < std::min(shape.k, (c + 1) * chunk); ++k) {
          dot += codes[static_cast<std::size_t>(k)] *
                 std::int64_t{static_cast<std::int8_t>(view.codes[k])};
        }
        sums[static_cast<std::size_t>(c)] = static_cast<float>(dot);
      }
      const float sum = combine_chunks(plan, sums.data(), order.data());
      y.push_back(sum * (x_scale * view.scales[0]) + problem.bias(j));
    }
  }
  return y;
}

TEST(QuantMatmul, IntegerActivationsMatchTheDefinition) {
  for (const std::int64_t m : {1, 2, 4, 5, 70}) {
    for (const std::int64_t k : {1, 15, 31, 32, 33, 64, 129, 700}) {
      for (const int split : {1, 3}) {
        for (const SplitCombine combine : {SplitCombine::tree, SplitCombine::arrival}) {
          const Shape shape{.m = m, .n = 37, .k = k};
          const ReductionPlan plan{.split_k = split,
                                   .split_combine = combine,
                                   .accumulator = m == 2 ? Accumulator::bf16 : Accumulator::f32};
          const Problem problem(shape, {.format = QuantFormat::int8_dynamic});
          const auto expected = int8_by_definition(problem, shape, plan);
          for (const MatmulVariant& variant : matmul_variants()) {
            if (!isa_supported(variant.isa) || !variant.portable) continue;
            for (const int workers : {1, 3}) {
              EXPECT_EQ(bit_difference(problem.run(plan, variant, workers), expected), "")
                  << variant.name << " m=" << m << " k=" << k << " " << to_string(plan);
            }
          }
        }
      }
    }
  }
}

// Every product at its largest, at the longest row: the 32-bit sums must not overflow.
TEST(QuantMatmul, LongestIntegerSumIsExact) {
  const std::int64_t k = kMostInt8Terms;
  const std::vector<float> w(static_cast<std::size_t>(k), 127.0F);
  const QuantisedMatrix weights({.format = QuantFormat::int8_dynamic}, w, 1, k);
  for (const MatmulVariant& variant : matmul_variants()) {
    if (!isa_supported(variant.isa) || !variant.portable) continue;
    float y = 0.0F;
    SerialParallel serial;
    variant.run({.x = w.data(), .m = 1, .weight = weights.weight(), .y = &y, .plan = {}}, serial);
    EXPECT_EQ(y, static_cast<float>(127.0 * 127.0 * static_cast<double>(k))) << variant.name;
  }
}

// A row that holds NaN or infinity gives NaN, and only that row.
TEST(QuantMatmul, IntegerActivationsPassNanOn) {
  Problem problem({.m = 3, .n = 5, .k = 40}, {.format = QuantFormat::int8_dynamic});
  problem.x()[45] = std::numeric_limits<float>::infinity();
  for (const MatmulVariant& variant : matmul_variants()) {
    if (!isa_supported(variant.isa) || !variant.portable) continue;
    const auto y = problem.run({}, variant, 1);
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 5 == 1) << i;
  }
}

// A row gives the same bits alone and among neighbours, however many there are.
TEST(QuantMatmul, RowsDoNotSeeTheirNeighbours) {
  const Shape shape{.m = 140, .n = 45, .k = 200};
  for (const QuantFormatInfo& info : quant_formats()) {
    const Problem problem(shape, {.format = info.format, .group = 32});
    for (const int split : {1, 3}) {
      const ReductionPlan plan{.split_k = split};
      SerialParallel serial;
      std::vector<float> together(static_cast<std::size_t>(shape.m * shape.n));
      matmul(problem.arguments(plan, together.data()), detect_isa(), serial);
      for (const std::int64_t batch : {1, 2, 3, 6, 7, 20, 130}) {
        const std::int64_t first = shape.m - batch;
        std::vector<float> part(static_cast<std::size_t>(batch * shape.n));
        MatmulArguments arguments = problem.arguments(plan, part.data());
        arguments.x += first * shape.k;
        arguments.m = batch;
        matmul(arguments, detect_isa(), serial);
        const std::vector<float> expected(together.begin() + first * shape.n, together.end());
        EXPECT_EQ(bit_difference(part, expected), "") << info.name << " batch " << batch;
      }
    }
  }
}

// Part of the rows and of the terms, as ranks take them: the bits of a matrix of those weights.
TEST(QuantMatmul, SlicesMatchTheDefinition) {
  for (const QuantSpec& spec : float_specs()) {
    const Problem problem({.m = 9, .n = 40, .k = 420}, spec);
    for (const std::int64_t first : {0, 16, 100, 128, 256, 419}) {
      for (const std::int64_t m : {1, 9}) {
        const std::int64_t count = std::min<std::int64_t>(150, 420 - first);
        const WeightView part =
            column_slice(row_slice(problem.weights().weight(), 5, 30), first, count);
        const ReductionPlan plan{.lanes = 32};
        std::vector<float> expected;
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t j = 5; j < 35; ++j) {
            expected.push_back(reduce_dot(plan, problem.x().data() + i * 420 + first,
                                          problem.values().data() + j * 420 + first, count));
          }
        }
        for (const MatmulVariant& variant : matmul_variants()) {
          if (!isa_supported(variant.isa) || !variant.portable) continue;
          std::vector<float> y(expected.size());
          SerialParallel serial;
          variant.run({.x = problem.x().data() + first,
                       .m = m,
                       .weight = part,
                       .y = y.data(),
                       .x_stride = 420,
                       .plan = plan},
                      serial);
          EXPECT_EQ(bit_difference(y, expected), "")
              << variant.name << " " << to_string(spec) << " from " << first << " m=" << m;
        }
      }
    }
  }
}

// Higham, Accuracy and Stability, section 3.1, as in the tests of plain weights; int8_dynamic
// makes one rounding for each of its two products and one for the sum.
TEST(QuantMatmul, StaysWithinTheRoundingBoundOfTheF64Reference) {
  const Shape shape{.m = 3, .n = 40, .k = 896};
  for (const QuantFormatInfo& info : quant_formats()) {
    const Problem problem(shape, {.format = info.format, .group = 128});
    std::vector<double> reference(static_cast<std::size_t>(shape.m * shape.n));
    matmul_reference(problem.arguments({}, nullptr), reference.data());
    const ReductionPlan plan{.lanes = 32, .split_k = 2};
    const auto y = problem.run(plan, matmul_variants().front(), 1);
    const double depth = static_cast<double>(shape.k) / plan.lanes + plan.lanes + 6.0;
    const double gamma = depth * 0x1p-24 / (1.0 - depth * 0x1p-24);
    for (std::size_t o = 0; o < y.size(); ++o) {
      const auto i = static_cast<std::int64_t>(o) / shape.n;
      const auto j = static_cast<std::int64_t>(o) % shape.n;
      double magnitude = std::fabs(double{problem.bias(j)});
      for (std::int64_t k = 0; k < shape.k; ++k) {
        // An input's code times its scale is at most its own size and half a step of 2 / 127.
        magnitude += (std::fabs(double{problem.x()[static_cast<std::size_t>(i * shape.k + k)]}) +
                      1.0 / 127.0) *
                     std::fabs(double{problem.values()[static_cast<std::size_t>(j * shape.k + k)]});
      }
      EXPECT_NEAR(double{y[o]}, reference[o], gamma * magnitude) << info.name;
    }
  }
}

}  // namespace
}  // namespace driftscope::testing
