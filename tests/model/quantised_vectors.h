// SPDX-License-Identifier: Apache-2.0
// The tiny quantised checkpoints of quantised_vectors.json, and plain files beside them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace driftscope {

struct RawTensor {
  std::string name, dtype;
  std::vector<std::int64_t> shape;
  std::string bytes;
};
// A safetensors file; the data begin wherever the header ends.
[[nodiscard]] std::string raw_file(const std::vector<RawTensor>& tensors);

[[nodiscard]] const nlohmann::json& quantised_vectors();
[[nodiscard]] const nlohmann::json& quantised_vector(const std::string& name);  // of "models"
[[nodiscard]] std::vector<RawTensor> tensors_of(const nlohmann::json& list);

// config.json and model.safetensors of that model.
void write_quantised_model(const std::filesystem::path& folder, const std::string& name);
// The checkpoint in `folder` once more, its values as F32 and without quantization_config.
void write_plain_twin(const std::filesystem::path& folder, const std::filesystem::path& twin);

}  // namespace driftscope
