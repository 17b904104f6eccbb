// SPDX-License-Identifier: Apache-2.0
#include "kernels/rope/rope.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>

#include "kernels/plan/portable_math.h"
#include "kernels/rope/rope_rows.h"

namespace driftscope {
namespace {

using RowsFunction = void (*)(const RopeArguments&, std::int64_t, std::int64_t);

// About as many elements as pay for handing a task to a thread.
constexpr std::int64_t kElementsPerTask = 16384;

template <RowsFunction rows_function>
void run(const RopeArguments& arguments, Parallel& parallel) {
  assert(arguments.table != nullptr && arguments.head_dim >= 2 * arguments.table->half);
  for (std::int64_t row = 0; row < arguments.rows; ++row) {
    assert(arguments.positions[row] >= 0 && arguments.positions[row] < arguments.table->positions);
  }
  const std::int64_t row_elements = std::max<std::int64_t>(1, arguments.heads * arguments.head_dim);
  const std::int64_t rows_per_task = std::max<std::int64_t>(1, kElementsPerTask / row_elements);
  const std::int64_t tasks = (arguments.rows + rows_per_task - 1) / rows_per_task;
  const auto task = [&](std::size_t index, int) {
    const std::int64_t begin = static_cast<std::int64_t>(index) * rows_per_task;
    rows_function(arguments, begin, std::min(arguments.rows, begin + rows_per_task));
  };
  parallel.run(static_cast<std::size_t>(tasks), task);
}

constexpr std::array kVariants = {
    RopeVariant{"scalar", Isa::scalar, Determinism::device_to_device, true, run<rope_rows_scalar>},
#if defined(__x86_64__)
    RopeVariant{"avx2", Isa::avx2, Determinism::device_to_device, true, run<rope_rows_avx2>},
    RopeVariant{"avx512", Isa::avx512, Determinism::device_to_device, true, run<rope_rows_avx512>},
#endif
};

struct CosineSine {
  float cosine;
  float sine;
};

CosineSine table_entry(double frequency, std::int64_t position, Dtype dtype, double factor) {
  if (dtype == Dtype::f64) {
    const portable::SinCos exact = portable::sincos(static_cast<double>(position) * frequency);
    return {static_cast<float>(exact.cos * factor), static_cast<float>(exact.sin * factor)};
  }
  const float angle = static_cast<float>(position) * static_cast<float>(frequency);
  const portable::SinCos of_angle = portable::sincos(double{angle});
  const auto scale = static_cast<float>(factor);
  return {round_to(dtype, static_cast<float>(of_angle.cos) * scale),
          round_to(dtype, static_cast<float>(of_angle.sin) * scale)};
}

}  // namespace

RopeTable make_rope_table(const std::vector<double>& inverse_frequencies, std::int64_t positions,
                          Dtype table_dtype, double attention_factor) {
  assert(positions >= 0);
  RopeTable table;
  table.positions = positions;
  table.half = static_cast<std::int64_t>(inverse_frequencies.size());
  const std::size_t entries = static_cast<std::size_t>(positions) * inverse_frequencies.size();
  table.cosine.reserve(entries);
  table.sine.reserve(entries);
  for (std::int64_t position = 0; position < positions; ++position) {
    for (const double frequency : inverse_frequencies) {
      const CosineSine entry = table_entry(frequency, position, table_dtype, attention_factor);
      table.cosine.push_back(entry.cosine);
      table.sine.push_back(entry.sine);
    }
  }
  return table;
}

std::span<const RopeVariant> rope_variants() { return kVariants; }

void apply_rope(const RopeArguments& arguments, Isa isa, Parallel& parallel) {
  for (const RopeVariant& variant : kVariants) {
    if (variant.isa == isa) return variant.run(arguments, parallel);
  }
  kVariants[0].run(arguments, parallel);
}

void rope_reference(const RopeArguments& arguments, double* y) {
  const RopeTable& table = *arguments.table;
  const bool interleaved = arguments.layout == RopeLayout::interleaved;
  for (std::int64_t row = 0; row < arguments.rows; ++row) {
    for (std::int64_t head = 0; head < arguments.heads; ++head) {
      const std::int64_t start = (row * arguments.heads + head) * arguments.head_dim;
      for (std::int64_t i = 2 * table.half; i < arguments.head_dim; ++i) {
        y[start + i] = arguments.x[start + i];
      }
      for (std::int64_t i = 0; i < table.half; ++i) {
        const std::int64_t entry = arguments.positions[row] * table.half + i;
        const double cosine = table.cosine[static_cast<std::size_t>(entry)];
        const double sine = table.sine[static_cast<std::size_t>(entry)];
        const std::int64_t first = start + (interleaved ? 2 * i : i);
        const std::int64_t second = start + (interleaved ? 2 * i + 1 : i + table.half);
        y[first] = arguments.x[first] * cosine - arguments.x[second] * sine;
        y[second] = arguments.x[second] * cosine + arguments.x[first] * sine;
      }
    }
  }
}

}  // namespace driftscope
