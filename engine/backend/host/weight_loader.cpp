// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/host/weight_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "kernels/quant/quantise.h"

namespace driftscope {
namespace {

std::string note_of(const WeightOptions& options) {
  if (!options.quantisation) return {};
  const std::string format = to_string(*options.quantisation);
  return fmt::format(
      "weights: q_proj k_proj v_proj o_proj gate_proj up_proj down_proj {}, lm_head {}", format,
      options.quantise_lm_head ? format : "as stored");
}

const TensorView kNoTensor;  // the bias of matrices that never have one

std::vector<const TensorView*> matrices_of(const LayerTensors& layer) {
  std::vector<const TensorView*> all{&layer.q,         &layer.k,          &layer.v,
                                     &layer.o,         &layer.gate,       &layer.up,
                                     &layer.down,      &layer.router,     &layer.shared_gate,
                                     &layer.shared_up, &layer.shared_down};
  for (const ExpertTensors& expert : layer.experts) {
    all.insert(all.end(), {&expert.gate, &expert.up, &expert.down});
  }
  std::erase_if(all, [](const TensorView* tensor) { return !tensor->present(); });
  return all;
}

}  // namespace

Dtype loaded_dtype(WeightDtype wanted, Dtype stored) {
  switch (wanted) {
    case WeightDtype::checkpoint:
      return stored;
    case WeightDtype::f32:
      return Dtype::f32;
    case WeightDtype::f16:
      return Dtype::f16;
    case WeightDtype::bf16:
      return Dtype::bf16;
  }
  return stored;
}

Result<void> WeightLoader::load() {
  const ModelCheckpoint& checkpoint = *m_target.m_checkpoint;
  m_target.m_storage = m_options.storage.value_or(choose_storage());
  m_target.m_quantisation_note = note_of(m_options);
  if (auto done = load_embeddings(checkpoint); !done) return done;
  m_target.m_final_norm = norm_weight_of(checkpoint.final_norm());
  m_target.m_final_norm_bias = vector_of(checkpoint.final_norm_bias());
  const std::int64_t layers = checkpoint.description().layers;
  m_target.m_layers.resize(static_cast<std::size_t>(layers));
  for (std::int64_t i = 0; i < layers; ++i) {
    HostLayer& layer = m_target.m_layers[static_cast<std::size_t>(i)];
    if (auto done = load_layer(checkpoint.layer(i), layer); !done) return done;
  }
  return {};
}

// Copied if that leaves a quarter of the weights' size and half a gibibyte free.
WeightStorage WeightLoader::choose_storage() const {
  const ModelCheckpoint& checkpoint = *m_target.m_checkpoint;
  std::uint64_t bytes = 2 * checkpoint.embedding().bytes();
  for (std::int64_t i = 0; i < checkpoint.description().layers; ++i) {
    for (const TensorView* tensor : matrices_of(checkpoint.layer(i))) {
      bytes += bytes_of(*tensor);
    }
  }
  constexpr std::uint64_t kSpare = std::uint64_t{512} << 20U;
  return bytes + bytes / 4 + kSpare < available_memory() ? WeightStorage::copied
                                                         : WeightStorage::mapped;
}

std::uint64_t WeightLoader::bytes_of(const TensorView& tensor) const {
  if (m_options.quantisation) {
    const QuantLayout layout =
        quant_layout(*m_options.quantisation, rows_of(tensor), columns_of(tensor));
    return layout.code_bytes + layout.scale_count * sizeof(float) + layout.zero_bytes;
  }
  return static_cast<std::uint64_t>(tensor.elements()) *
         dtype_size(loaded_dtype(m_options.weights, tensor.dtype));
}

Result<void> WeightLoader::load_embeddings(const ModelCheckpoint& checkpoint) {
  const TensorView& table = checkpoint.embedding();
  const TensorView& head = checkpoint.lm_head();
  auto embedding = matrix(table, loaded_dtype(m_options.weights, table.dtype));
  if (!embedding) return tl::unexpected(embedding.error());
  m_target.m_embedding = *embedding;
  if (const TensorView& positions = checkpoint.position_embedding(); positions.present()) {
    auto view = matrix(positions, loaded_dtype(m_options.weights, positions.dtype));
    if (!view) return tl::unexpected(view.error());
    m_target.m_position_embedding = *view;
  }
  if (m_options.quantisation && m_options.quantise_lm_head) {
    const TensorView* tensors[] = {&head};
    auto quantised = quantise(tensors);
    if (!quantised) return tl::unexpected(quantised.error());
    m_target.m_lm_head = *quantised;
    return {};
  }
  const Dtype head_dtype = loaded_dtype(m_options.lm_head, head.dtype);
  if (head.same_storage(table) && head_dtype == embedding->dtype) {
    m_target.m_lm_head = *embedding;
    return {};
  }
  auto lm_head = matrix(head, head_dtype);
  if (!lm_head) return tl::unexpected(lm_head.error());
  m_target.m_lm_head = *lm_head;
  return {};
}

void WeightLoader::load_norms(const LayerTensors& from, HostLayer& to) const {
  to.attention_norm = norm_weight_of(from.attention_norm);
  to.attention_norm_bias = vector_of(from.attention_norm_bias);
  to.post_attention_norm = norm_weight_of(from.post_attention_norm);
  to.q_norm = norm_weight_of(from.q_norm);
  to.k_norm = norm_weight_of(from.k_norm);
  to.ffn_norm = norm_weight_of(from.ffn_norm);
  to.ffn_norm_bias = vector_of(from.ffn_norm_bias);
  to.post_ffn_norm = norm_weight_of(from.post_ffn_norm);
}

Result<void> WeightLoader::load_layer(const LayerTensors& from, HostLayer& to) {
  load_norms(from, to);
  to.sinks = vector_of(from.sinks);
  const std::array qkv{Part{&from.q, &from.q_bias, &to.q}, Part{&from.k, &from.k_bias, &to.k},
                       Part{&from.v, &from.v_bias, &to.v}};
  if (auto done = group(qkv, to.qkv); !done) return done;
  if (auto done = single({&from.o, &from.o_bias, &to.o}); !done) return done;
  if (from.router.present()) return load_experts(from, to.moe);
  return load_feed_forward(from, to);
}

Result<void> WeightLoader::load_feed_forward(const LayerTensors& from, HostLayer& to) {
  const Part up{&from.up, &from.up_bias, &to.up};
  if (from.gate.present()) {
    const std::array gate_up{Part{&from.gate, &from.gate_bias, &to.gate}, up};
    if (auto done = group(gate_up, to.gate_up); !done) return done;
  } else if (auto done = single(up); !done) {
    return done;
  }
  return single({&from.down, &from.down_bias, &to.down});
}

Result<void> WeightLoader::load_experts(const LayerTensors& from, HostExperts& to) {
  if (auto done = unquantised({&from.router, &from.router_bias, &to.router}); !done) return done;
  to.experts.resize(from.experts.size());
  for (std::size_t i = 0; i < from.experts.size(); ++i) {
    if (auto done = load_expert(from.experts[i], to.experts[i]); !done) return done;
  }
  if (!from.shared_weight.present()) return {};
  const ExpertTensors shared{from.shared_gate, from.shared_up, from.shared_down};
  if (auto done = load_expert(shared, to.shared); !done) return done;
  return unquantised({&from.shared_weight, &kNoTensor, &to.shared_weight});
}

Result<void> WeightLoader::load_expert(const ExpertTensors& from, HostExpert& to) {
  const std::array gate_up{Part{&from.gate, &from.gate_bias, &to.gate},
                           Part{&from.up, &from.up_bias, &to.up}};
  if (auto done = group(gate_up, to.gate_up); !done) return done;
  return single({&from.down, &from.down_bias, &to.down});
}

std::vector<float> WeightLoader::vector_of(const TensorView& tensor) const {
  if (!tensor.present()) return {};
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  tensor.values(0, tensor.elements(), values.data());
  round_span(loaded_dtype(m_options.weights, tensor.dtype), values.data(), values.size());
  return values;
}

// Gemma's norms multiply by 1 + w, in f32 whatever the type of w: rounding 1 + w to bf16 would lose
// what w has below 2^-8. So w = (1 + w) - 1 is rounded, exact where it had that type before.
std::vector<float> WeightLoader::norm_weight_of(const TensorView& tensor) const {
  const bool adds_one = m_target.m_checkpoint->description().post_norms;
  if (!adds_one || !tensor.present()) return vector_of(tensor);
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  tensor.values(0, tensor.elements(), values.data());
  if (m_options.weights == WeightDtype::checkpoint) return values;
  const Dtype dtype = loaded_dtype(m_options.weights, tensor.dtype);
  for (float& value : values) value = 1.0F + round_to(dtype, value - 1.0F);
  return values;
}

}  // namespace driftscope
