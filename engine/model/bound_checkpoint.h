// SPDX-License-Identifier: Apache-2.0
// What every checkpoint that was read from files has in common. Internal to engine/model.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/model/bound_tensors.h"
#include "engine/model/checkpoint.h"

namespace driftscope {

// A description and its tensors in their places. Who derives from it owns what the views point
// into, and says which files there are.
class BoundCheckpoint : public ModelCheckpoint {
 public:
  BoundCheckpoint(std::filesystem::path path, ModelDescription description, BoundTensors tensors,
                  StoredQuantisation quantisation);
  const std::filesystem::path& path() const override { return m_path; }
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
  const StoredQuantisation& quantisation() const override { return m_quantisation; }

 private:
  std::filesystem::path m_path;  // a directory, or one file that holds everything
  ModelDescription m_description;
  BoundTensors m_tensors;
  StoredQuantisation m_quantisation;
};

// Sizes and digests, sorted by file name. Errors: malformed, naming the file.
[[nodiscard]] Result<std::vector<CheckpointFile>> hash_files(
    const std::vector<std::filesystem::path>& paths);
// SHA-256 over the lines "name size sha256\n", in the order given.
[[nodiscard]] std::string combined_digest(const std::vector<CheckpointFile>& files);

}  // namespace driftscope
