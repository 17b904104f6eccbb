// SPDX-License-Identifier: Apache-2.0
// Models as a user names them: a path, or an id of the Hugging Face hub looked up in the local
// cache. Nothing is ever downloaded. Layout: huggingface.co/docs/huggingface_hub, "Understand
// caching": models--ORG--NAME/refs/REVISION holds a commit, snapshots/COMMIT the files (links into
// blobs).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/base/result.h"

namespace driftscope {

struct ModelLocation {
  std::filesystem::path path;  // a directory or a file
  std::string hub_id;          // "org/name"; empty where the path is not in a hub cache
  std::string revision;        // as asked for: "main", a tag, a commit; empty as above
  std::string commit;          // 40 hexadecimal digits as a rule; empty as above
};

struct HubId {
  std::string id;        // "org/name" or "name"
  std::string revision;  // "main" where none is given
};
// "org/name", "name", "org/name@revision"; nothing where the text cannot be an id.
[[nodiscard]] std::optional<HubId> parse_hub_id(std::string_view text);

// HF_HUB_CACHE, else HF_HOME/hub, else XDG_CACHE_HOME/huggingface/hub, else
// ~/.cache/huggingface/hub.
[[nodiscard]] std::filesystem::path hub_cache_folder();

// A path that exists is taken as it is (one inside a hub cache's snapshots also tells its id and
// commit); anything else that can be a hub id is looked up in `cache`. A revision is the name of a
// ref, or a commit, whole or shortened to what only one snapshot begins with. Errors: malformed,
// one line with the folder looked in and what is there.
[[nodiscard]] Result<ModelLocation> find_model(const std::string& text,
                                               const std::filesystem::path& cache);
[[nodiscard]] Result<ModelLocation> find_model(const std::string& text);  // in hub_cache_folder()

}  // namespace driftscope
