// SPDX-License-Identifier: Apache-2.0
// A small attention problem that owns its memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/quant/kv_codec.h"
#include "operation_support.h"

namespace driftscope::testing {

struct AttentionShape {
  std::int64_t rows = 1;
  std::int64_t first_position = 0;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 8;
};

struct AttentionProblem {
  AttentionShape shape;
  AttentionArguments arguments;  // sequences are filled in by run()
  std::vector<float> q;          // [rows, heads, head_dim]
  std::vector<char> k;           // [first_position + rows, kv_heads, head_dim] of kv_dtype
  std::vector<char> v;
  std::vector<float> k_scales;  // [first_position + rows, kv_heads]
  std::vector<float> v_scales;

  AttentionProblem(AttentionShape of, Dtype kv_dtype, std::uint64_t seed, float range = 1.0F)
      : AttentionProblem(of,
                         kv_dtype == Dtype::f32   ? KvDtype::f32
                         : kv_dtype == Dtype::f16 ? KvDtype::f16
                                                  : KvDtype::bf16,
                         seed, range) {}
  AttentionProblem(AttentionShape of, KvDtype kv_dtype, std::uint64_t seed, float range = 1.0F)
      : shape(of) {
    Values values(seed);
    arguments.heads = of.heads;
    arguments.kv_heads = of.kv_heads;
    arguments.head_dim = of.head_dim;
    arguments.kv_dtype = kv_dtype;
    const std::int64_t cache = (of.first_position + of.rows) * of.kv_heads * of.head_dim;
    set_q(values.uniform(of.rows * of.heads * of.head_dim, range));
    set_k(values.uniform(cache, range));
    set_v(values.uniform(cache, range));
  }
  void set_q(std::vector<float> values) { q = std::move(values); }
  void set_k(const std::vector<float>& values) { k = stored(values, k_scales); }
  void set_v(const std::vector<float>& values) { v = stored(values, v_scales); }

  // Rows begin … begin + count - 1 of the problem in a call of their own.
  [[nodiscard]] std::vector<float> run_rows(Isa isa, std::int64_t begin, std::int64_t count,
                                            Parallel& parallel) const {
    const std::int64_t stride = shape.heads * shape.head_dim;
    std::vector<float> y(static_cast<std::size_t>(count * stride), -1.0F);
    const AttentionSequence sequence{.q = q.data() + begin * stride,
                                     .q_stride = stride,
                                     .k = k.data(),
                                     .v = v.data(),
                                     .rows = count,
                                     .first_position = shape.first_position + begin,
                                     .y = y.data(),
                                     .k_scales = k_scales.data(),
                                     .v_scales = v_scales.data()};
    AttentionArguments call = arguments;
    call.sequences = {&sequence, 1};
    attention(call, isa, parallel);
    return y;
  }
  [[nodiscard]] std::vector<float> run(Isa isa) const {
    SerialParallel serial;
    return run_rows(isa, 0, shape.rows, serial);
  }
  [[nodiscard]] std::vector<double> reference() const {
    const std::int64_t stride = shape.heads * shape.head_dim;
    const AttentionSequence sequence{.q = q.data(),
                                     .q_stride = stride,
                                     .k = k.data(),
                                     .v = v.data(),
                                     .rows = shape.rows,
                                     .first_position = shape.first_position,
                                     .k_scales = k_scales.data(),
                                     .v_scales = v_scales.data()};
    AttentionArguments call = arguments;
    call.sequences = {&sequence, 1};
    std::vector<double> y(static_cast<std::size_t>(shape.rows * stride));
    attention_reference(call, y.data());
    return y;
  }

 private:
  [[nodiscard]] std::vector<char> stored(const std::vector<float>& values,
                                         std::vector<float>& scales) const {
    std::vector<char> bytes(values.size() * dtype_size(arguments.kv_dtype));
    const auto heads = static_cast<std::int64_t>(values.size()) / shape.head_dim;
    scales.resize(static_cast<std::size_t>(heads));
    kv_store(arguments.kv_dtype, values.data(), heads, shape.head_dim, bytes.data(), scales.data());
    return bytes;
  }
};

}  // namespace driftscope::testing
