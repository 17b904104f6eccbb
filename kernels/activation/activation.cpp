// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation/activation.h"

#include <algorithm>
#include <array>
#include <cassert>

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
  assert(arguments.gate_stride >= arguments.width && arguments.up_stride >= arguments.width);
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
                      .up = arguments.up + row * arguments.up_stride + column,
                      .y = arguments.y + row * arguments.width + column,
                      .count = std::min(kElementsPerTask, arguments.width - column),
                      .silu_dtype = arguments.silu_dtype,
                      .output_dtype = arguments.output_dtype});
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

}  // namespace

std::span<const SwigluVariant> swiglu_variants() { return kVariants; }

void swiglu(const SwigluArguments& arguments, Isa isa, Parallel& parallel) {
  for (const SwigluVariant& variant : kVariants) {
    if (variant.isa == isa) return variant.run(arguments, parallel);
  }
  kVariants[0].run(arguments, parallel);
}

void swiglu_reference(const SwigluArguments& arguments, double* y) {
  for (std::int64_t row = 0; row < arguments.rows; ++row) {
    for (std::int64_t i = 0; i < arguments.width; ++i) {
      const double gate = arguments.gate[row * arguments.gate_stride + i];
      const double up = arguments.up[row * arguments.up_stride + i];
      y[row * arguments.width + i] = gate / (1.0 + portable::exp(-gate)) * up;
    }
  }
}

}  // namespace driftscope
