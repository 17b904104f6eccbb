// SPDX-License-Identifier: Apache-2.0
// The safetensors files of a checkpoint: one file, or an index with its shards.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/model/files.h"
#include "engine/model/safetensors.h"

namespace driftscope {

struct StoredTensor {
  std::string_view dtype;  // the format's name
  std::vector<std::uint64_t> shape;
  std::string_view bytes;  // inside a mapping, or inside an aligned copy
  std::size_t file = 0;    // index into ShardSet::files
};

// Every tensor of a checkpoint, mapped. Opening reads the headers only.
struct ShardSet {
  std::vector<std::filesystem::path> files;  // weight files, then the index where there is one
  std::vector<MappedFile> mappings;
  std::unordered_map<std::string, StoredTensor> tensors;
};

// Errors: malformed, one line with the file, the tensor and the rule.
[[nodiscard]] Result<ShardSet> open_shards(const std::filesystem::path& directory);

}  // namespace driftscope
