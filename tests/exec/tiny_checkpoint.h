// SPDX-License-Identifier: Apache-2.0
// Small random checkpoints in Hugging Face layout, written to a folder that goes away again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/checkpoint.h"
#include "kernels/plan/dtype.h"

namespace driftscope::test {

// A new, empty folder below the system's temporary folder, removed with its contents at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return m_path; }

 private:
  std::filesystem::path m_path;
};

struct TinyModel {
  // "qwen2…" has biases on q, k, v; "qwen3…" norms on q and k; "mixtral", "qwen2_moe" and
  // "qwen3_moe" have experts, "qwen2_moe" a shared one besides.
  std::string type = "llama";
  std::int64_t hidden = 64;
  std::int64_t layers = 3;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t head_dim = 16;
  std::int64_t intermediate = 96;
  std::int64_t vocabulary = 160;
  std::int64_t max_positions = 256;
  std::int64_t sliding_window = 0;
  bool tied = false;
  Dtype dtype = Dtype::bf16;
  std::uint64_t seed = 1;
  std::vector<std::int32_t> eos = {};
  // Mixtures of experts only.
  std::int64_t experts = 6;
  std::int64_t chosen = 2;
  std::int64_t expert_intermediate = 48;  // mixtral: `intermediate` instead
  std::int64_t shared_intermediate = 80;
  bool renormalise = true;                      // mixtral always does
  std::vector<std::int64_t> dense_layers = {};  // not mixtral
  [[nodiscard]] bool has_experts(std::int64_t layer) const;
};

struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};
// Weights with standard deviation 1 / sqrt(inputs), so that activations keep their size.
[[nodiscard]] std::vector<NamedTensor> random_tensors(const TinyModel& model);
void write_checkpoint(const std::filesystem::path& folder, const TinyModel& model,
                      const std::vector<NamedTensor>& tensors);

// Writes random_tensors(model) and opens them; the folder is gone when the pointer is.
[[nodiscard]] std::shared_ptr<const ModelCheckpoint> tiny_checkpoint(const TinyModel& model);
[[nodiscard]] std::shared_ptr<const ModelCheckpoint> open_tensors(
    const TinyModel& model, const std::vector<NamedTensor>& tensors);

}  // namespace driftscope::test
