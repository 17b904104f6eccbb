// SPDX-License-Identifier: Apache-2.0
// Writes safetensors bytes and tiny checkpoints, right ones and wrong ones.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/model/temporary_directory.h"

namespace driftscope {

// 8 bytes of length, the header, the data.
[[nodiscard]] std::string safetensors_bytes(const std::string& header, const std::string& data);
[[nodiscard]] std::string u64_bytes(std::uint64_t value);  // little-endian

struct BuiltTensor {
  std::string name;
  std::string dtype = "F32";
  std::vector<std::int64_t> shape;
};

// A file of tensors of zeros; header padded with spaces so that the data begins at a multiple
// of 8, plus `extra_padding`.
[[nodiscard]] std::string tensor_file(const std::vector<BuiltTensor>& tensors,
                                      std::size_t extra_padding = 0);

// A small config.json: hidden 8, 2 layers, 2 heads, 1 kv head, intermediate 12, vocabulary 16.
[[nodiscard]] nlohmann::json small_config(const std::string& model_type);
// The tensors such a config needs, with biases, q/k norms and output head as the config says.
// Written out here from the published layout, not taken from the engine's table.
[[nodiscard]] std::vector<BuiltTensor> small_tensors(const nlohmann::json& config,
                                                     const std::string& prefix = "model.");
// Writes both into the directory.
void write_checkpoint(const TemporaryDirectory& directory, const nlohmann::json& config,
                      const std::vector<BuiltTensor>& tensors);

}  // namespace driftscope
