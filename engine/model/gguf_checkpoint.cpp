// SPDX-License-Identifier: Apache-2.0
#include "engine/model/gguf_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>
#include <utility>

#include "engine/model/bound_tensors.h"
#include "engine/model/gguf_description.h"
#include "engine/model/gguf_source.h"

namespace driftscope {
namespace {

namespace fs = std::filesystem;

class GgufCheckpoint final : public ModelCheckpoint {
 public:
  GgufCheckpoint(fs::path path, ModelDescription description, std::unique_ptr<GgufSource> source,
                 BoundTensors tensors)
      : m_path(std::move(path)),
        m_description(std::move(description)),
        m_source(std::move(source)),
        m_tensors(std::move(tensors)) {
    if (!m_source->has_blocks()) return;
    m_quantisation.method = "GGUF " + m_source->formats();
    for (const fs::path& file : m_source->files()) {
      m_quantisation.scale_files.push_back(file.filename().string());
    }
  }

  const fs::path& path() const override { return m_path; }
  const ModelDescription& description() const override { return m_description; }
  const TensorView& embedding() const override { return m_tensors.embedding; }
  const TensorView& final_norm() const override { return m_tensors.final_norm; }
  const TensorView& final_norm_bias() const override { return m_tensors.final_norm_bias; }
  const TensorView& position_embedding() const override { return m_tensors.position_embedding; }
  const TensorView& lm_head() const override {
    return m_description.tied_embeddings ? m_tensors.embedding : m_tensors.lm_head;
  }
  const LayerTensors& layer(std::int64_t index) const override {
    return m_tensors.layers.at(static_cast<std::size_t>(index));
  }
  std::string weight_formats() const override { return m_source->formats(); }
  const StoredQuantisation& quantisation() const override { return m_quantisation; }
  Result<std::vector<CheckpointFile>> files() const override;
  Result<std::string> combined_sha256() const override;

 private:
  fs::path m_path;
  ModelDescription m_description;
  std::unique_ptr<GgufSource> m_source;  // owns what the views point into
  BoundTensors m_tensors;
  StoredQuantisation m_quantisation;
};

Result<std::vector<CheckpointFile>> GgufCheckpoint::files() const {
  std::vector<CheckpointFile> result;
  for (const fs::path& file : m_source->files()) {
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
  return result;
}

Result<std::string> GgufCheckpoint::combined_sha256() const {
  const auto all = files();
  if (!all) return tl::unexpected(all.error());
  std::string lines;
  for (const CheckpointFile& file : *all) {
    lines += fmt::format("{} {} {}\n", file.path.filename().string(), file.bytes, file.sha256);
  }
  return sha256_of_bytes(lines);
}

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
