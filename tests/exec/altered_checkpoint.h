// SPDX-License-Identifier: Apache-2.0
// A checkpoint of which a test changes details: the description, or tensors.
#pragma once

#include <cstddef>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/model/checkpoint.h"

namespace driftscope::test {

class AlteredCheckpoint final : public ModelCheckpoint {
 public:
  explicit AlteredCheckpoint(std::shared_ptr<const ModelCheckpoint> original);

  // Of a tensor, as f32, row-major.
  [[nodiscard]] static std::vector<float> values_of(const TensorView& view);
  // Puts other values in a tensor's place; `shape` stays unless given.
  void set(TensorView& view, std::vector<float> values);
  // Each value of a tensor that is there by the same function.
  template <class Function>
  void map(TensorView& view, Function function) {
    if (!view.present()) return;
    std::vector<float> values = values_of(view);
    for (float& value : values) value = function(value);
    set(view, std::move(values));
  }

  [[nodiscard]] const std::filesystem::path& path() const override { return m_original->path(); }
  [[nodiscard]] const ModelDescription& description() const override { return changed; }
  [[nodiscard]] const TensorView& embedding() const override { return m_original->embedding(); }
  [[nodiscard]] const TensorView& final_norm() const override { return norm; }
  [[nodiscard]] const TensorView& final_norm_bias() const override { return norm_bias; }
  [[nodiscard]] const TensorView& lm_head() const override { return m_original->lm_head(); }
  [[nodiscard]] const TensorView& position_embedding() const override { return positions; }
  [[nodiscard]] const LayerTensors& layer(std::int64_t index) const override {
    return layers[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] Result<std::vector<CheckpointFile>> files() const override {
    return m_original->files();
  }
  [[nodiscard]] Result<std::string> combined_sha256() const override {
    return m_original->combined_sha256();
  }

  // To be changed before the checkpoint is used.
  ModelDescription changed;
  std::vector<LayerTensors> layers;
  TensorView norm, norm_bias, positions;

 private:
  std::shared_ptr<const ModelCheckpoint> m_original;
  std::deque<std::vector<float>> m_values;  // what altered tensors point to
};

}  // namespace driftscope::test
