// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation/activation.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "kernels/activation/activation_rows.h"
#include "kernels/plan/portable_math.h"

namespace driftscope {
namespace {

using PieceFunction = void (*)(const SwigluPiece&);

// About as many elements as pay for handing a task to a thread.
constexpr std::int64_t kElementsPerTask = 4096;

template <PieceFunction piece_function>
void run(const SwigluArguments& arguments, Parallel& parallel) {
  assert(arguments.width > 0 && arguments.rows >= 0);
  assert(arguments.gate_stride >= arguments.width);
  assert(arguments.up == nullptr || arguments.up_stride >= arguments.width);
  assert(arguments.kind != ActivationKind::clamped_silu ||
         (arguments.up != nullptr && arguments.limit > 0.0F));
  const std::int64_t pieces = (arguments.width + kElementsPerTask - 1) / kElementsPerTask;
  const std::int64_t rows_per_task =
      pieces > 1 ? 1 : std::max<std::int64_t>(1, kElementsPerTask / arguments.width);
  const std::int64_t row_tasks = (arguments.rows + rows_per_task - 1) / rows_per_task;
  const auto task = [&](std::size_t index, int) {
    const std::int64_t first_row = static_cast<std::int64_t>(index) / pieces * rows_per_task;
    const std::int64_t column = static_cast<std::int64_t>(index) % pieces * kElementsPerTask;
    const std::int64_t end = std::min(arguments.rows, first_row + rows_per_task);
    for (std::int64_t row = first_row; row < end; ++row) {
      piece_function({.gate = arguments.gate + row * arguments.gate_stride + column,
                      .up = arguments.up == nullptr
                                ? nullptr
                                : arguments.up + row * arguments.up_stride + column,
                      .y = arguments.y + row * arguments.width + column,
                      .count = std::min(kElementsPerTask, arguments.width - column),
                      .silu_dtype = arguments.silu_dtype,
                      .output_dtype = arguments.output_dtype,
                      .kind = arguments.kind,
                      .limit = arguments.limit});
    }
  };
  parallel.run(static_cast<std::size_t>(row_tasks * pieces), task);
}

constexpr std::array kVariants = {
    SwigluVariant{"scalar", Isa::scalar, Determinism::device_to_device, true,
                  run<swiglu_piece_scalar>},
#if defined(__x86_64__)
    SwigluVariant{"avx2", Isa::avx2, Determinism::device_to_device, true, run<swiglu_piece_avx2>},
    SwigluVariant{"avx512", Isa::avx512, Determinism::device_to_device, true,
                  run<swiglu_piece_avx512>},
#endif
};

using CapFunction = void (*)(const SoftCapArguments&);
CapFunction cap_function([[maybe_unused]] Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx2) return soft_cap_piece_avx2;
  if (isa == Isa::avx512) return soft_cap_piece_avx512;
#endif
  return soft_cap_piece_scalar;
}

double activated(ActivationKind kind, double x) {
  switch (kind) {
    case ActivationKind::gelu_tanh: {
      const double root = std::sqrt(2.0 / 3.14159265358979323846);
      return 0.5 * x * (1.0 + portable::tanh(root * (x + 0.044715 * x * x * x)));
    }
    case ActivationKind::gelu_erf:
      return 0.5 * x * (1.0 + portable::erf(x / std::sqrt(2.0)));
    case ActivationKind::silu:
    case ActivationKind::clamped_silu:
      break;
  }
  return x / (1.0 + portable::exp(-x));
}

double reference_value(const ActivationArguments& arguments, double gate, double up) {
  if (arguments.kind != ActivationKind::clamped_silu) return activated(arguments.kind, gate) * up;
  const double limit = arguments.limit;
  gate = std::min(gate, limit);
  up = std::clamp(up, -limit, limit);
  return (up + 1.0) * gate / (1.0 + portable::exp(-1.702 * gate));
}

}  // namespace

std::string_view name_of(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::silu:
      return "silu";
    case ActivationKind::gelu_tanh:
      return "gelu_tanh";
    case ActivationKind::gelu_erf:
      return "gelu_erf";
    case ActivationKind::clamped_silu:
      return "clamped_silu";
  }
  return "?";
}

std::span<const SwigluVariant> swiglu_variants() { return kVariants; }

void swiglu(const ActivationArguments& arguments, Isa isa, Parallel& parallel) {
  for (const SwigluVariant& variant : kVariants) {
    if (variant.isa == isa) return variant.run(arguments, parallel);
  }
  kVariants[0].run(arguments, parallel);
}

void swiglu_reference(const ActivationArguments& arguments, double* y) {
  for (std::int64_t row = 0; row < arguments.rows; ++row) {
    for (std::int64_t i = 0; i < arguments.width; ++i) {
      const double gate = arguments.gate[row * arguments.gate_stride + i];
      const double up =
          arguments.up == nullptr ? 1.0 : double{arguments.up[row * arguments.up_stride + i]};
      y[row * arguments.width + i] = reference_value(arguments, gate, up);
    }
  }
}

void soft_cap(const SoftCapArguments& arguments, Isa isa, Parallel& parallel) {
  assert(arguments.cap > 0.0F && arguments.count >= 0);
  const CapFunction function = cap_function(isa);
  const auto task = [&](std::size_t index, int) {
    const std::int64_t begin = static_cast<std::int64_t>(index) * kElementsPerTask;
    SoftCapArguments piece = arguments;
    piece.x += begin;
    piece.count = std::min(kElementsPerTask, arguments.count - begin);
    function(piece);
  };
  parallel.run(
      static_cast<std::size_t>((arguments.count + kElementsPerTask - 1) / kElementsPerTask), task);
}

}  // namespace driftscope
