// SPDX-License-Identifier: Apache-2.0
// The operations of the f64 witness. Matrices are row-major.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/checkpoint.h"
#include "kernels/base/parallel.h"

namespace driftscope::reference {

// Sum of x[i] * w[i], i < count: sixteen partial sums, element i in sum i mod 16, added in rising
// order at the end. A fixed order, so the bits are fixed too; f64 leaves about 1e-13 of the terms.
[[nodiscard]] double dot(const double* x, const float* w, std::int64_t count);
[[nodiscard]] double dot(const double* x, const double* y, std::int64_t count);

// y[i, j] = x[i] · weight[j] + bias[j]; x: [rows, inputs], y: [rows, outputs]. `bias` may be
// absent.
void linear(const TensorView& weight, const TensorView& bias, const double* x, std::int64_t rows,
            double* y, Parallel& parallel);

// y = x / sqrt(mean(x²) + epsilon) · weight over rows of `width`; y may be x.
void rmsnorm(const double* x, const TensorView& weight, double epsilon, std::int64_t rows,
             double* y);

// Rotates pairs (i, i + head_dim / 2) of each head by position · inverse_frequencies[i], in place.
void rotate(double* x, std::span<const std::int64_t> positions, std::int64_t heads,
            std::int64_t head_dim, std::span<const double> inverse_frequencies);

// One query row over the keys [begin, end); k, v: [positions, kv_heads, head_dim].
struct Attention {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  double scale = 1.0;
};
void attend(const Attention& shape, const double* q, const double* k, const double* v,
            std::int64_t begin, std::int64_t end, double* y);

// y[i] = gate[i] / (1 + exp(-gate[i])) · up[i]
void swiglu(const double* gate, const double* up, std::int64_t count, double* y);

// The `chosen` experts of a row with the largest softmax probability, ties to the lower id; ids and
// weights: [chosen], largest weight first, divided by their sum where `renormalise`. Returns the
// logit of the last chosen minus the largest of the others; NaN where all are chosen.
double route(std::span<const double> logits, std::int64_t chosen, bool renormalise,
             std::int32_t* ids, double* weights);
[[nodiscard]] double sigmoid(double x);

// The tensor's elements, widened; [elements].
[[nodiscard]] std::vector<double> widened(const TensorView& tensor);

}  // namespace driftscope::reference
