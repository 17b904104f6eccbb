// SPDX-License-Identifier: Apache-2.0
// The scalar definition: the oracle of the other variants.
#include <cmath>

#include "kernels/rope/rope_rows.h"

namespace driftscope {
namespace {

struct Pair {
  float first;
  float second;
};

Pair rotate(const RopeArguments& arguments, Pair x, float cosine, float sine) {
  const Dtype dtype = arguments.output_dtype;
  if (arguments.round_products) {
    return {round_to(dtype, round_to(dtype, x.first * cosine) - round_to(dtype, x.second * sine)),
            round_to(dtype, round_to(dtype, x.second * cosine) + round_to(dtype, x.first * sine))};
  }
  return {round_to(dtype, std::fma(x.first, cosine, -(x.second * sine))),
          round_to(dtype, std::fma(x.second, cosine, x.first * sine))};
}

}  // namespace

RopeEntry rope_entry(const RopeTable& table, std::int64_t position) {
  return {.cosine = table.cosine.data() + position * table.half,
          .sine = table.sine.data() + position * table.half};
}

void rope_rows_scalar(const RopeArguments& arguments, std::int64_t begin, std::int64_t end) {
  const RopeTable& table = *arguments.table;
  const bool interleaved = arguments.layout == RopeLayout::interleaved;
  for (std::int64_t row = begin; row < end; ++row) {
    const RopeEntry entry = rope_entry(table, arguments.positions[row]);
    for (std::int64_t head = 0; head < arguments.heads; ++head) {
      float* x = arguments.x + (row * arguments.heads + head) * arguments.head_dim;
      for (std::int64_t i = 0; i < table.half; ++i) {
        float& first = x[interleaved ? 2 * i : i];
        float& second = x[interleaved ? 2 * i + 1 : i + table.half];
        const Pair rotated = rotate(arguments, {first, second}, entry.cosine[i], entry.sine[i]);
        first = canonical_nan(rotated.first);
        second = canonical_nan(rotated.second);
      }
    }
  }
}

}  // namespace driftscope
