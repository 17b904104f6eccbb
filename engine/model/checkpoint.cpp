// SPDX-License-Identifier: Apache-2.0
#include "engine/model/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "engine/model/bound_checkpoint.h"
#include "engine/model/description.h"
#include "engine/model/files.h"
#include "engine/model/gguf_checkpoint.h"
#include "engine/model/quantised_source.h"
#include "engine/model/quantised_summary.h"
#include "engine/model/strict_json.h"
#include "engine/model/tensor_source.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxConfigBytes = std::size_t{4} << 20U;
// Files that decide what the model computes or reads, beside the weights.
constexpr std::string_view kSideFiles[] = {"config.json",          "generation_config.json",
                                           "tokenizer.json",       "tokenizer_config.json",
                                           "quantize_config.json", "quant_config.json",
                                           "kv_cache_scales.json", "tokenizer.model",
                                           "added_tokens.json",    "special_tokens_map.json",
                                           "chat_template.jinja"};

class DirectoryCheckpoint final : public BoundCheckpoint {
 public:
  DirectoryCheckpoint(const fs::path& path, ModelDescription description,
                      std::unique_ptr<TensorSource> source, BoundTensors tensors,
                      StoredQuantisation quantisation)
      : BoundCheckpoint(path, std::move(description), std::move(tensors), std::move(quantisation)),
        m_source(std::move(source)) {}
  Result<std::vector<CheckpointFile>> files() const override;
  Result<std::string> combined_sha256() const override;

 private:
  std::unique_ptr<TensorSource> m_source;  // owns what the views point into
};

// config.json, with the quantization_config that older checkpoints keep in a file of its own.
Result<nlohmann::json> read_config(const fs::path& directory) {
  const fs::path config_path = directory / "config.json";
  std::error_code error;
  if (!fs::exists(config_path, error)) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: has no config.json; give a checkpoint directory in Hugging Face "
                            "layout",
                            display_path(directory)));
  }
  auto config = read_strict_json(config_path, kMaxConfigBytes);
  if (!config || !config->is_object() || config->contains("quantization_config")) return config;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kOlder{
      {{"quantize_config.json", "gptq"}, {"quant_config.json", "awq"}}};
  for (const auto& [name, method] : kOlder) {
    if (!fs::exists(directory / name, error)) continue;
    auto quantised = read_strict_json(directory / name, kMaxConfigBytes);
    if (!quantised) return quantised;
    if (!quantised->is_object()) continue;
    if (!quantised->contains("quant_method")) (*quantised)["quant_method"] = method;
    (*config)["quantization_config"] = std::move(*quantised);
    break;
  }
  return config;
}

Result<ModelDescription> read_description(const fs::path& directory, const nlohmann::json& config) {
  std::error_code error;
  const fs::path generation_path = directory / "generation_config.json";
  nlohmann::json generation;
  if (fs::exists(generation_path, error)) {
    auto read = read_strict_json(generation_path, kMaxConfigBytes);
    if (!read) return tl::unexpected(read.error());
    generation = std::move(*read);
  }
  return describe_model({.config = &config,
                         .name = display_path(directory / "config.json"),
                         .generation_config = generation.is_null() ? nullptr : &generation,
                         .generation_name = display_path(generation_path)});
}

Result<std::shared_ptr<const ModelCheckpoint>> open_directory(const fs::path& directory) {
  const auto config = read_config(directory);
  if (!config) return tl::unexpected(config.error());
  auto description = read_description(directory, *config);
  if (!description) return tl::unexpected(std::move(description.error()));
  const std::string config_name = display_path(directory / "config.json");
  auto quantised = read_quantised_config(*config, config_name);
  if (!quantised) return tl::unexpected(std::move(quantised.error()));
  auto source = open_safetensors_source(directory);
  if (!source) return tl::unexpected(std::move(source.error()));
  if (quantised->method != QuantisedMethod::none) {
    *source = make_quantised_source(std::move(*source), *quantised);
  }
  auto tensors = bind_tensors(**source, *description, config_name);
  if (!tensors) return tl::unexpected(std::move(tensors.error()));
  description->stored_dtype = tensors->embedding.dtype;
  StoredQuantisation quantisation = stored_quantisation(*quantised, **source, *tensors, directory);
  return std::make_shared<DirectoryCheckpoint>(directory, std::move(*description),
                                               std::move(*source), std::move(*tensors),
                                               std::move(quantisation));
}

Result<std::vector<CheckpointFile>> DirectoryCheckpoint::files() const {
  std::vector<fs::path> paths = m_source->files();
  for (const std::string_view name : kSideFiles) {
    std::error_code error;
    if (fs::is_regular_file(path() / name, error)) paths.push_back(path() / name);
  }
  return hash_files(paths);
}

Result<std::string> DirectoryCheckpoint::combined_sha256() const {
  auto all = files();
  if (!all) return tl::unexpected(std::move(all.error()));
  std::erase_if(*all, [](const CheckpointFile& file) {
    const std::string name = file.path.filename().string();
    // An older quantised checkpoint keeps a part of its configuration beside config.json.
    return name != "config.json" && name != "quantize_config.json" && name != "quant_config.json" &&
           !name.ends_with(".safetensors");
  });
  return combined_digest(*all);
}

}  // namespace

Result<std::shared_ptr<const ModelCheckpoint>> ModelCheckpoint::open(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: does not exist; give a checkpoint directory or a GGUF file",
                            display_path(path)));
  }
  if (fs::is_directory(status)) {
    const auto gguf_files = gguf_files_in(path);
    if (gguf_files.empty() || fs::exists(path / "config.json", error)) return open_directory(path);
    if (gguf_files.size() == 1) return open_gguf_checkpoint(gguf_files.front());
    return fail(
        ErrorKind::malformed,
        fmt::format("{}: holds {} GGUF models ({}, …); give one of the files", display_path(path),
                    gguf_files.size(), display_path(gguf_files.front().filename())));
  }
  const std::string name = path.filename().string();
  if (name == "model.safetensors" || name == "model.safetensors.index.json") {
    const fs::path parent = path.parent_path();
    return open_directory(parent.empty() ? fs::path(".") : parent);
  }
  if (is_gguf(path)) return open_gguf_checkpoint(path);
  return fail(ErrorKind::malformed,
              fmt::format("{}: is not a checkpoint directory in Hugging Face layout and no GGUF "
                          "file; give the directory that holds config.json",
                          display_path(path)));
}

}  // namespace driftscope
