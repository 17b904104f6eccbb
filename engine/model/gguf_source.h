// SPDX-License-Identifier: Apache-2.0
// The tensors and the metadata of a GGUF file, or of all parts of one that was split.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/files.h"
#include "engine/model/gguf.h"
#include "engine/model/tensor_source.h"

namespace driftscope {

class GgufSource final : public TensorSource {
 public:
  // `path`: the file; of a split model any part, the others lie beside it. Errors: malformed.
  [[nodiscard]] static Result<std::unique_ptr<GgufSource>> open(const std::filesystem::path& path);

  [[nodiscard]] bool contains(std::string_view name) const override;
  [[nodiscard]] Result<TensorView> find(const std::string& name) const override;
  [[nodiscard]] std::size_t size() const override { return m_tensors.size(); }
  [[nodiscard]] std::string file_of(std::string_view name) const override;
  [[nodiscard]] std::vector<std::filesystem::path> files() const override;

  [[nodiscard]] const GgufHeader& header() const { return m_parts.front().header; }  // of part 1
  [[nodiscard]] std::string name() const;  // of the first file, as it is printed in messages
  // Number of tensors by type, block formats first: "Q4_K 24, Q6_K 5, F32 11".
  [[nodiscard]] std::string formats() const;
  [[nodiscard]] bool has_blocks() const;  // a tensor whose values need decoding
  [[nodiscard]] std::vector<std::string_view> tensor_names() const;

 private:
  struct Part {
    std::filesystem::path path;
    MappedFile file;
    GgufHeader header;
  };
  struct Place {
    std::size_t part;
    const GgufTensor* tensor;
  };
  static Result<Part> open_part(const std::filesystem::path& path);
  Result<void> open_other_parts();
  Result<void> collect();
  [[nodiscard]] Result<const Place*> find_place(const std::string& name) const;

  std::vector<Part> m_parts;
  std::map<std::string_view, Place> m_tensors;  // names lie in the headers
};

}  // namespace driftscope
