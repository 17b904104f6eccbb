// SPDX-License-Identifier: Apache-2.0
// The oracle's architectures: checkpoints, prompts and exact logits, and the f64 witness on them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "engine/backend/backend.h"
#include "tests/exec/npy.h"
#include "tests/exec/tiny_checkpoint.h"

namespace driftscope::test {

[[nodiscard]] const std::filesystem::path& oracle_folder();

#define NEED_ORACLE() \
  if (!std::filesystem::exists(oracle_folder())) GTEST_SKIP() << "no data at " << oracle_folder()

[[nodiscard]] nlohmann::json read_json(const std::filesystem::path& path);
[[nodiscard]] std::vector<TokenId> tokens_of(const nlohmann::json& json);
[[nodiscard]] std::vector<TokenId> prompt_of(const std::string& model, int prompt);

// The weights of a folder under another configuration; the checkpoint's own folder goes with it.
[[nodiscard]] std::shared_ptr<const ModelCheckpoint> open_with_config(
    const std::filesystem::path& folder, const nlohmann::json& config);
// A model of the oracle under one of its configurations.
[[nodiscard]] std::shared_ptr<const ModelCheckpoint> open_oracle(
    const std::string& model, const std::string& config_file = "config.json");

[[nodiscard]] double largest_difference(std::span<const float> ours, const double* exact);

// The f64 backend without the engine around it. Errors throw std::runtime_error.
class Witness {
 public:
  explicit Witness(const std::shared_ptr<const ModelCheckpoint>& model);
  // Logits after each token of the prompt, the whole of it in one call: [tokens, vocabulary].
  [[nodiscard]] std::vector<float> score(const std::vector<TokenId>& prompt);
  [[nodiscard]] std::vector<TokenId> greedy(const std::vector<TokenId>& prompt, std::size_t count);

 private:
  std::vector<float> run(KvCache& cache, const std::vector<TokenId>& tokens,
                         std::int64_t output_rows);
  std::unique_ptr<Backend> m_backend;
};

// The witness works in f64 and returns f32: half a unit in the last place of logits up to 16 is
// 4.8e-7, far more than the f64 arithmetic leaves.
inline constexpr double kWitnessTolerance = 4.8e-7;

}  // namespace driftscope::test
