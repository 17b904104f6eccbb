// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/reference/reference_operations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/plan/dtype.h"
#include "kernels/plan/portable_math.h"

namespace driftscope::reference {
namespace {

constexpr std::int64_t kPartials = 16;

template <class Weight>
double dot_of(const double* x, const Weight* w, std::int64_t count) {
  std::array<double, kPartials> sums{};
  std::int64_t i = 0;
  for (; i + kPartials <= count; i += kPartials) {
    for (std::int64_t j = 0; j < kPartials; ++j) {
      sums[static_cast<std::size_t>(j)] += x[i + j] * static_cast<double>(w[i + j]);
    }
  }
  for (std::int64_t j = 0; i + j < count; ++j) {
    sums[static_cast<std::size_t>(j)] += x[i + j] * static_cast<double>(w[i + j]);
  }
  double sum = 0.0;
  for (const double partial : sums) sum += partial;
  return sum;
}

}  // namespace

double dot(const double* x, const float* w, std::int64_t count) { return dot_of(x, w, count); }
double dot(const double* x, const double* y, std::int64_t count) { return dot_of(x, y, count); }

void linear(const TensorView& weight, const TensorView& bias, const double* x, std::int64_t rows,
            double* y, Parallel& parallel) {
  constexpr std::int64_t kOutputsPerTask = 64;
  const std::int64_t outputs = weight.shape[0];
  const std::int64_t inputs = weight.shape[1];
  const std::vector<double> offsets = bias.present() ? widened(bias) : std::vector<double>{};
  const auto task = [&](std::size_t index, int) {
    std::vector<float> row(static_cast<std::size_t>(inputs));
    const std::int64_t first = static_cast<std::int64_t>(index) * kOutputsPerTask;
    for (std::int64_t j = first; j < std::min(outputs, first + kOutputsPerTask); ++j) {
      weight.values(j * inputs, inputs, row.data());
      const double offset = offsets.empty() ? 0.0 : offsets[static_cast<std::size_t>(j)];
      for (std::int64_t i = 0; i < rows; ++i) {
        y[i * outputs + j] = dot(x + i * inputs, row.data(), inputs) + offset;
      }
    }
  };
  const std::int64_t tasks = (outputs + kOutputsPerTask - 1) / kOutputsPerTask;
  parallel.run(static_cast<std::size_t>(tasks), task);
}

void rmsnorm(const double* x, const TensorView& weight, double epsilon, std::int64_t rows,
             double* y) {
  const std::vector<double> scales = widened(weight);
  const auto width = static_cast<std::int64_t>(scales.size());
  for (std::int64_t row = 0; row < rows; ++row, x += width, y += width) {
    const double mean = dot(x, x, width) / static_cast<double>(width);
    const double scale = 1.0 / std::sqrt(mean + epsilon);
    for (std::int64_t i = 0; i < width; ++i) {
      y[i] = x[i] * scale * scales[static_cast<std::size_t>(i)];
    }
  }
}

void layernorm(const double* x, const TensorView& weight, const TensorView& bias, double epsilon,
               std::int64_t rows, double* y) {
  const std::vector<double> scales = widened(weight);
  const std::vector<double> offsets =
      bias.present() ? widened(bias) : std::vector<double>(scales.size(), 0.0);
  const auto width = static_cast<std::int64_t>(scales.size());
  const std::vector<double> ones(scales.size(), 1.0);
  std::vector<double> centred(scales.size());
  for (std::int64_t row = 0; row < rows; ++row, x += width, y += width) {
    const double mean = dot(x, ones.data(), width) / static_cast<double>(width);
    for (std::size_t i = 0; i < centred.size(); ++i) centred[i] = x[i] - mean;
    const double variance = dot(centred.data(), centred.data(), width) / static_cast<double>(width);
    const double scale = 1.0 / std::sqrt(variance + epsilon);
    for (std::size_t i = 0; i < centred.size(); ++i) {
      y[i] = centred[i] * scale * scales[i] + offsets[i];
    }
  }
}

void rotate(double* x, std::span<const std::int64_t> positions, std::int64_t heads,
            std::int64_t head_dim, const Rotation& rotation) {
  const auto half = static_cast<std::int64_t>(rotation.inverse_frequencies.size());
  for (const std::int64_t position : positions) {
    for (std::int64_t i = 0; i < half; ++i) {
      const auto turn = portable::sincos(static_cast<double>(position) *
                                         rotation.inverse_frequencies[static_cast<std::size_t>(i)]);
      const double cos = turn.cos * rotation.factor;
      const double sin = turn.sin * rotation.factor;
      for (std::int64_t head = 0; head < heads; ++head) {
        double& first = x[head * head_dim + i];
        double& second = x[head * head_dim + i + half];
        const double turned = first * cos - second * sin;
        second = second * cos + first * sin;
        first = turned;
      }
    }
    x += heads * head_dim;
  }
}

void attend(const Attention& shape, const double* q, const double* k, const double* v,
            std::int64_t begin, std::int64_t end, double* y) {
  const std::int64_t stride = shape.kv_heads * shape.head_dim;
  std::vector<double> weights(static_cast<std::size_t>(end - begin));
  for (std::int64_t head = 0; head < shape.heads; ++head) {
    const std::int64_t offset = head / (shape.heads / shape.kv_heads) * shape.head_dim;
    for (std::int64_t key = begin; key < end; ++key) {
      const double score =
          dot(q + head * shape.head_dim, k + key * stride + offset, shape.head_dim) * shape.scale;
      weights[static_cast<std::size_t>(key - begin)] =
          shape.softcap > 0.0 ? softcapped(score, shape.softcap) : score;
    }
    double largest = *std::max_element(weights.begin(), weights.end());
    double sum = 0.0;
    if (!shape.sinks.empty()) {
      const double sink = shape.sinks[static_cast<std::size_t>(head)];
      largest = std::max(largest, sink);
      sum = portable::exp(sink - largest);
    }
    for (double& weight : weights) {
      weight = portable::exp(weight - largest);
      sum += weight;
    }
    double* out = y + head * shape.head_dim;
    std::fill_n(out, shape.head_dim, 0.0);
    for (std::int64_t key = begin; key < end; ++key) {
      const double share = weights[static_cast<std::size_t>(key - begin)] / sum;
      const double* value = v + key * stride + offset;
      for (std::int64_t i = 0; i < shape.head_dim; ++i) out[i] += share * value[i];
    }
  }
}

namespace {

// By expm1, so that small arguments keep their bits; ±1 beyond 20, where f64 cannot tell.
double hyperbolic_tangent(double x) {
  const double magnitude = std::abs(x);
  if (!(magnitude < 20.0)) return std::isnan(x) ? x : std::copysign(1.0, x);
  const double grown = portable::expm1(2.0 * magnitude);
  return std::copysign(grown / (grown + 2.0), x);
}

}  // namespace

double activated(Activation activation, double x) {
  constexpr double kSqrtTwoOverPi = 0.7978845608028654;
  constexpr double kSqrtHalf = 0.7071067811865476;
  switch (activation) {
    case Activation::silu:
      break;
    case Activation::gelu_tanh:
      return 0.5 * x * (1.0 + hyperbolic_tangent(kSqrtTwoOverPi * (x + 0.044715 * x * x * x)));
    case Activation::gelu_erf:
      return 0.5 * x * (1.0 + std::erf(x * kSqrtHalf));
  }
  return x / (1.0 + portable::exp(-x));
}

void gated(Activation activation, const double* gate, const double* up, std::int64_t count,
           double* y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = activated(activation, gate[i]) * up[i];
}

void clamped_swiglu(double limit, const double* gate, const double* up, std::int64_t count,
                    double* y) {
  constexpr double kSlope = 1.702;
  for (std::int64_t i = 0; i < count; ++i) {
    const double bounded = std::min(gate[i], limit);
    const double linear = std::clamp(up[i], -limit, limit);
    y[i] = (linear + 1.0) * bounded * sigmoid(kSlope * bounded);
  }
}

double softcapped(double x, double cap) { return cap * hyperbolic_tangent(x / cap); }

double sigmoid(double x) { return 1.0 / (1.0 + portable::exp(-x)); }

double route(std::span<const double> logits, std::int64_t chosen, bool renormalise,
             std::int32_t* ids, double* weights) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](std::int32_t id) { return logits[static_cast<std::size_t>(id)]; };
  // Softmax rises with the logit, so the order is the same; equal ones stay by id.
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t i, std::int32_t j) { return logit(i) > logit(j); });
  double all = 0.0;
  for (const std::int32_t id : order) all += portable::exp(logit(id) - logit(order[0]));
  double sum = 0.0;
  for (std::int64_t i = 0; i < chosen; ++i) {
    ids[i] = order[static_cast<std::size_t>(i)];
    weights[i] = portable::exp(logit(ids[i]) - logit(order[0])) / all;
    sum += weights[i];
  }
  for (std::int64_t i = 0; renormalise && i < chosen; ++i) weights[i] /= sum;
  if (chosen == static_cast<std::int64_t>(logits.size())) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return logit(ids[chosen - 1]) - logit(order[static_cast<std::size_t>(chosen)]);
}

std::vector<double> widened(const TensorView& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  tensor.values(0, tensor.elements(), values.data());
  return {values.begin(), values.end()};
}

}  // namespace driftscope::reference
