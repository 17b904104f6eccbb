// SPDX-License-Identifier: Apache-2.0
#include "engine/model/hub_cache.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <vector>

#include "engine/model/files.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxIdLength = 96;  // the hub's own limit
constexpr std::size_t kMaxRefBytes = 256;
constexpr std::size_t kShortestCommit = 4;
constexpr std::size_t kNamesShown = 6;
constexpr std::string_view kFolderPrefix = "models--";

bool is_id_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

bool is_id_part(std::string_view part) {
  return !part.empty() && part.front() != '.' && part.front() != '-' && part.back() != '.' &&
         part.find("--") == std::string_view::npos && part.find("..") == std::string_view::npos &&
         std::all_of(part.begin(), part.end(), is_id_character);
}

// A ref may have folders ("refs/pr/1"), but must not lead out of refs/.
bool is_revision(std::string_view text) {
  return !text.empty() && text.front() != '/' && text.find("..") == std::string_view::npos &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_id_character(c) || c == '/' || c == '+'; });
}

bool is_hexadecimal(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string folder_of(std::string_view id) {
  std::string folder(kFolderPrefix);
  for (const char c : id) {
    if (c == '/') {
      folder += "--";
    } else {
      folder += c;
    }
  }
  return folder;
}

// "org/name" of "models--org--name"; empty for another folder.
std::string id_of(std::string_view folder) {
  if (!folder.starts_with(kFolderPrefix)) return {};
  folder.remove_prefix(kFolderPrefix.size());
  const auto dashes = folder.find("--");
  if (dashes == std::string_view::npos) return std::string(folder);
  return fmt::format("{}/{}", folder.substr(0, dashes), folder.substr(dashes + 2));
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string list_of(std::vector<std::string> names) {
  if (names.empty()) return "nothing";
  const std::size_t more = names.size() > kNamesShown ? names.size() - kNamesShown : 0;
  names.resize(names.size() - more);
  for (std::string& name : names) name = escape_for_display(name);
  return fmt::format("{}{}", fmt::join(names, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

std::vector<std::string> ids_in(const fs::path& cache) {
  std::vector<std::string> ids;
  for (const std::string& name : names_in(cache)) {
    if (std::string id = id_of(name); !id.empty()) ids.push_back(std::move(id));
  }
  return ids;
}

// refs/, with the folders below it.
std::vector<std::string> refs_in(const fs::path& folder) {
  std::vector<std::string> refs;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (at->is_regular_file(error)) refs.push_back(at->path().lexically_relative(folder).string());
  }
  std::sort(refs.begin(), refs.end());
  return refs;
}

tl::unexpected<Error> no_such_model(const HubId& hub, const fs::path& cache) {
  std::error_code error;
  if (!fs::is_directory(cache, error)) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: no such path, and the hub cache {} does not exist; download the "
                            "model first, or set HF_HUB_CACHE",
                            hub.id, display_path(cache)));
  }
  return fail(ErrorKind::malformed,
              fmt::format("{}: no such path, and not in the hub cache {}, which holds {}; download "
                          "the model first, or set HF_HUB_CACHE",
                          hub.id, display_path(cache), list_of(ids_in(cache))));
}

// The commit that `revision` means, or an empty string.
std::string commit_of(const fs::path& folder, const std::string& revision) {
  std::error_code error;
  const fs::path ref = folder / "refs" / revision;
  if (fs::is_regular_file(ref, error)) {
    std::string commit = read_whole_file(ref, kMaxRefBytes).value_or("");
    while (!commit.empty() && (commit.back() == '\n' || commit.back() == '\r')) commit.pop_back();
    return is_id_part(commit) ? commit : std::string();
  }
  if (revision.size() < kShortestCommit || !is_hexadecimal(revision)) return {};
  std::string found;
  for (const std::string& name : names_in(folder / "snapshots")) {
    if (!name.starts_with(revision)) continue;
    if (name == revision) return name;
    if (!found.empty()) return {};  // not the only one
    found = name;
  }
  return found;
}

Result<ModelLocation> find_in_cache(const HubId& hub, const fs::path& cache) {
  const fs::path folder = cache / folder_of(hub.id);
  std::error_code error;
  if (!fs::is_directory(folder, error)) return no_such_model(hub, cache);
  const std::string commit = commit_of(folder, hub.revision);
  const fs::path snapshot = folder / "snapshots" / commit;
  if (commit.empty() || !fs::is_directory(snapshot, error)) {
    return fail(ErrorKind::malformed,
                fmt::format("{}@{}: {} in {}; there are the refs {} and the snapshots {}", hub.id,
                            hub.revision,
                            commit.empty() ? std::string("no such revision")
                                           : fmt::format("no snapshot of its commit {}", commit),
                            display_path(folder), list_of(refs_in(folder / "refs")),
                            list_of(names_in(folder / "snapshots"))));
  }
  return ModelLocation{
      .path = snapshot, .hub_id = hub.id, .revision = hub.revision, .commit = commit};
}

// .../models--org--name/snapshots/COMMIT[/file]
ModelLocation locate_path(const fs::path& path) {
  ModelLocation location{.path = path, .hub_id = {}, .revision = {}, .commit = {}};
  std::error_code error;
  fs::path folder = fs::absolute(path, error).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  if (!fs::is_directory(folder, error)) folder = folder.parent_path();
  const fs::path snapshots = folder.parent_path();
  const std::string id = id_of(snapshots.parent_path().filename().string());
  if (snapshots.filename() != "snapshots" || id.empty()) return location;
  location.hub_id = id;
  location.commit = folder.filename().string();
  location.revision = location.commit;
  return location;
}

// An absolute path from the environment, or nothing.
std::optional<fs::path> folder_from(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return fs::path(value);
}

}  // namespace

std::optional<HubId> parse_hub_id(std::string_view text) {
  HubId hub{.id = std::string(text), .revision = "main"};
  if (const auto at = text.find('@'); at != std::string_view::npos) {
    hub.id = std::string(text.substr(0, at));
    hub.revision = std::string(text.substr(at + 1));
    if (!is_revision(hub.revision)) return std::nullopt;
  }
  const std::string_view id = hub.id;
  const auto slash = id.find('/');
  const bool good = slash == std::string_view::npos
                        ? is_id_part(id)
                        : is_id_part(id.substr(0, slash)) && is_id_part(id.substr(slash + 1));
  if (!good || id.size() > kMaxIdLength) return std::nullopt;
  return hub;
}

fs::path hub_cache_folder() {
  if (const auto cache = folder_from("HF_HUB_CACHE")) return *cache;
  if (const auto home = folder_from("HF_HOME")) return *home / "hub";
  if (const auto cache = folder_from("XDG_CACHE_HOME")) return *cache / "huggingface" / "hub";
  return folder_from("HOME").value_or("/") / ".cache" / "huggingface" / "hub";
}

Result<ModelLocation> find_model(const std::string& text, const fs::path& cache) {
  std::error_code error;
  if (fs::exists(text, error)) return locate_path(text);
  // A name with an ending of a file, or with more folders than an id has, was meant as a path.
  const auto hub = parse_hub_id(text);
  const std::string ending = fs::path(text).extension().string();
  if (!hub || ending == ".gguf" || ending == ".safetensors") {
    return fail(ErrorKind::malformed,
                fmt::format("{}: does not exist; give a checkpoint directory, a .gguf file or the "
                            "id of a model in the hub cache {}",
                            escape_for_display(text), display_path(cache)));
  }
  return find_in_cache(*hub, cache);
}

Result<ModelLocation> find_model(const std::string& text) {
  return find_model(text, hub_cache_folder());
}

}  // namespace driftscope
