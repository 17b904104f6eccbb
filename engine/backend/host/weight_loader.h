// SPDX-License-Identifier: Apache-2.0
// From a checkpoint's tensors to HostWeights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/backend/host/host_weights.h"

namespace driftscope {

// Builds a HostWeights; lives during load() only.
class WeightLoader {
 public:
  // Both outlive the loader.
  WeightLoader(HostWeights& target, const WeightOptions& options)
      : m_target(target), m_options(options) {}

  // Errors: see HostWeights::load().
  [[nodiscard]] Result<void> load();

 private:
  // One matrix of a layer: where it comes from and where it goes.
  struct Part {
    const TensorView* weight;
    const TensorView* bias;
    Linear* target;
  };

  [[nodiscard]] WeightStorage choose_storage() const;
  [[nodiscard]] std::uint64_t bytes_of(const TensorView& tensor) const;

  Result<void> load_embeddings(const ModelCheckpoint& checkpoint);
  void load_norms(const LayerTensors& from, HostLayer& to) const;
  Result<void> load_layer(const LayerTensors& from, HostLayer& to);
  Result<void> load_feed_forward(const LayerTensors& from, HostLayer& to);
  Result<void> load_experts(const LayerTensors& from, HostExperts& to);
  Result<void> load_expert(const ExpertTensors& from, HostExpert& to);

  // weight_matrices.cpp
  Result<void> single(const Part& part);
  // Routers stay as they are, as in the quantised formats that people use: small, and a code more
  // or less would send rows elsewhere.
  Result<void> unquantised(const Part& part);
  // Matrices that read the same input lie one after the other, so that each alone and all as one
  // taller matrix are views of the same bytes.
  Result<void> group(std::span<const Part> parts, Linear& stacked);
  Result<void> quantised_group(std::span<const Part> parts, Linear& stacked);
  // Matrices of the same width, each quantised on its own, their rows one after another.
  Result<WeightView> quantise(std::span<const TensorView* const> tensors);
  Result<void> quantise_tensor(const TensorView& tensor, const QuantisedView& at) const;
  Result<WeightView> matrix(const TensorView& tensor, Dtype dtype);
  // A group of mixed types is held as f32: widening is exact, so no value changes.
  [[nodiscard]] Dtype group_dtype(std::span<const Part> parts) const;
  static void stack_bias(std::span<const Part> parts, Linear& stacked);

  // Norm weights and biases: rounded to the weight type if that was asked for, then kept as f32;
  // empty where the tensor is absent.
  [[nodiscard]] std::vector<float> vector_of(const TensorView& tensor) const;
  // A norm's weight. Where the model adds 1 to what its file holds, the rounding is of what is
  // held.
  [[nodiscard]] std::vector<float> norm_weight_of(const TensorView& tensor) const;

  HostWeights& m_target;
  const WeightOptions& m_options;
};

// What `wanted` makes of a tensor stored as `stored`.
[[nodiscard]] Dtype loaded_dtype(WeightDtype wanted, Dtype stored);

[[nodiscard]] inline std::int64_t rows_of(const TensorView& tensor) { return tensor.shape.at(0); }
[[nodiscard]] inline std::int64_t columns_of(const TensorView& tensor) {
  return tensor.shape.at(1);
}

}  // namespace driftscope
