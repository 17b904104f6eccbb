// SPDX-License-Identifier: Apache-2.0
#include "engine/model/shard_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

#include "engine/model/config_fields.h"
#include "engine/model/files.h"
#include "engine/model/strict_json.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxIndexBytes = std::size_t{64} << 20U;
constexpr std::size_t kMaxShards = 10'000;

tl::unexpected<Error> malformed(const fs::path& index_file, std::string_view what) {
  return fail(ErrorKind::malformed, fmt::format("{}: {}", display_path(index_file), what));
}

// An empty string where the name is acceptable, else what is wrong with it.
std::string shard_name_fault(const std::string& name) {
  if (name.empty()) return "is empty";
  if (name.size() > 1024) return "is longer than 1024 bytes";
  const fs::path path(name);
  if (path.is_absolute()) return "is an absolute path";
  for (const fs::path& part : path) {
    if (part == "..") return "leads out of the directory";
  }
  return {};
}

bool is_inside(const fs::path& file, const fs::path& directory) {
  const auto [rest, unused] =
      std::mismatch(directory.begin(), directory.end(), file.begin(), file.end());
  return rest == directory.end();
}

// The folder of content-addressed files that belongs to a hub cache entry, empty elsewhere.
fs::path hub_blobs(const fs::path& directory) {
  const fs::path snapshots = directory.parent_path();
  if (snapshots.filename() != "snapshots") return {};
  return snapshots.parent_path() / "blobs";
}

}  // namespace

Result<ShardIndex> read_shard_index(const fs::path& index_file) {
  auto document = read_strict_json(index_file, kMaxIndexBytes);
  if (!document) return tl::unexpected(document.error());
  const auto map = document->is_object() ? document->find("weight_map") : document->end();
  if (map == document->end() || !map->is_object() || map->empty()) {
    return malformed(index_file,
                     "weight_map is missing or not an object of tensor names; "
                     "download the index again");
  }
  ShardIndex index;
  for (const auto& [tensor, shard] : map->items()) {
    if (!shard.is_string()) {
      return malformed(index_file, fmt::format("weight_map: {} is {}, not a file name; download "
                                               "the index again",
                                               escape_for_display(tensor), show_value(shard)));
    }
    index.shards.push_back(shard.get<std::string>());
  }
  std::sort(index.shards.begin(), index.shards.end());
  index.shards.erase(std::unique(index.shards.begin(), index.shards.end()), index.shards.end());
  if (index.shards.size() > kMaxShards) {
    return malformed(index_file, fmt::format("names {} shards, more than {}; check the file",
                                             index.shards.size(), kMaxShards));
  }
  for (const std::string& shard : index.shards) {
    const std::string fault = shard_name_fault(shard);
    if (!fault.empty()) {
      return malformed(index_file, fmt::format("shard name \"{}\" {}; shards must lie beside the "
                                               "index",
                                               escape_for_display(shard.substr(0, 200)), fault));
    }
  }
  for (const auto& [tensor, shard] : map->items()) {
    const auto found = std::lower_bound(index.shards.begin(), index.shards.end(),
                                        shard.get_ref<const std::string&>());
    index.tensor_shard[tensor] = static_cast<std::size_t>(found - index.shards.begin());
  }
  return index;
}

Result<fs::path> resolve_shard(const fs::path& index_file, const std::string& shard) {
  const fs::path given = index_file.parent_path() / shard;
  std::error_code error;
  // The directory may itself be reached through links; only what the index names is judged.
  const fs::path parent = index_file.has_parent_path() ? index_file.parent_path() : fs::path(".");
  const fs::path directory = fs::canonical(parent, error);
  const fs::path file = error ? fs::path() : fs::canonical(given, error);
  if (error) {
    return malformed(index_file, fmt::format("shard {}: cannot be found ({}); download it",
                                             escape_for_display(shard), error.message()));
  }
  const fs::path blobs = hub_blobs(directory);
  if (!is_inside(file, directory) && (blobs.empty() || !is_inside(file, blobs))) {
    return malformed(index_file, fmt::format("shard {}: is a link out of the directory, to {}; "
                                             "copy the file beside the index",
                                             escape_for_display(shard), display_path(file)));
  }
  if (fs::equivalent(file, index_file, error)) {
    return malformed(index_file, fmt::format("shard {}: is the index itself; download the index "
                                             "again",
                                             escape_for_display(shard)));
  }
  return file;
}

}  // namespace driftscope
