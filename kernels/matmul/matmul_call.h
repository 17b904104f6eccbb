// SPDX-License-Identifier: Apache-2.0
// Internal: what the ways through a matmul share: the call, its chunks and how they end.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/matmul_kernels.h"
#include "kernels/matmul/matmul_scratch.h"

namespace driftscope::matmul_detail {

constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}
constexpr std::int64_t ceil_divide(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step;
}

// What all tasks of one call share.
struct Call {
  const MatmulArguments& arguments;
  const MatmulKernels& kernels;
  std::vector<int> order;  // of arrival, where the plan asks for one
  std::int64_t k;
  std::int64_t n;
  std::int64_t x_stride;
  std::int64_t y_stride;
  std::int64_t chunk;   // terms of every chunk but the last
  std::int64_t chunks;  // chunks that are not empty
};

const void* weight_at(const WeightView& weight, std::int64_t row, std::int64_t column);
// Bytes from one output's weights to the next's.
std::int64_t weight_row_bytes(const WeightView& weight);
std::int64_t length_of(const Call& call, std::int64_t chunk);

// Weights of a chunk as a kernel for plain elements reads them.
struct PlainWeights {
  const void* data;  // [rows, length]
  std::int64_t stride;
  Dtype dtype;
};
// Quantised weights as f32, in `scratch`; others where they lie.
PlainWeights plain_weights(const Call& call, std::int64_t n0, std::int64_t rows, std::int64_t begin,
                           std::int64_t length, Scratch& scratch);

// y[i, n0 … n0 + count) for rows [m0, m0 + rows): bias, canonical NaN, the one rounding.
void finish(const Call& call, std::int64_t m0, std::int64_t rows, std::int64_t n0,
            std::int64_t count);
bool single_plain_chunk(const Call& call);
// Combines [split_k, rows, columns] and writes y[m0 …, n0 …].
void store_chunks(const Call& call, float* sums, std::int64_t m0, std::int64_t rows,
                  std::int64_t n0, std::int64_t columns);

// Few rows, straight from the weights; many rows, packed. Which of the two computes an output
// changes no bit of it.
void run_many_rows(const Call& call, Parallel& parallel);

}  // namespace driftscope::matmul_detail
