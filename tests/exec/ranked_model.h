// SPDX-License-Identifier: Apache-2.0
// A small model that up to eight ranks can share, and configurations that make them.
#pragma once

#include <array>
#include <map>

#include "tests/exec/recording.h"
#include "tests/exec/tiny_checkpoint.h"

namespace driftscope::test {

inline constexpr std::int64_t kVocabulary = 157;  // no number of ranks divides it

// Biases on q, k and v; up to 8 ranks, of which 8 share 4 key and value heads.
[[nodiscard]] inline TinyModel eight_heads() {
  return {.type = "qwen2",
          .hidden = 64,
          .layers = 2,
          .heads = 8,
          .kv_heads = 4,
          .head_dim = 16,
          .intermediate = 96,
          .vocabulary = kVocabulary};
}

[[nodiscard]] inline LaneInput input_of(const TinyModel& model, const RunConfig& config,
                                        std::int64_t prompt = 13) {
  using Shape = std::array<std::int64_t, 3>;
  static std::map<Shape, std::shared_ptr<const ModelCheckpoint>> known;
  auto& checkpoint = known[{model.heads, model.kv_heads, model.intermediate}];
  if (!checkpoint) checkpoint = tiny_checkpoint(model);
  LaneInput input{
      .model = checkpoint, .config = config, .prompt = some_ids(prompt, model.vocabulary, 5)};
  for (std::int64_t i = 0; i < config.neighbours; ++i) {
    input.neighbour_prompts.push_back(
        some_ids(4 + 3 * i, model.vocabulary, 30 + static_cast<unsigned>(i)));
  }
  return input;
}

[[nodiscard]] inline RunConfig config_of(std::int64_t ranks, AllReduce order = AllReduce::one_shot,
                                         Dtype dtype = Dtype::f32) {
  RunConfig config;
  config.tensor_parallel = ranks;
  config.all_reduce = order;
  config.reduce_dtype = dtype;
  config.threads = 1;
  config.sampling.ignore_eos = true;
  return config;
}

[[nodiscard]] inline RunConfig invariant_config(std::int64_t ranks) {
  RunConfig config = config_of(ranks, AllReduce::tree);
  config.tensor_parallel_invariant = true;
  return config;
}

}  // namespace driftscope::test
