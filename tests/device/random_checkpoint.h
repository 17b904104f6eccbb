// SPDX-License-Identifier: Apache-2.0
// A checkpoint with random weights, in memory only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/model/checkpoint.h"

namespace driftscope::parity {

struct RandomModel {
  std::string type = "llama";  // "qwen2…": biases on q, k, v; "qwen3…": norms on q and k
  std::int64_t hidden = 32;
  std::int64_t layers = 2;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t head_dim = 8;
  std::int64_t intermediate = 40;
  std::int64_t vocabulary = 50;
  std::int64_t sliding_window = 0;
  bool tied = false;
  ExpertDescription moe = {};  // experts 0: every layer is dense
};

// Weights in bf16 with a spread of about 1 / sqrt(inputs), so that activations keep their size.
[[nodiscard]] std::shared_ptr<const ModelCheckpoint> random_checkpoint(const RandomModel& model);

}  // namespace driftscope::parity
