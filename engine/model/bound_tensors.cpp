// SPDX-License-Identifier: Apache-2.0
#include "engine/model/bound_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "engine/model/tensor_table.h"

namespace driftscope {
namespace {

// Lives during bind_tensors() only.
class Binder {
 public:
  Binder(const TensorSource& source, const ModelDescription& description, std::string config_name)
      : m_source(source), m_description(description), m_config_name(std::move(config_name)) {}

  Result<BoundTensors> run() {
    if (auto good = check_counts(); !good) return tl::unexpected(std::move(good.error()));
    m_prefix =
        m_source.contains("model.embed_tokens.weight") || !m_source.contains("embed_tokens.weight")
            ? "model."
            : "";
    take(m_prefix + "embed_tokens.weight", {Dimension::vocabulary, Dimension::hidden},
         m_bound.embedding);
    take(m_prefix + "norm.weight", {Dimension::hidden, Dimension::one}, m_bound.final_norm);
    if (!m_description.tied_embeddings) {
      take("lm_head.weight", {Dimension::vocabulary, Dimension::hidden}, m_bound.lm_head);
    }
    m_bound.layers.resize(static_cast<std::size_t>(m_description.layers));
    for (std::int64_t index = 0; index < m_description.layers && m_done; ++index) {
      bind_layer(index);
    }
    if (!m_done) return tl::unexpected(std::move(m_done.error()));
    return std::move(m_bound);
  }

 private:
  // Each layer has several tensors: a count from the configuration beyond what the files hold is
  // refused before anything is allocated for it.
  [[nodiscard]] Result<void> check_counts() const {
    if (static_cast<std::uint64_t>(m_description.layers) > m_source.size()) {
      return fail(
          ErrorKind::malformed,
          fmt::format("{}: num_hidden_layers {} cannot be, the weights have {} tensors; fix "
                      "the checkpoint",
                      m_config_name, m_description.layers, m_source.size()));
    }
    if (static_cast<std::uint64_t>(m_description.moe.experts) > m_source.size()) {
      return fail(ErrorKind::malformed,
                  fmt::format("{}: {} experts cannot be, the weights have {} tensors; fix the "
                              "checkpoint",
                              m_config_name, m_description.moe.experts, m_source.size()));
    }
    return {};
  }

  void bind_layer(std::int64_t index) {
    LayerTensors& layer = m_bound.layers[static_cast<std::size_t>(index)];
    for (const LayerTensorRow& row : layer_tensor_table()) {
      if (!is_present(row.presence, m_description, index)) continue;
      take(fmt::format("{}layers.{}.{}", m_prefix, index, row.suffix), row.shape,
           layer.*row.member);
    }
    if (m_description.moe.in_layer(index)) bind_experts(index, layer);
  }

  void bind_experts(std::int64_t index, LayerTensors& layer) {
    layer.experts.resize(static_cast<std::size_t>(m_description.moe.experts));
    for (std::size_t expert = 0; expert < layer.experts.size(); ++expert) {
      for (const ExpertTensorRow& row : expert_tensor_table()) {
        if (!is_present(row.presence, m_description, index)) continue;
        take(fmt::format("{}layers.{}.{}{}{}", m_prefix, index, row.prefix, expert, row.suffix),
             row.shape, layer.experts[expert].*row.member);
      }
    }
  }

  // The first error stays; what follows it is skipped.
  void take(const std::string& name, std::array<Dimension, 2> shape, TensorView& target) {
    if (!m_done) return;
    auto view = m_source.find(name);
    if (!view) {
      m_done = tl::unexpected(std::move(view.error()));
      return;
    }
    m_done = check_shape(*view, shape);
    target = std::move(*view);
  }

  [[nodiscard]] Result<void> check_shape(const TensorView& view,
                                         std::array<Dimension, 2> shape) const {
    std::vector<std::int64_t> expected;
    std::string_view keys;
    for (std::size_t i = 0; i < shape.size() && shape[i] != Dimension::one; ++i) {
      expected.push_back(dimension_size(shape[i], m_description));
      const bool differs = i >= view.shape.size() || view.shape[i] != expected[i];
      if (differs && keys.empty()) keys = dimension_keys(shape[i]);
    }
    if (view.shape == expected) return {};
    return fail(
        ErrorKind::malformed,
        fmt::format("{}: tensor {}: shape [{}], expected [{}] from config.json{}{}; fix the "
                    "checkpoint",
                    m_source.file_of(view.name), view.name, fmt::join(view.shape, ", "),
                    fmt::join(expected, ", "), keys.empty() ? "" : " ", keys));
  }

  const TensorSource& m_source;
  const ModelDescription& m_description;
  std::string m_config_name;
  std::string m_prefix;  // "model." or nothing, before every name but lm_head
  BoundTensors m_bound;
  Result<void> m_done;
};

}  // namespace

Result<BoundTensors> bind_tensors(const TensorSource& source, const ModelDescription& description,
                                  const std::string& config_name) {
  return Binder(source, description, config_name).run();
}

}  // namespace driftscope
