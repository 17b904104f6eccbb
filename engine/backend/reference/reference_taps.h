// SPDX-License-Identifier: Apache-2.0
// Tap rows of the f64 witness, rounded once to f32.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/backend/taps.h"
#include "engine/model/checkpoint.h"
#include "engine/trace/trace.h"

namespace driftscope::reference {

// Holds the rows of one sequence whose logits are wanted. What is not recorded (the parts inside a
// mixture of experts) stays NaN.
class Taps {
 public:
  explicit Taps(const ModelDescription& model) : m_model(model) {}
  // Starts a call that keeps `rows` rows at `level`; none at TapLevel::logits.
  void begin(TapLevel level, std::int64_t rows);
  // x: [rows of the call, width]; its last rows are those that are kept.
  void record(Operation operation, std::int64_t layer, const std::vector<double>& x);
  // Of the index-th kept row; valid until the next begin(). Empty where none are kept.
  [[nodiscard]] std::span<const TensorTap> row(std::int64_t index);

 private:
  const ModelDescription& m_model;
  TapLevel m_level = TapLevel::logits;
  std::vector<TapSpec> m_specs;
  std::vector<std::int64_t> m_offsets;  // of each spec in a row
  std::int64_t m_rows = 0;
  std::int64_t m_row_width = 0;
  std::vector<float> m_values;  // [rows, row width]
  std::vector<TensorTap> m_taps;
};

}  // namespace driftscope::reference
