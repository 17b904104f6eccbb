// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/host/host_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/backend/host/weight_loader.h"

namespace driftscope {
namespace {

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

}  // namespace

std::optional<QuantSpec> quant_spec(const RunConfig& config) {
  const auto format = quant_format(config.quantisation);
  if (!format) return std::nullopt;
  QuantSpec spec{.format = *format};
  if (has_groups(*format)) spec.group = config.quantisation_group;
  return spec;
}

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
