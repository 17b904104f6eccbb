// SPDX-License-Identifier: Apache-2.0
// A GGUF file as a checkpoint.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "engine/model/checkpoint.h"

namespace driftscope {

// By its name, or by its first four bytes where it is called otherwise.
[[nodiscard]] bool is_gguf(const std::filesystem::path& path);

// The models in a directory, sorted: of a split one the first part.
[[nodiscard]] std::vector<std::filesystem::path> gguf_files_in(
    const std::filesystem::path& directory);

// `path`: the file, or a part of a split one. Errors: malformed.
[[nodiscard]] Result<std::shared_ptr<const ModelCheckpoint>> open_gguf_checkpoint(
    const std::filesystem::path& path);

}  // namespace driftscope
