// SPDX-License-Identifier: Apache-2.0
#include "engine/model/gguf_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>
#include <utility>

#include "engine/model/bound_checkpoint.h"
#include "engine/model/gguf_description.h"
#include "engine/model/gguf_source.h"

namespace driftscope {
namespace {

namespace fs = std::filesystem;

StoredQuantisation quantisation_of(const GgufSource& source) {
  StoredQuantisation quantisation;
  if (!source.has_blocks()) return quantisation;
  quantisation.method = "GGUF " + source.formats();
  for (const fs::path& file : source.files()) {
    quantisation.scale_files.push_back(file.filename().string());
  }
  return quantisation;
}

class GgufCheckpoint final : public BoundCheckpoint {
 public:
  GgufCheckpoint(const fs::path& path, ModelDescription description,
                 std::unique_ptr<GgufSource> source, BoundTensors tensors)
      : BoundCheckpoint(path, std::move(description), std::move(tensors), quantisation_of(*source)),
        m_source(std::move(source)) {}
  std::string weight_formats() const override { return m_source->formats(); }
  Result<std::vector<CheckpointFile>> files() const override {
    return hash_files(m_source->files());
  }
  Result<std::string> combined_sha256() const override { return files().map(combined_digest); }

 private:
  std::unique_ptr<GgufSource> m_source;  // owns what the views point into
};

}  // namespace

bool is_gguf(const fs::path& path) {
  if (path.extension() == ".gguf") return true;
  const auto file = RegularFile::open(path);
  std::array<char, 4> magic{};
  if (!file) return false;
  const auto got = file->read_some(magic.data(), magic.size());
  return got && *got == magic.size() && std::string_view(magic.data(), magic.size()) == "GGUF";
}

std::vector<fs::path> gguf_files_in(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(directory, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    const bool later_part =
        name.find("-of-") != std::string::npos && name.find("-00001-of-") == std::string::npos;
    if (at->path().extension() == ".gguf" && !later_part) found.push_back(at->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

Result<std::shared_ptr<const ModelCheckpoint>> open_gguf_checkpoint(const fs::path& path) {
  auto source = GgufSource::open(path);
  if (!source) return tl::unexpected(std::move(source.error()));
  auto description = describe_gguf(**source);
  if (!description) return tl::unexpected(std::move(description.error()));
  const Naming naming = gguf_naming(*description, **source);
  auto tensors = bind_tensors(**source, *description, (*source)->name(), naming);
  if (!tensors) return tl::unexpected(std::move(tensors.error()));
  if (auto used = check_all_used(*description, naming, **source); !used) {
    return tl::unexpected(std::move(used.error()));
  }
  return std::make_shared<GgufCheckpoint>(path, std::move(*description), std::move(*source),
                                          std::move(*tensors));
}

}  // namespace driftscope
