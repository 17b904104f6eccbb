// SPDX-License-Identifier: Apache-2.0
#include "engine/model/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "engine/model/shard_index.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

namespace fs = std::filesystem;

struct OpenShard {
  MappedFile mapping;
  std::vector<SafetensorsEntry> entries;
};

Result<OpenShard> open_shard(const fs::path& path) {
  auto mapping = MappedFile::open(path);
  if (!mapping) return tl::unexpected(std::move(mapping.error()));
  auto entries = parse_safetensors(mapping->bytes(), display_path(path));
  if (!entries) return tl::unexpected(std::move(entries.error()));
  return OpenShard{std::move(*mapping), std::move(*entries)};
}

StoredTensor stored(SafetensorsEntry& entry, std::string_view file_bytes, std::size_t file) {
  return StoredTensor{.dtype = entry.dtype,
                      .shape = std::move(entry.shape),
                      .bytes = file_bytes.substr(entry.begin, entry.end - entry.begin),
                      .file = file};
}

Result<ShardSet> open_single(const fs::path& path) {
  auto shard = open_shard(path);
  if (!shard) return tl::unexpected(std::move(shard.error()));
  ShardSet set;
  for (SafetensorsEntry& entry : shard->entries) {
    set.tensors.emplace(std::move(entry.name), stored(entry, shard->mapping.bytes(), 0));
  }
  set.files.push_back(path);
  set.mappings.push_back(std::move(shard->mapping));
  return set;
}

// Adds the tensors of one shard. Each must be mapped to this shard, or not be mapped at all.
Result<void> add_shard(ShardSet& set, const ShardIndex& index, std::size_t position,
                       OpenShard& shard, const fs::path& index_file) {
  const std::string& shard_name = index.shards[position];
  for (SafetensorsEntry& entry : shard.entries) {
    const auto mapped = index.tensor_shard.find(entry.name);
    const bool elsewhere = mapped != index.tensor_shard.end() && mapped->second != position;
    const auto [slot, inserted] =
        set.tensors.try_emplace(entry.name, stored(entry, shard.mapping.bytes(), position));
    if (elsewhere || !inserted) {
      const std::size_t other = elsewhere ? mapped->second : slot->second.file;
      return fail(
          ErrorKind::malformed,
          fmt::format("{}: tensor {} is in two shards, {} and {}; download the checkpoint "
                      "again",
                      display_path(index_file), escape_for_display(entry.name),
                      escape_for_display(shard_name), escape_for_display(index.shards[other])));
    }
  }
  return {};
}

Result<ShardSet> open_sharded(const fs::path& index_file) {
  const auto index = read_shard_index(index_file);
  if (!index) return tl::unexpected(index.error());
  ShardSet set;
  for (std::size_t position = 0; position < index->shards.size(); ++position) {
    const auto path = resolve_shard(index_file, index->shards[position]);
    if (!path) return tl::unexpected(path.error());
    const fs::path shown = index_file.parent_path() / index->shards[position];
    auto shard = open_shard(shown);
    if (!shard) return tl::unexpected(std::move(shard.error()));
    if (shard->mapping.hard_links() > 1) {
      return fail(ErrorKind::malformed,
                  fmt::format("{}: is a hard link with another name elsewhere; copy the file",
                              display_path(shown)));
    }
    if (auto added = add_shard(set, *index, position, *shard, index_file); !added) {
      return tl::unexpected(std::move(added.error()));
    }
    set.files.push_back(shown);
    set.mappings.push_back(std::move(shard->mapping));
  }
  for (const auto& [tensor, position] : index->tensor_shard) {
    if (set.tensors.contains(tensor)) continue;
    return fail(ErrorKind::malformed,
                fmt::format("{}: tensor {} is not in its shard {}; download the shard again",
                            display_path(index_file), escape_for_display(tensor),
                            escape_for_display(index->shards[position])));
  }
  set.files.push_back(index_file);
  return set;
}

// What else lies in the directory and cannot be read, to say so in the message.
std::string other_weights_hint(const fs::path& directory) {
  std::error_code error;
  for (const auto& item : fs::directory_iterator(directory, error)) {
    const std::string extension = item.path().extension().string();
    if (extension == ".bin" || extension == ".pt" || extension == ".pth") {
      return fmt::format("{} is not read, convert it to safetensors",
                         escape_for_display(item.path().filename().string()));
    }
    if (extension == ".gguf") return "give the .gguf file itself";
  }
  return "download the weights";
}

}  // namespace

Result<ShardSet> open_shards(const fs::path& directory) {
  std::error_code error;
  const fs::path single = directory / "model.safetensors";
  // A dangling link counts as there: its own message says more than "not found".
  if (fs::exists(fs::symlink_status(single, error))) return open_single(single);
  const fs::path index_file = directory / "model.safetensors.index.json";
  if (fs::exists(fs::symlink_status(index_file, error))) return open_sharded(index_file);
  return fail(ErrorKind::malformed,
              fmt::format("{}: has no model.safetensors and no model.safetensors.index.json; {}",
                          display_path(directory), other_weights_hint(directory)));
}

}  // namespace driftscope
