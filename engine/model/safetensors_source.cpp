// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "engine/model/shards.h"
#include "engine/model/tensor_source.h"

// Weights are used as they lie in the file, which is little-endian.
static_assert(std::endian::native == std::endian::little);

namespace driftscope {
namespace {

namespace fs = std::filesystem;

std::optional<Dtype> weight_dtype(std::string_view stored) {
  if (stored == "F32") return Dtype::f32;
  if (stored == "F16") return Dtype::f16;
  if (stored == "BF16") return Dtype::bf16;
  return std::nullopt;
}

class SafetensorsSource final : public TensorSource {
 public:
  SafetensorsSource(fs::path directory, ShardSet shards)
      : m_directory(std::move(directory)), m_shards(std::move(shards)) {
    for (auto& [name, tensor] : m_shards.tensors) align(tensor);
  }
  [[nodiscard]] bool contains(std::string_view name) const override {
    return m_shards.tensors.contains(std::string(name));
  }
  [[nodiscard]] Result<TensorView> find(const std::string& name) const override;
  [[nodiscard]] std::optional<StoredElements> stored(const std::string& name) const override;
  [[nodiscard]] std::size_t size() const override { return m_shards.tensors.size(); }
  [[nodiscard]] std::string file_of(std::string_view name) const override {
    const auto found = m_shards.tensors.find(std::string(name));
    return display_path(found == m_shards.tensors.end() ? m_directory
                                                        : m_shards.files[found->second.file]);
  }
  [[nodiscard]] std::vector<fs::path> files() const override { return m_shards.files; }

 private:
  void align(StoredTensor& tensor);

  fs::path m_directory;
  ShardSet m_shards;
  // Tensors whose place in the file is not a multiple of their element size.
  std::vector<std::unique_ptr<std::uint64_t[]>> m_copies;
};

void SafetensorsSource::align(StoredTensor& tensor) {
  const auto dtype = weight_dtype(tensor.dtype);
  const char* data = tensor.bytes.data();
  if (!dtype || reinterpret_cast<std::uintptr_t>(data) % dtype_size(*dtype) == 0) return;
  const std::size_t bytes = tensor.bytes.size();
  m_copies.push_back(std::make_unique<std::uint64_t[]>((bytes + 7) / 8));
  std::memcpy(m_copies.back().get(), data, bytes);
  tensor.bytes = {reinterpret_cast<const char*>(m_copies.back().get()), bytes};
}

std::optional<StoredElements> SafetensorsSource::stored(const std::string& name) const {
  const auto found = m_shards.tensors.find(name);
  if (found == m_shards.tensors.end()) return std::nullopt;
  const StoredTensor& tensor = found->second;
  StoredElements elements{.dtype = tensor.dtype, .shape = {}, .bytes = tensor.bytes};
  for (const std::uint64_t size : tensor.shape) {
    elements.shape.push_back(static_cast<std::int64_t>(size));
  }
  return elements;
}

Result<TensorView> SafetensorsSource::find(const std::string& name) const {
  const auto found = m_shards.tensors.find(name);
  if (found == m_shards.tensors.end()) {
    const std::string_view hint = name == "lm_head.weight"
                                      ? "set tie_word_embeddings if the output is tied, or fix "
                                        "the checkpoint"
                                      : "fix the checkpoint or its config.json";
    return fail(ErrorKind::malformed,
                fmt::format("{}: tensor {} is missing; {}", display_path(m_directory), name, hint));
  }
  const StoredTensor& tensor = found->second;
  const auto dtype = weight_dtype(tensor.dtype);
  if (!dtype) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: tensor {}: dtype {} cannot be a weight here; use a checkpoint in "
                            "F32, F16 or BF16",
                            file_of(name), name, tensor.dtype));
  }
  TensorView view{.data = tensor.bytes.data(), .dtype = *dtype, .shape = {}, .name = name};
  for (const std::uint64_t size : tensor.shape) {
    view.shape.push_back(static_cast<std::int64_t>(size));
  }
  return view;
}

}  // namespace

Result<std::unique_ptr<TensorSource>> open_safetensors_source(const fs::path& directory) {
  auto shards = open_shards(directory);
  if (!shards) return tl::unexpected(std::move(shards.error()));
  return std::make_unique<SafetensorsSource>(directory, std::move(*shards));
}

}  // namespace driftscope
