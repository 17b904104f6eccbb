// SPDX-License-Identifier: Apache-2.0
// The matrices of WeightLoader: as they are stored, converted, stacked, or quantised.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "engine/backend/host/weight_conversion.h"
#include "engine/backend/host/weight_loader.h"
#include "kernels/quant/quantise.h"

namespace driftscope {

Result<void> WeightLoader::single(const Part& part) {
  if (m_options.quantisation) {
    const TensorView* tensors[] = {part.weight};
    auto quantised = quantise(tensors);
    if (!quantised) return tl::unexpected(quantised.error());
    part.target->weight = *quantised;
    part.target->bias = vector_of(*part.bias);
    return {};
  }
  return unquantised(part);
}

Result<void> WeightLoader::unquantised(const Part& part) {
  auto view = matrix(*part.weight, loaded_dtype(m_options.weights, part.weight->dtype));
  if (!view) return tl::unexpected(view.error());
  part.target->weight = *view;
  part.target->bias = vector_of(*part.bias);
  return {};
}

Result<void> WeightLoader::group(std::span<const Part> parts, Linear& stacked) {
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
    convert_weights(*part.weight, dtype, next, m_options.parallel);
    const std::int64_t part_rows = rows_of(*part.weight);
    part.target->weight = {.data = next, .dtype = dtype, .rows = part_rows, .columns = columns};
    part.target->bias = vector_of(*part.bias);
    next += static_cast<std::size_t>(part_rows) * row_bytes;
  }
  stack_bias(parts, stacked);
  return {};
}

Result<void> WeightLoader::quantised_group(std::span<const Part> parts, Linear& stacked) {
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
    part.target->bias = vector_of(*part.bias);
    row += view.rows;
  }
  stack_bias(parts, stacked);
  return {};
}

Result<WeightView> WeightLoader::quantise(std::span<const TensorView* const> tensors) {
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

Result<void> WeightLoader::quantise_tensor(const TensorView& tensor,
                                           const QuantisedView& at) const {
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

Dtype WeightLoader::group_dtype(std::span<const Part> parts) const {
  const Dtype first = loaded_dtype(m_options.weights, parts[0].weight->dtype);
  for (const Part& part : parts) {
    if (loaded_dtype(m_options.weights, part.weight->dtype) != first) return Dtype::f32;
  }
  return first;
}

void WeightLoader::stack_bias(std::span<const Part> parts, Linear& stacked) {
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

Result<WeightView> WeightLoader::matrix(const TensorView& tensor, Dtype dtype) {
  WeightView view{
      .data = tensor.data, .dtype = dtype, .rows = rows_of(tensor), .columns = columns_of(tensor)};
  // A file may place a tensor at any byte; kernels read whole elements.
  const bool as_is = tensor.decoder == nullptr && dtype == tensor.dtype &&
                     reinterpret_cast<std::uintptr_t>(tensor.data) % dtype_size(dtype) == 0;
  if (m_target.m_storage == WeightStorage::mapped && as_is) return view;
  auto memory =
      m_target.m_arena.allocate(static_cast<std::size_t>(tensor.elements()) * dtype_size(dtype));
  if (!memory) return tl::unexpected(memory.error());
  convert_weights(tensor, dtype, static_cast<std::byte*>(*memory), m_options.parallel);
  view.data = *memory;
  return view;
}

}  // namespace driftscope
