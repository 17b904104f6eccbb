// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/host/host_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "kernels/quant/quantise.h"

namespace driftscope {
namespace {

Dtype effective_dtype(WeightDtype wanted, Dtype stored) {
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

std::optional<QuantFormat> quant_format(Quantisation quantisation) {
  switch (quantisation) {
    case Quantisation::int8_w8a16:
      return QuantFormat::int8_channel;
    case Quantisation::int8_w8a8:
      return QuantFormat::int8_dynamic;
    case Quantisation::fp8_tensor:
      return QuantFormat::fp8_tensor;
    case Quantisation::fp8_channel:
      return QuantFormat::fp8_channel;
    case Quantisation::int4_symmetric:
      return QuantFormat::int4_symmetric;
    case Quantisation::int4_asymmetric:
      return QuantFormat::int4_asymmetric;
    case Quantisation::none:
    case Quantisation::q8_0:  // block formats: refused by the registry
    case Quantisation::q4_0:
    case Quantisation::q4_k:
    case Quantisation::q5_k:
    case Quantisation::q6_k:
      break;
  }
  return std::nullopt;
}

// Groups mean nothing to the other formats; equal wishes then compare equal.
bool has_groups(QuantFormat format) {
  return quant_format_info(format).extent == ScaleExtent::group;
}

std::string note_of(const WeightOptions& options) {
  if (!options.quantisation) return {};
  const std::string format = to_string(*options.quantisation);
  return fmt::format(
      "weights: q_proj k_proj v_proj o_proj gate_proj up_proj down_proj {}, lm_head {}", format,
      options.quantise_lm_head ? format : "as stored");
}

std::int64_t rows_of(const TensorView& tensor) { return tensor.shape.at(0); }
std::int64_t columns_of(const TensorView& tensor) { return tensor.shape.at(1); }

const TensorView kNoTensor;  // the bias of matrices that never have one

}  // namespace

std::optional<QuantSpec> quant_spec(const RunConfig& config) {
  const auto format = quant_format(config.quantisation);
  if (!format) return std::nullopt;
  QuantSpec spec{.format = *format};
  if (has_groups(*format)) spec.group = config.quantisation_group;
  return spec;
}

// Builds a HostWeights; lives during load() only.
class WeightLoader {
 public:
  WeightLoader(HostWeights& target, const WeightOptions& options)
      : m_target(target), m_options(options) {}

  Result<void> load() {
    const ModelCheckpoint& checkpoint = *m_target.m_checkpoint;
    m_target.m_storage = m_options.storage.value_or(choose_storage());
    m_target.m_quantisation_note = note_of(m_options);
    if (auto done = load_embeddings(checkpoint); !done) return done;
    m_target.m_final_norm = vector_of(checkpoint.final_norm());
    const std::int64_t layers = checkpoint.description().layers;
    m_target.m_layers.resize(static_cast<std::size_t>(layers));
    for (std::int64_t i = 0; i < layers; ++i) {
      if (auto done =
              load_layer(checkpoint.layer(i), m_target.m_layers[static_cast<std::size_t>(i)]);
          !done) {
        return done;
      }
    }
    return {};
  }

 private:
  static std::vector<const TensorView*> matrices_of(const LayerTensors& layer) {
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

  // Copied if that leaves a quarter of the weights' size and half a gibibyte free.
  WeightStorage choose_storage() const {
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

  std::uint64_t bytes_of(const TensorView& tensor) const {
    if (m_options.quantisation) {
      const QuantLayout layout =
          quant_layout(*m_options.quantisation, rows_of(tensor), columns_of(tensor));
      return layout.code_bytes + layout.scale_count * sizeof(float) + layout.zero_bytes;
    }
    return static_cast<std::uint64_t>(tensor.elements()) *
           dtype_size(effective_dtype(m_options.weights, tensor.dtype));
  }

  Result<void> load_embeddings(const ModelCheckpoint& checkpoint) {
    const TensorView& table = checkpoint.embedding();
    const TensorView& head = checkpoint.lm_head();
    auto embedding = matrix(table, effective_dtype(m_options.weights, table.dtype));
    if (!embedding) return tl::unexpected(embedding.error());
    m_target.m_embedding = *embedding;
    if (m_options.quantisation && m_options.quantise_lm_head) {
      const TensorView* tensors[] = {&head};
      auto quantised = quantise(tensors);
      if (!quantised) return tl::unexpected(quantised.error());
      m_target.m_lm_head = *quantised;
      return {};
    }
    const Dtype head_dtype = effective_dtype(m_options.lm_head, head.dtype);
    if (head.same_storage(table) && head_dtype == embedding->dtype) {
      m_target.m_lm_head = *embedding;
      return {};
    }
    auto lm_head = matrix(head, head_dtype);
    if (!lm_head) return tl::unexpected(lm_head.error());
    m_target.m_lm_head = *lm_head;
    return {};
  }

  Result<void> load_layer(const LayerTensors& from, HostLayer& to) {
    to.attention_norm = vector_of(from.attention_norm);
    to.ffn_norm = vector_of(from.ffn_norm);
    if (from.q_norm.present()) to.q_norm = vector_of(from.q_norm);
    if (from.k_norm.present()) to.k_norm = vector_of(from.k_norm);
    const std::array qkv{Part{&from.q, &from.q_bias, &to.q}, Part{&from.k, &from.k_bias, &to.k},
                         Part{&from.v, &from.v_bias, &to.v}};
    if (auto done = group(qkv, to.qkv); !done) return done;
    if (auto done = single({&from.o, &from.o_bias, &to.o}); !done) return done;
    if (from.router.present()) return load_experts(from, to.moe);
    const std::array gate_up{Part{&from.gate, &from.gate_bias, &to.gate},
                             Part{&from.up, &from.up_bias, &to.up}};
    if (auto done = group(gate_up, to.gate_up); !done) return done;
    return single({&from.down, &from.down_bias, &to.down});
  }

  Result<void> load_experts(const LayerTensors& from, HostExperts& to) {
    if (auto done = unquantised({&from.router, &kNoTensor, &to.router}); !done) return done;
    to.experts.resize(from.experts.size());
    for (std::size_t i = 0; i < from.experts.size(); ++i) {
      if (auto done = load_expert(from.experts[i], to.experts[i]); !done) return done;
    }
    if (!from.shared_weight.present()) return {};
    const ExpertTensors shared{from.shared_gate, from.shared_up, from.shared_down};
    if (auto done = load_expert(shared, to.shared); !done) return done;
    return unquantised({&from.shared_weight, &kNoTensor, &to.shared_weight});
  }

  Result<void> load_expert(const ExpertTensors& from, HostExpert& to) {
    const std::array gate_up{Part{&from.gate, &kNoTensor, &to.gate},
                             Part{&from.up, &kNoTensor, &to.up}};
    if (auto done = group(gate_up, to.gate_up); !done) return done;
    return single({&from.down, &kNoTensor, &to.down});
  }

  struct Part {
    const TensorView* weight;
    const TensorView* bias;
    Linear* target;
  };

  Result<void> single(const Part& part) {
    if (m_options.quantisation) {
      const TensorView* tensors[] = {part.weight};
      auto quantised = quantise(tensors);
      if (!quantised) return tl::unexpected(quantised.error());
      part.target->weight = *quantised;
      part.target->bias = bias_of(part);
      return {};
    }
    return unquantised(part);
  }

  // Routers stay as they are, as in the quantised formats that people use: small, and a code more
  // or less would send rows elsewhere.
  Result<void> unquantised(const Part& part) {
    auto view = matrix(*part.weight, effective_dtype(m_options.weights, part.weight->dtype));
    if (!view) return tl::unexpected(view.error());
    part.target->weight = *view;
    part.target->bias = bias_of(part);
    return {};
  }

  // Matrices that read the same input lie one after the other, so that each alone and all as one
  // taller matrix are views of the same bytes.
  Result<void> group(std::span<const Part> parts, Linear& stacked) {
    if (m_options.quantisation) return quantised_group(parts, stacked);
    if (m_target.m_storage == WeightStorage::mapped && !m_options.stacked) {
      for (const Part& part : parts) {
        if (auto done = single(part); !done) return done;
      }
      return {};
    }
    const Dtype dtype = group_dtype(parts);
    std::int64_t rows = 0;
    for (const Part& part : parts) rows += rows_of(*part.weight);
    const std::int64_t columns = columns_of(*parts[0].weight);
    const std::size_t row_bytes = static_cast<std::size_t>(columns) * dtype_size(dtype);
    auto memory = m_target.m_arena.allocate(static_cast<std::size_t>(rows) * row_bytes);
    if (!memory) return tl::unexpected(memory.error());
    stacked.weight = {.data = *memory, .dtype = dtype, .rows = rows, .columns = columns};
    auto* next = static_cast<std::byte*>(*memory);
    for (const Part& part : parts) {
      part.weight->convert(dtype, next);
      const std::int64_t part_rows = rows_of(*part.weight);
      part.target->weight = {.data = next, .dtype = dtype, .rows = part_rows, .columns = columns};
      part.target->bias = bias_of(part);
      next += static_cast<std::size_t>(part_rows) * row_bytes;
    }
    stack_bias(parts, stacked);
    return {};
  }

  Result<void> quantised_group(std::span<const Part> parts, Linear& stacked) {
    std::vector<const TensorView*> tensors;
    for (const Part& part : parts) tensors.push_back(part.weight);
    auto whole = quantise(tensors);
    if (!whole) return tl::unexpected(whole.error());
    stacked.weight = *whole;
    std::int64_t row = 0;
    for (const Part& part : parts) {
      WeightView& view = part.target->weight;
      view = *whole;
      view.rows = rows_of(*part.weight);
      view.quantised = whole->quantised.from_row(row);
      view.data = view.quantised.codes;
      part.target->bias = bias_of(part);
      row += view.rows;
    }
    stack_bias(parts, stacked);
    return {};
  }

  // Matrices of the same width, each quantised on its own, their rows one after another.
  Result<WeightView> quantise(std::span<const TensorView* const> tensors) {
    const QuantSpec& spec = *m_options.quantisation;
    const std::int64_t columns = columns_of(*tensors[0]);
    std::int64_t rows = 0;
    for (const TensorView* tensor : tensors) rows += rows_of(*tensor);
    if (spec.format == QuantFormat::int8_dynamic && columns > kMostInt8Terms) {
      return fail(ErrorKind::engine,
                  fmt::format("{}: {} columns are more than the {} whose int8 products fit in 32 "
                              "bits; use --set quantisation=int8_w8a16",
                              tensors[0]->name, columns, kMostInt8Terms));
    }
    const QuantLayout layout = quant_layout(spec, rows, columns);
    auto codes = m_target.m_arena.allocate(layout.code_bytes);
    if (!codes) return tl::unexpected(codes.error());
    auto scales = m_target.m_arena.allocate(layout.scale_count * sizeof(float));
    if (!scales) return tl::unexpected(scales.error());
    QuantTarget target{.codes = static_cast<std::uint8_t*>(*codes),
                       .scales = static_cast<float*>(*scales)};
    if (layout.zero_bytes > 0) {
      auto zeros = m_target.m_arena.allocate(layout.zero_bytes);
      if (!zeros) return tl::unexpected(zeros.error());
      target.zeros = static_cast<std::uint8_t*>(*zeros);
    }
    const QuantisedView view = quantised_view(spec, layout, target);
    std::int64_t row = 0;
    for (const TensorView* tensor : tensors) {
      if (auto done = quantise_tensor(*tensor, view.from_row(row)); !done) {
        return tl::unexpected(done.error());
      }
      row += rows_of(*tensor);
    }
    return WeightView{
        .data = *codes, .dtype = Dtype::f32, .rows = rows, .columns = columns, .quantised = view};
  }

  Result<void> quantise_tensor(const TensorView& tensor, const QuantisedView& at) const {
    SerialParallel serial;
    Parallel& parallel = m_options.parallel == nullptr ? serial : *m_options.parallel;
    std::vector<float> decoded(
        tensor.decoder == nullptr ? std::size_t{0} : static_cast<std::size_t>(tensor.elements()));
    if (tensor.decoder != nullptr) tensor.values(0, tensor.elements(), decoded.data());
    const bool plain = tensor.decoder == nullptr;
    const auto bad =
        quantise_matrix(*m_options.quantisation, plain ? tensor.dtype : Dtype::f32,
                        plain ? tensor.data : decoded.data(), rows_of(tensor), columns_of(tensor),
                        {.codes = const_cast<std::uint8_t*>(at.codes),
                         .scales = const_cast<float*>(at.scales),
                         .zeros = const_cast<std::uint8_t*>(at.zeros)},
                        parallel);
    if (!bad) return {};
    return fail(ErrorKind::malformed,
                fmt::format("{}: element [{}, {}] is NaN or infinite and cannot be quantised",
                            tensor.name, *bad / columns_of(tensor), *bad % columns_of(tensor)));
  }

  // A group of mixed types is held as f32: widening is exact, so no value changes.
  Dtype group_dtype(std::span<const Part> parts) const {
    const Dtype first = effective_dtype(m_options.weights, parts[0].weight->dtype);
    for (const Part& part : parts) {
      if (effective_dtype(m_options.weights, part.weight->dtype) != first) return Dtype::f32;
    }
    return first;
  }

  static void stack_bias(std::span<const Part> parts, Linear& stacked) {
    const bool any = std::any_of(parts.begin(), parts.end(),
                                 [](const Part& part) { return part.bias->present(); });
    if (!any) return;
    for (const Part& part : parts) {
      std::vector<float> bias = part.target->bias;
      // -0, not +0: the only value that leaves every sum as it was.
      bias.resize(static_cast<std::size_t>(rows_of(*part.weight)), -0.0F);
      stacked.bias.insert(stacked.bias.end(), bias.begin(), bias.end());
    }
  }

  std::vector<float> bias_of(const Part& part) const {
    return part.bias->present() ? vector_of(*part.bias) : std::vector<float>{};
  }

  // Norm weights and biases: rounded to the weight type if that was asked for, then kept as f32.
  std::vector<float> vector_of(const TensorView& tensor) const {
    std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
    tensor.values(0, tensor.elements(), values.data());
    round_span(effective_dtype(m_options.weights, tensor.dtype), values.data(), values.size());
    return values;
  }

  Result<WeightView> matrix(const TensorView& tensor, Dtype dtype) {
    WeightView view{.data = tensor.data,
                    .dtype = dtype,
                    .rows = rows_of(tensor),
                    .columns = columns_of(tensor)};
    // A file may place a tensor at any byte; kernels read whole elements.
    const bool as_is = tensor.decoder == nullptr && dtype == tensor.dtype &&
                       reinterpret_cast<std::uintptr_t>(tensor.data) % dtype_size(dtype) == 0;
    if (m_target.m_storage == WeightStorage::mapped && as_is) return view;
    auto memory =
        m_target.m_arena.allocate(static_cast<std::size_t>(tensor.elements()) * dtype_size(dtype));
    if (!memory) return tl::unexpected(memory.error());
    tensor.convert(dtype, static_cast<std::byte*>(*memory));
    view.data = *memory;
    return view;
  }

  HostWeights& m_target;
  const WeightOptions& m_options;
};

Result<std::shared_ptr<const HostWeights>> HostWeights::load(
    std::shared_ptr<const ModelCheckpoint> checkpoint, const WeightOptions& options) {
  auto weights = std::make_shared<HostWeights>();
  weights->m_checkpoint = std::move(checkpoint);
  if (auto done = WeightLoader(*weights, options).load(); !done) {
    return tl::unexpected(done.error());
  }
  return std::shared_ptr<const HostWeights>(std::move(weights));
}

std::string HostWeights::storage_note() const {
  const std::size_t mebibytes = (m_arena.bytes_handed_out() + (std::size_t{1} << 19U)) >> 20U;
  const std::string quantised =
      m_quantisation_note.empty() ? std::string{} : "; " + m_quantisation_note;
  if (m_storage == WeightStorage::mapped) {
    return fmt::format("weights mapped from the checkpoint's files, {} MiB converted{}", mebibytes,
                       quantised);
  }
  return fmt::format("weights copied to anonymous memory, {} MiB, huge pages {}{}", mebibytes,
                     m_arena.huge_pages_asked() ? "asked" : "refused", quantised);
}

Result<std::shared_ptr<const HostWeights>> WeightCache::get(
    const std::shared_ptr<const ModelCheckpoint>& checkpoint, const WeightOptions& options) {
  const std::lock_guard lock(m_mutex);
  std::erase_if(m_entries, [](const Entry& entry) { return entry.loaded.expired(); });
  for (const Entry& entry : m_entries) {
    auto loaded = entry.loaded.lock();
    if (!loaded || entry.checkpoint.lock() != checkpoint) continue;
    if (entry.weights != options.weights || entry.lm_head != options.lm_head) continue;
    if (entry.quantisation != options.quantisation) continue;
    if (options.quantisation && entry.quantise_lm_head != options.quantise_lm_head) continue;
    const bool stacked = entry.stacked || loaded->storage() == WeightStorage::copied ||
                         entry.quantisation.has_value();
    if (options.stacked && !stacked) continue;
    if (options.storage && *options.storage != loaded->storage()) continue;
    return loaded;
  }
  auto loaded = HostWeights::load(checkpoint, options);
  if (loaded) {
    m_entries.push_back({.checkpoint = checkpoint,
                         .weights = options.weights,
                         .lm_head = options.lm_head,
                         .stacked = options.stacked,
                         .quantisation = options.quantisation,
                         .quantise_lm_head = options.quantise_lm_head,
                         .loaded = *loaded});
  }
  return loaded;
}

}  // namespace driftscope
