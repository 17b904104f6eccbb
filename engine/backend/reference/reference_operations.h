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

// y = (x - mean) / sqrt(mean((x - mean)²) + epsilon) · weight + bias; `bias` may be absent.
void layernorm(const double* x, const TensorView& weight, const TensorView& bias, double epsilon,
               std::int64_t rows, double* y);

// Rotates pairs (i, i + half) of each head by position · inverse_frequencies[i], in place; half:
// the number of frequencies. What follows the 2 · half first elements of a head stays.
struct Rotation {
  std::vector<double> inverse_frequencies;  // [half]
  double factor = 1.0;                      // multiplies cos and sin
};
void rotate(double* x, std::span<const std::int64_t> positions, std::int64_t heads,
            std::int64_t head_dim, const Rotation& rotation);

// One query row over the keys [begin, end); k, v: [positions, kv_heads, head_dim].
struct Attention {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  double scale = 1.0;
  double softcap = 0.0;            // scores become cap · tanh(score / cap); 0: they stay
  std::vector<double> sinks = {};  // [heads], a score each that takes weight only; or empty
};
void attend(const Attention& shape, const double* q, const double* k, const double* v,
            std::int64_t begin, std::int64_t end, double* y);

// silu: x / (1 + exp(-x)); gelu_tanh: x / 2 · (1 + tanh(sqrt(2 / pi) · (x + 0.044715 · x³)));
// gelu_erf: x / 2 · (1 + erf(x / sqrt(2))).
[[nodiscard]] double activated(Activation activation, double x);
// y[i] = activated(gate[i]) · up[i]; y may be gate.
void gated(Activation activation, const double* gate, const double* up, std::int64_t count,
           double* y);
// gpt-oss: g = min(gate, limit), u = clamp(up, ±limit); y = (u + 1) · g · sigmoid(1.702 · g).
void clamped_swiglu(double limit, const double* gate, const double* up, std::int64_t count,
                    double* y);
// cap · tanh(x / cap)
[[nodiscard]] double softcapped(double x, double cap);

// The `chosen` experts of a row with the largest softmax probability, ties to the lower id; ids and
// weights: [chosen], largest weight first, divided by their sum where `renormalise`. Returns the
// logit of the last chosen minus the largest of the others; NaN where all are chosen.
double route(std::span<const double> logits, std::int64_t chosen, bool renormalise,
             std::int32_t* ids, double* weights);
[[nodiscard]] double sigmoid(double x);

// The tensor's elements, widened; [elements].
[[nodiscard]] std::vector<double> widened(const TensorView& tensor);

}  // namespace driftscope::reference
