// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/host/attention_setup.h"

#include <fmt/format.h>

#include <algorithm>

namespace driftscope {
namespace {

AttentionKind attention_kind(AttentionMode mode) {
  switch (mode) {
    case AttentionMode::eager:
      return AttentionKind::eager;
    case AttentionMode::flash:
      return AttentionKind::flash;
    case AttentionMode::split_kv_count:
      return AttentionKind::split_kv_count;
    case AttentionMode::split_kv_size:
      return AttentionKind::split_kv_size;
  }
  return AttentionKind::flash;
}

std::string kind_note(const RunConfig& config) {
  switch (config.attention) {
    case AttentionMode::eager:
      return fmt::format("attention: eager lanes={}", config.attention_lanes);
    case AttentionMode::flash:
      return fmt::format("attention: flash tile={} lanes={}", config.attention_tile,
                         config.attention_lanes);
    case AttentionMode::split_kv_count:
      return fmt::format("attention: split_kv_count splits={} lanes={} {}", config.attention_splits,
                         config.attention_lanes, name_of(config.attention_combine));
    case AttentionMode::split_kv_size:
      return fmt::format("attention: split_kv_size size={} lanes={} {}",
                         config.attention_split_size, config.attention_lanes,
                         name_of(config.attention_combine));
  }
  return {};
}

}  // namespace

std::string attention_note(const RunConfig& config) {
  std::string note = kind_note(config);
  if (!plain_dtype(config.kv_dtype)) note += fmt::format(" cache={}", dtype_name(config.kv_dtype));
  if (config.attention_page > 0) note += fmt::format(" page={}", config.attention_page);
  return note;
}

std::string attention_note(const RunConfig& config, const ModelDescription& model) {
  std::string note = attention_note(config);
  if (model.attention_softcap > 0.0) note += fmt::format(" softcap={}", model.attention_softcap);
  if (model.attention_sinks) note += " sinks";
  if (model.sliding_layers.empty()) return note;
  const auto sliding = std::count_if(model.sliding_layers.begin(), model.sliding_layers.end(),
                                     [](std::uint8_t slides) { return slides != 0; });
  return note +
         fmt::format(" window={} in {} of {} layers", model.sliding_window, sliding, model.layers);
}

AttentionArguments attention_arguments(const RunConfig& config, const ModelDescription& model,
                                       const RoundingScheme& rounding,
                                       std::span<const AttentionSequence> sequences,
                                       std::int64_t layer, const float* sinks) {
  const bool split_by_size = config.attention == AttentionMode::split_kv_size;
  ReductionPlan plan;
  plan.lanes = config.attention_lanes;
  return {.sequences = sequences,
          .heads = model.heads,
          .kv_heads = model.kv_heads,
          .head_dim = model.head_dim,
          .scale = static_cast<float>(model.query_scale()),
          .window = model.window(layer),
          .softcap = static_cast<float>(model.attention_softcap),
          .sinks = sinks,
          .kv_dtype = config.kv_dtype,
          .kind = attention_kind(config.attention),
          .tile = split_by_size ? config.attention_split_size : config.attention_tile,
          .splits = static_cast<int>(config.attention_splits),
          .score_plan = plan,
          .sum_plan = plan,
          .split_combine = config.attention_combine,
          .softmax_dtype = config.softmax_dtype,
          .score_dtype = rounding.score,
          .probability_dtype = rounding.probability,
          .output_dtype = rounding.attention};
}

}  // namespace driftscope
