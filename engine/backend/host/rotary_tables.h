// SPDX-License-Identifier: Apache-2.0
// The rotary tables of a model: one for most, a second one for layers that rotate locally (Gemma 3)
// and another for sequences beyond the original length (LongRoPE).
#pragma once

#include <cstdint>

#include "engine/model/checkpoint.h"
#include "kernels/plan/dtype.h"
#include "kernels/rope/rope.h"

namespace driftscope {

// LongRoPE: a call rotates the positions that it computes by the long factors once the sequence,
// those positions included, is longer than original_max_positions, and by the short ones before.
// Keys that are in the cache stay as they were rotated, as in the reference implementation
// (transformers): a prompt that crosses the length token by token is not the prompt in one call.
class RotaryTables {
 public:
  // `model` outlives the tables.
  RotaryTables(const ModelDescription& model, Dtype table_dtype)
      : m_model(model), m_dtype(table_dtype) {}

  // A row depends on its position only, so growing changes no value.
  void grow(std::int64_t positions);
  // Whether a sequence of so many tokens takes the long factors.
  [[nodiscard]] bool is_long(std::int64_t tokens) const {
    return m_model.rope_scaling.kind == RopeScaling::Kind::longrope &&
           tokens > m_model.rope_scaling.original_max_positions;
  }
  [[nodiscard]] const RopeTable& of(std::int64_t layer, bool long_sequence) const {
    if (m_model.rotates_locally(layer)) return m_local;
    return long_sequence ? m_long : m_short;
  }

 private:
  const ModelDescription& m_model;
  Dtype m_dtype;
  RopeTable m_short;  // or the only one
  RopeTable m_long;
  RopeTable m_local;
};

}  // namespace driftscope
