// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernels/attention/attention_task.h"
#include "kernels/plan/portable_math.h"
#include "kernels/quant/kv_codec.h"

namespace driftscope {
namespace {

std::vector<float> widen_cache(const AttentionArguments& arguments, const CacheSide& side,
                               std::int64_t keys) {
  std::vector<float> values(
      static_cast<std::size_t>(keys * arguments.kv_heads * arguments.head_dim));
  float* target = values.data();
  for (std::int64_t key = 0; key < keys; ++key) {
    for (std::int64_t kv_head = 0; kv_head < arguments.kv_heads; ++kv_head) {
      const CacheHead head = cache_head(arguments, side, key, kv_head);
      kv_widen(arguments.kv_dtype, head.data, head.scale, target, arguments.head_dim);
      target += arguments.head_dim;
    }
  }
  return values;
}

double capped(double score, double cap) {
  return cap > 0.0 ? cap * portable::tanh(score / cap) : score;
}

void softmax_f64(std::vector<double>& row) {
  const double max = *std::ranges::max_element(row);
  double sum = 0.0;
  for (double& value : row) sum += value = portable::exp(value - max);
  for (double& value : row) value /= sum;
}

// q, y: [head_dim]; k, v: the first key of the head, `stride` elements from key to key; sink: null
// or one score.
void query_reference(const AttentionArguments& arguments, KeyRange keys, const float* q,
                     const float* k, const float* v, const float* sink, double* y) {
  const std::int64_t stride = arguments.kv_heads * arguments.head_dim;
  std::vector<double> row;
  for (std::int64_t key = keys.begin; key < keys.end; ++key) {
    double dot = 0.0;
    for (std::int64_t i = 0; i < arguments.head_dim; ++i) {
      dot += double{q[i]} * double{k[key * stride + i]};
    }
    row.push_back(capped(dot * double{arguments.scale}, double{arguments.softcap}));
  }
  if (sink != nullptr) row.push_back(double{*sink});
  softmax_f64(row);
  for (std::int64_t i = 0; i < arguments.head_dim; ++i) {
    double sum = 0.0;
    for (std::int64_t key = keys.begin; key < keys.end; ++key) {
      sum += row[static_cast<std::size_t>(key - keys.begin)] * double{v[key * stride + i]};
    }
    y[i] = sum;
  }
}

}  // namespace

void attention_reference(const AttentionArguments& arguments, double* y) {
  for (const AttentionSequence& sequence : arguments.sequences) {
    const std::int64_t length = sequence.first_position + sequence.rows;
    const std::vector<float> k = widen_cache(arguments, keys_of(sequence), length);
    const std::vector<float> v = widen_cache(arguments, values_of(sequence), length);
    for (std::int64_t row = 0; row < sequence.rows; ++row) {
      const KeyRange keys = visible_keys(arguments, sequence.first_position + row);
      for (std::int64_t head = 0; head < arguments.heads; ++head) {
        const std::int64_t offset =
            head / (arguments.heads / arguments.kv_heads) * arguments.head_dim;
        query_reference(arguments, keys,
                        sequence.q + row * sequence.q_stride + head * arguments.head_dim,
                        k.data() + offset, v.data() + offset,
                        arguments.sinks == nullptr ? nullptr : arguments.sinks + head, y);
        y += arguments.head_dim;
      }
    }
  }
}

}  // namespace driftscope
