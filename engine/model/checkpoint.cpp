// SPDX-License-Identifier: Apache-2.0
#include "engine/model/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "engine/model/description.h"
#include "engine/model/files.h"
#include "engine/model/shards.h"
#include "engine/model/strict_json.h"
#include "engine/model/tensor_table.h"
#include "kernels/base/display_text.h"

// Weights are used as they lie in the file, which is little-endian.
static_assert(std::endian::native == std::endian::little);

namespace driftscope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxConfigBytes = std::size_t{4} << 20U;
// Files that decide what the model computes or reads, beside the weights.
constexpr std::string_view kSideFiles[] = {"config.json", "generation_config.json",
                                           "tokenizer.json", "tokenizer_config.json"};

std::optional<Dtype> weight_dtype(std::string_view stored) {
  if (stored == "F32") return Dtype::f32;
  if (stored == "F16") return Dtype::f16;
  if (stored == "BF16") return Dtype::bf16;
  return std::nullopt;
}

class SafetensorsCheckpoint final : public ModelCheckpoint {
 public:
  static Result<std::shared_ptr<const ModelCheckpoint>> open(const fs::path& directory);

  const fs::path& path() const override { return m_path; }
  const ModelDescription& description() const override { return m_description; }
  const TensorView& embedding() const override { return m_embedding; }
  const TensorView& final_norm() const override { return m_final_norm; }
  const TensorView& lm_head() const override {
    return m_description.tied_embeddings ? m_embedding : m_lm_head;
  }
  const LayerTensors& layer(std::int64_t index) const override {
    return m_layers.at(static_cast<std::size_t>(index));
  }
  Result<std::vector<CheckpointFile>> files() const override;
  Result<std::string> combined_sha256() const override;

 private:
  Result<void> bind_tensors();
  Result<void> bind_layer(std::int64_t index);
  Result<void> bind_experts(std::int64_t index);
  Result<TensorView> take(const std::string& suffix, std::array<Dimension, 2> shape);
  Result<void> check_shape(const std::string& name, const StoredTensor& tensor,
                           std::array<Dimension, 2> shape) const;
  const void* aligned_data(const StoredTensor& tensor, Dtype dtype);
  [[nodiscard]] std::string config_name() const { return display_path(m_path / "config.json"); }

  fs::path m_path;
  ModelDescription m_description;
  ShardSet m_shards;
  std::string m_prefix;  // "model." or nothing, before every name but lm_head
  TensorView m_embedding;
  TensorView m_final_norm;
  TensorView m_lm_head;
  std::vector<LayerTensors> m_layers;
  // Tensors whose place in the file is not a multiple of their element size.
  std::vector<std::unique_ptr<std::uint64_t[]>> m_copies;
};

Result<ModelDescription> read_description(const fs::path& directory) {
  const fs::path config_path = directory / "config.json";
  std::error_code error;
  if (!fs::exists(config_path, error)) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: has no config.json; give a checkpoint directory in Hugging Face "
                            "layout",
                            display_path(directory)));
  }
  const auto config = read_strict_json(config_path, kMaxConfigBytes);
  if (!config) return tl::unexpected(config.error());
  const fs::path generation_path = directory / "generation_config.json";
  nlohmann::json generation;
  if (fs::exists(generation_path, error)) {
    auto read = read_strict_json(generation_path, kMaxConfigBytes);
    if (!read) return tl::unexpected(read.error());
    generation = std::move(*read);
  }
  return describe_model({.config = &*config,
                         .name = display_path(config_path),
                         .generation_config = generation.is_null() ? nullptr : &generation,
                         .generation_name = display_path(generation_path)});
}

Result<std::shared_ptr<const ModelCheckpoint>> SafetensorsCheckpoint::open(
    const fs::path& directory) {
  auto description = read_description(directory);
  if (!description) return tl::unexpected(std::move(description.error()));
  auto shards = open_shards(directory);
  if (!shards) return tl::unexpected(std::move(shards.error()));
  auto checkpoint = std::make_shared<SafetensorsCheckpoint>();
  checkpoint->m_path = directory;
  checkpoint->m_description = std::move(*description);
  checkpoint->m_shards = std::move(*shards);
  if (auto bound = checkpoint->bind_tensors(); !bound) {
    return tl::unexpected(std::move(bound.error()));
  }
  return checkpoint;
}

Result<void> SafetensorsCheckpoint::bind_tensors() {
  // Each layer has several tensors: a count from config.json beyond what the files hold is
  // refused before anything is allocated for it.
  if (static_cast<std::uint64_t>(m_description.layers) > m_shards.tensors.size()) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: num_hidden_layers {} cannot be, the weights have {} tensors; fix "
                            "the checkpoint",
                            config_name(), m_description.layers, m_shards.tensors.size()));
  }
  if (static_cast<std::uint64_t>(m_description.moe.experts) > m_shards.tensors.size()) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: {} experts cannot be, the weights have {} tensors; fix the "
                            "checkpoint",
                            config_name(), m_description.moe.experts, m_shards.tensors.size()));
  }
  m_prefix = m_shards.tensors.contains("model.embed_tokens.weight") ||
                     !m_shards.tensors.contains("embed_tokens.weight")
                 ? "model."
                 : "";
  auto embedding =
      take(m_prefix + "embed_tokens.weight", {Dimension::vocabulary, Dimension::hidden});
  if (!embedding) return tl::unexpected(std::move(embedding.error()));
  m_embedding = std::move(*embedding);
  auto norm = take(m_prefix + "norm.weight", {Dimension::hidden, Dimension::one});
  if (!norm) return tl::unexpected(std::move(norm.error()));
  m_final_norm = std::move(*norm);
  if (!m_description.tied_embeddings) {
    auto head = take("lm_head.weight", {Dimension::vocabulary, Dimension::hidden});
    if (!head) return tl::unexpected(std::move(head.error()));
    m_lm_head = std::move(*head);
  }
  m_description.stored_dtype = m_embedding.dtype;
  m_layers.resize(static_cast<std::size_t>(m_description.layers));
  for (std::int64_t index = 0; index < m_description.layers; ++index) {
    if (auto bound = bind_layer(index); !bound) return bound;
  }
  return {};
}

Result<void> SafetensorsCheckpoint::bind_layer(std::int64_t index) {
  LayerTensors& layer = m_layers[static_cast<std::size_t>(index)];
  for (const LayerTensorRow& row : layer_tensor_table()) {
    if (!is_present(row.presence, m_description, index)) continue;
    auto tensor = take(fmt::format("{}layers.{}.{}", m_prefix, index, row.suffix), row.shape);
    if (!tensor) return tl::unexpected(std::move(tensor.error()));
    layer.*row.member = std::move(*tensor);
  }
  return m_description.moe.in_layer(index) ? bind_experts(index) : Result<void>{};
}

Result<void> SafetensorsCheckpoint::bind_experts(std::int64_t index) {
  LayerTensors& layer = m_layers[static_cast<std::size_t>(index)];
  layer.experts.resize(static_cast<std::size_t>(m_description.moe.experts));
  for (std::size_t expert = 0; expert < layer.experts.size(); ++expert) {
    for (const ExpertTensorRow& row : expert_tensor_table()) {
      if (!is_present(row.presence, m_description, index)) continue;
      auto tensor =
          take(fmt::format("{}layers.{}.{}{}{}", m_prefix, index, row.prefix, expert, row.suffix),
               row.shape);
      if (!tensor) return tl::unexpected(std::move(tensor.error()));
      layer.experts[expert].*row.member = std::move(*tensor);
    }
  }
  return {};
}

Result<TensorView> SafetensorsCheckpoint::take(const std::string& name,
                                               std::array<Dimension, 2> shape) {
  const auto found = m_shards.tensors.find(name);
  if (found == m_shards.tensors.end()) {
    const std::string_view hint = name == "lm_head.weight"
                                      ? "set tie_word_embeddings if the output is tied, or fix "
                                        "the checkpoint"
                                      : "fix the checkpoint or its config.json";
    return fail(ErrorKind::malformed,
                fmt::format("{}: tensor {} is missing; {}", display_path(m_path), name, hint));
  }
  const StoredTensor& tensor = found->second;
  const auto dtype = weight_dtype(tensor.dtype);
  if (!dtype) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: tensor {}: dtype {} cannot be a weight here; use a checkpoint in "
                            "F32, F16 or BF16",
                            display_path(m_shards.files[tensor.file]), name, tensor.dtype));
  }
  if (auto good = check_shape(name, tensor, shape); !good) {
    return tl::unexpected(std::move(good.error()));
  }
  TensorView view;
  view.data = aligned_data(tensor, *dtype);
  view.dtype = *dtype;
  view.name = name;
  for (const std::uint64_t size : tensor.shape) {
    view.shape.push_back(static_cast<std::int64_t>(size));
  }
  return view;
}

Result<void> SafetensorsCheckpoint::check_shape(const std::string& name, const StoredTensor& tensor,
                                                std::array<Dimension, 2> shape) const {
  std::vector<std::uint64_t> expected;
  std::string_view keys;
  for (std::size_t i = 0; i < shape.size() && shape[i] != Dimension::one; ++i) {
    const std::int64_t size = dimension_size(shape[i], m_description);
    expected.push_back(static_cast<std::uint64_t>(size));
    const bool differs = i >= tensor.shape.size() || tensor.shape[i] != expected[i];
    if (differs && keys.empty()) keys = dimension_keys(shape[i]);
  }
  if (tensor.shape == expected) return {};
  return fail(
      ErrorKind::malformed,
      fmt::format("{}: tensor {}: shape [{}], expected [{}] from config.json{}{}; fix the "
                  "checkpoint",
                  display_path(m_shards.files[tensor.file]), name, fmt::join(tensor.shape, ", "),
                  fmt::join(expected, ", "), keys.empty() ? "" : " ", keys));
}

const void* SafetensorsCheckpoint::aligned_data(const StoredTensor& tensor, Dtype dtype) {
  const void* data = tensor.bytes.data();
  if (reinterpret_cast<std::uintptr_t>(data) % dtype_size(dtype) == 0) return data;
  const std::size_t words = (tensor.bytes.size() + 7) / 8;
  m_copies.push_back(std::make_unique<std::uint64_t[]>(words));
  std::memcpy(m_copies.back().get(), data, tensor.bytes.size());
  return m_copies.back().get();
}

Result<std::vector<CheckpointFile>> SafetensorsCheckpoint::files() const {
  std::vector<fs::path> paths = m_shards.files;
  for (const std::string_view name : kSideFiles) {
    std::error_code error;
    if (fs::is_regular_file(m_path / name, error)) paths.push_back(m_path / name);
  }
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

Result<std::string> SafetensorsCheckpoint::combined_sha256() const {
  const auto all = files();
  if (!all) return tl::unexpected(all.error());
  std::string lines;
  for (const CheckpointFile& file : *all) {
    const std::string name = file.path.filename().string();
    if (name != "config.json" && !name.ends_with(".safetensors")) continue;
    lines += fmt::format("{} {} {}\n", name, file.bytes, file.sha256);
  }
  return sha256_of_bytes(lines);
}

}  // namespace

Result<std::shared_ptr<const ModelCheckpoint>> ModelCheckpoint::open(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: does not exist; give a checkpoint directory", display_path(path)));
  }
  if (fs::is_directory(status)) return SafetensorsCheckpoint::open(path);
  const std::string name = path.filename().string();
  if (name == "model.safetensors" || name == "model.safetensors.index.json") {
    const fs::path parent = path.parent_path();
    return SafetensorsCheckpoint::open(parent.empty() ? fs::path(".") : parent);
  }
  return fail(
      ErrorKind::malformed,
      fmt::format("{}: is not a checkpoint directory in Hugging Face layout{}", display_path(path),
                  path.extension() == ".gguf" ? "; GGUF is not read yet, use the safetensors form"
                                              : "; give the directory that holds config.json"));
}

}  // namespace driftscope
