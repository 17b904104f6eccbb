// SPDX-License-Identifier: Apache-2.0
// The tensors of a checkpoint by name, whatever the file format: what binding works on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/checkpoint.h"
#include "kernels/base/result.h"

namespace driftscope {

// A tensor as the file holds it, of any type of the format: codes, zero points, scales.
struct StoredElements {
  std::string_view dtype;  // the format's name: "I32", "U8", "F8_E4M3"
  std::vector<std::int64_t> shape;
  std::string_view bytes;  // may lie at any address
};

// Views stay valid as long as the source lives.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  [[nodiscard]] virtual bool contains(std::string_view name) const = 0;
  // Shape as in the file, outermost dimension first. Errors: malformed, when there is no such
  // tensor or its type cannot be a weight.
  [[nodiscard]] virtual Result<TensorView> find(const std::string& name) const = 0;
  // Whatever its type; nothing where there is no such tensor or the format has no such codes.
  [[nodiscard]] virtual std::optional<StoredElements> stored(const std::string&) const {
    return std::nullopt;
  }
  [[nodiscard]] virtual std::size_t size() const = 0;  // number of tensors
  // The file that holds a tensor, as it is printed in messages.
  [[nodiscard]] virtual std::string file_of(std::string_view name) const = 0;
  // The weight files, sorted as they are numbered; an index file comes last.
  [[nodiscard]] virtual std::vector<std::filesystem::path> files() const = 0;
};

// model.safetensors, or model.safetensors.index.json with its shards. Reads the headers only.
[[nodiscard]] Result<std::unique_ptr<TensorSource>> open_safetensors_source(
    const std::filesystem::path& directory);

}  // namespace driftscope
