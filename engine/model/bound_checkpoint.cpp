// SPDX-License-Identifier: Apache-2.0
#include "engine/model/bound_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "engine/model/files.h"

namespace driftscope {

namespace fs = std::filesystem;

BoundCheckpoint::BoundCheckpoint(fs::path path, ModelDescription description, BoundTensors tensors,
                                 StoredQuantisation quantisation)
    : m_path(std::move(path)),
      m_description(std::move(description)),
      m_tensors(std::move(tensors)),
      m_quantisation(std::move(quantisation)) {}

Result<std::vector<CheckpointFile>> hash_files(const std::vector<fs::path>& paths) {
  std::vector<CheckpointFile> result;
  for (const fs::path& file : paths) {
    std::error_code error;
    const std::uintmax_t bytes = fs::file_size(file, error);
    if (error) {
      return fail(ErrorKind::malformed, fmt::format("{}: cannot read its size ({})",
                                                    display_path(file), error.message()));
    }
    auto digest = sha256_of_file(file);
    if (!digest) return tl::unexpected(std::move(digest.error()));
    result.push_back({.path = file, .bytes = bytes, .sha256 = std::move(*digest)});
  }
  std::sort(result.begin(), result.end(), [](const CheckpointFile& a, const CheckpointFile& b) {
    return a.path.filename() < b.path.filename();
  });
  return result;
}

std::string combined_digest(const std::vector<CheckpointFile>& files) {
  std::string lines;
  for (const CheckpointFile& file : files) {
    lines += fmt::format("{} {} {}\n", file.path.filename().string(), file.bytes, file.sha256);
  }
  return sha256_of_bytes(lines);
}

}  // namespace driftscope
