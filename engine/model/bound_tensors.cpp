// SPDX-License-Identifier: Apache-2.0
#include "engine/model/bound_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/model/stored_shape.h"
#include "engine/model/tensor_table.h"

namespace driftscope {
namespace {

// Lives during bind_tensors() only.
class Binder {
 public:
  Binder(const TensorSource& source, const ModelDescription& description, std::string config_name,
         const Naming& naming)
      : m_source(source),
        m_description(description),
        m_config_name(std::move(config_name)),
        m_naming(naming) {}

  Result<BoundTensors> run() {
    if (auto good = check_counts(); !good) return tl::unexpected(std::move(good.error()));
    m_prefix = find_prefix();
    for (const ModelTensorRow& row : m_naming.model) {
      if (!is_present(row.presence, m_description, 0)) continue;
      const std::string_view prefix = row.in_head ? m_prefix.head : m_prefix.body;
      m_bound.*row.member = take(fmt::format("{}{}", prefix, row.name), row.shape, row.stored, 0);
    }
    if (!m_done) return tl::unexpected(std::move(m_done.error()));
    m_bound.layers.resize(static_cast<std::size_t>(m_description.layers));
    for (std::int64_t index = 0; index < m_description.layers && m_done; ++index) {
      bind_layer(index);
    }
    if (!m_done) return tl::unexpected(std::move(m_done.error()));
    return std::move(m_bound);
  }

 private:
  [[nodiscard]] NamePrefix find_prefix() const {
    for (const NamePrefix& prefix : m_naming.prefixes) {
      if (m_source.contains(fmt::format("{}{}", prefix.body, m_naming.model.front().name))) {
        return prefix;
      }
    }
    return m_naming.prefixes.front();  // the message names the usual one
  }

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
    // Stacked experts are counted by their tensor (bind_experts).
    const bool one_each = std::none_of(m_naming.experts.begin(), m_naming.experts.end(),
                                       [](const auto& row) { return row.stored.stacked; });
    if (one_each && static_cast<std::uint64_t>(m_description.moe.experts) > m_source.size()) {
      return fail(ErrorKind::malformed,
                  fmt::format("{}: {} experts cannot be, the weights have {} tensors; fix the "
                              "checkpoint",
                              m_config_name, m_description.moe.experts, m_source.size()));
    }
    return {};
  }

  [[nodiscard]] std::string layer_name(std::int64_t index) const {
    return fmt::format("{}{}{}.", m_prefix.body, m_naming.layer_prefix, index);
  }

  void bind_layer(std::int64_t index) {
    LayerTensors& layer = m_bound.layers[static_cast<std::size_t>(index)];
    const std::string begin = layer_name(index);
    for (const LayerTensorRow& row : m_naming.layers) {
      if (!is_present(row.presence, m_description, index)) continue;
      layer.*row.member = take(fmt::format("{}{}", begin, row.suffix), row.shape, row.stored, 0);
    }
    if (m_description.moe.in_layer(index)) bind_experts(index, layer);
  }

  void bind_experts(std::int64_t index, LayerTensors& layer) {
    const std::string begin = layer_name(index);
    // A stacked tensor of the right shape bounds what is allocated for the experts.
    for (const ExpertTensorRow& row : m_naming.experts) {
      if (!row.stored.stacked || !is_present(row.presence, m_description, index)) continue;
      static_cast<void>(
          take(fmt::format("{}{}{}", begin, row.prefix, row.suffix), row.shape, row.stored, 0));
    }
    if (!m_done) return;
    layer.experts.resize(static_cast<std::size_t>(m_description.moe.experts));
    for (std::size_t expert = 0; expert < layer.experts.size(); ++expert) {
      for (const ExpertTensorRow& row : m_naming.experts) {
        if (!is_present(row.presence, m_description, index)) continue;
        const std::string number = row.stored.stacked ? "" : fmt::format("{}", expert);
        layer.experts[expert].*row.member =
            take(fmt::format("{}{}{}{}", begin, row.prefix, number, row.suffix), row.shape,
                 row.stored, static_cast<std::int64_t>(expert));
      }
    }
  }

  // The first error stays; what follows it is skipped.
  TensorView take(const std::string& name, std::array<Dimension, 2> shape, const Stored& stored,
                  std::int64_t expert) {
    if (!m_done) return {};
    auto view = m_source.find(name);
    if (!view) {
      m_done = tl::unexpected(std::move(view.error()));
      return {};
    }
    m_done = check_shape(*view, stored_shape(shape, stored, m_description));
    if (!m_done) return {};
    return undo_storage(std::move(*view), shape, stored, m_description, expert);
  }

  [[nodiscard]] Result<void> check_shape(const TensorView& view,
                                         const StoredShape& expected) const {
    if (view.shape == expected.sizes) return {};
    std::string keys;
    for (std::size_t i = 0; i < expected.sizes.size() && keys.empty(); ++i) {
      if (i >= view.shape.size() || view.shape[i] != expected.sizes[i]) keys = expected.keys[i];
    }
    return fail(ErrorKind::malformed,
                fmt::format("{}: tensor {}: shape [{}], expected [{}] from {}{}{}; fix the "
                            "checkpoint",
                            m_source.file_of(view.name), view.name, fmt::join(view.shape, ", "),
                            fmt::join(expected.sizes, ", "), m_naming.described_by,
                            keys.empty() ? "" : " ", keys));
  }

  const TensorSource& m_source;
  const ModelDescription& m_description;
  std::string m_config_name;
  const Naming& m_naming;
  NamePrefix m_prefix;
  BoundTensors m_bound;
  Result<void> m_done;
};

}  // namespace

Result<BoundTensors> bind_tensors(const TensorSource& source, const ModelDescription& description,
                                  const std::string& config_name, const Naming& naming) {
  return Binder(source, description, config_name, naming).run();
}

Result<BoundTensors> bind_tensors(const TensorSource& source, const ModelDescription& description,
                                  const std::string& config_name) {
  return bind_tensors(source, description, config_name, huggingface_naming(description));
}

}  // namespace driftscope
