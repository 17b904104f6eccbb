// SPDX-License-Identifier: Apache-2.0
// Where two checkpoints of one architecture hold different weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/model/checkpoint.h"

namespace driftscope {

struct TensorDifference {
  std::string name;
  std::int64_t elements = 0;
  std::int64_t different = 0;  // elements whose values differ
  double max_abs = 0.0;
  // Largest distance in units in the last place of the stored type; -1 where the types differ.
  std::int64_t max_ulp = -1;
  std::int64_t first = 0;  // index of the first element that differs
  double value_a = 0.0;    // there
  double value_b = 0.0;
};

struct WeightDifference {
  std::int64_t tensors = 0;                 // compared
  std::vector<TensorDifference> different;  // in the order of the network
};

// Tensors that are present on both sides with one shape. Reads both checkpoints where they differ.
[[nodiscard]] WeightDifference weight_difference(const ModelCheckpoint& a,
                                                 const ModelCheckpoint& b);

// One sentence, e.g. "1 of 38 tensors differs: model.layers.2.mlp.down_proj.weight, 1 of 98304
// elements, by at most 1 unit in the last place of bf16; first element 4000: -0.0359 and -0.0361".
[[nodiscard]] std::string describe(const WeightDifference& difference,
                                   const ModelDescription& description);

}  // namespace driftscope
