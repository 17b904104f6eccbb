// SPDX-License-Identifier: Apache-2.0
// The table of inner loops, compiled once for AVX2 and once for AVX-512.
#pragma once

#include "kernels/attention/attention_vector.h"
#include "kernels/attention/score_simd.h"
#include "kernels/attention/transpose_simd.h"
#include "kernels/plan/portable_curve_simd.h"
#include "kernels/softmax/row_simd.h"

#if defined(__AVX2__) && defined(__FMA__)

namespace driftscope::simd {
namespace {

#if defined(__AVX512F__)
constexpr int kValueRegisters = 5;  // head_dim 64 and the denominator
#else
constexpr int kValueRegisters = 3;
#endif

// Queries x Registers accumulators stay in registers over all keys of the block.
template <int Queries, int Registers>
DRIFTSCOPE_INLINE void add_value_columns(const ValueBlock& block, std::int64_t column) {
  Floats sums[Queries][Registers];
  for (int query = 0; query < Queries; ++query) {
    for (int r = 0; r < Registers; ++r) {
      sums[query][r] = load(block.sums + query * block.columns + column + r * kWidth);
    }
  }
  for (std::int64_t key = 0; key < block.keys; ++key) {
    const float* values = block.values + key * block.columns + column;
    for (int query = 0; query < Queries; ++query) {
      const Floats weight = all(block.weights[query * block.weight_stride + key]);
      for (int r = 0; r < Registers; ++r) {
        sums[query][r] = fma(weight, load(values + r * kWidth), sums[query][r]);
      }
    }
  }
  for (int query = 0; query < Queries; ++query) {
    for (int r = 0; r < Registers; ++r) {
      store(block.sums + query * block.columns + column + r * kWidth, sums[query][r]);
    }
  }
}

template <int Queries, int Registers>
DRIFTSCOPE_INLINE void add_rest(const ValueBlock& block, std::int64_t column, std::int64_t rest) {
  if constexpr (Registers > 0) {
    if (rest == Registers) return add_value_columns<Queries, Registers>(block, column);
    add_rest<Queries, Registers - 1>(block, column, rest);
  }
}

template <int Queries>
void add_values_of(const ValueBlock& block) {
  std::int64_t column = 0;
  for (; column + kValueRegisters * kWidth <= block.columns; column += kValueRegisters * kWidth) {
    add_value_columns<Queries, kValueRegisters>(block, column);
  }
  add_rest<Queries, kValueRegisters - 1>(block, column, (block.columns - column) / kWidth);
}

void add_values(const ValueBlock& block) {
  switch (block.queries) {
    case 4:
      return add_values_of<4>(block);
    case 3:
      return add_values_of<3>(block);
    case 2:
      return add_values_of<2>(block);
    default:
      return add_values_of<1>(block);
  }
}

void cap_row(float* row, std::int64_t count, float cap, Dtype dtype) {
  for (std::int64_t i = 0; i < count; i += kWidth) {
    store(row + i, soft_capped(load(row + i), cap, dtype, dtype));
  }
}

float row_max_of(const float* row, std::int64_t count) { return row_max(row, count); }

void row_exp_in_place(float* row, std::int64_t count, float max_value, Dtype dtype) {
  row_exp(row, row, count, max_value, dtype);
}

void scale_row(float* row, std::int64_t count, float factor) {
  for (std::int64_t i = 0; i < count; i += kWidth) store(row + i, mul(load(row + i), all(factor)));
}

void merge_rows(float* into, float into_factor, const float* from, float from_factor,
                std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += kWidth) {
    const Floats scaled_into = mul(load(into + i), all(into_factor));
    store(into + i, fma(load(from + i), all(from_factor), scaled_into));
  }
}

void finish_row(const float* row, float denominator, float* y, std::int64_t count, Dtype dtype) {
  for (std::int64_t i = 0; i < count; i += kWidth) {
    const Floats result = round_result(dtype, div(load(row + i), all(denominator)));
    store_first(y + i, count - i < kWidth ? count - i : kWidth, result);
  }
}

constexpr AttentionVector kAttentionVector = {.width = kWidth,
                                              .transpose_keys = transpose_keys,
                                              .widen_values = widen_values,
                                              .score = score,
                                              .cap_row = cap_row,
                                              .row_max = row_max_of,
                                              .row_exp = row_exp_in_place,
                                              .add_values = add_values,
                                              .scale_row = scale_row,
                                              .merge_rows = merge_rows,
                                              .finish_row = finish_row};

}  // namespace
}  // namespace driftscope::simd

#endif
