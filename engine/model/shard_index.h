// SPDX-License-Identifier: Apache-2.0
// model.safetensors.index.json: which shard holds which tensor. The names come from outside,
// so nothing they say may lead out of the checkpoint's directory.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kernels/base/result.h"

namespace driftscope {

struct ShardIndex {
  std::vector<std::string> shards;                  // sorted, as named in the index
  std::map<std::string, std::size_t> tensor_shard;  // tensor -> position in `shards`
};

[[nodiscard]] Result<ShardIndex> read_shard_index(const std::filesystem::path& index_file);

// The file of a shard. A symbolic link may lead into the `blobs` folder of the same hub cache
// entry (snapshots/REVISION/NAME -> ../../blobs/HASH), nowhere else outside the directory.
[[nodiscard]] Result<std::filesystem::path> resolve_shard(const std::filesystem::path& index_file,
                                                          const std::string& shard);

}  // namespace driftscope
