// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "engine/config/knob.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

RunConfig reference_f32() {
  RunConfig config;
  config.name = "reference-f32";
  config.weight_dtype = WeightDtype::f32;
  config.attention = AttentionMode::eager;
  config.rope_table_dtype = RopeTableDtype::f64;
  config.matmul_plan.accumulator = Accumulator::f64;
  config.softmax_dtype = Dtype::f64;
  return config;
}

RunConfig bf16_base() {
  RunConfig config;
  config.weight_dtype = WeightDtype::bf16;
  config.lm_head_dtype = WeightDtype::bf16;
  config.activation_dtype = Dtype::bf16;
  config.kv_dtype = KvDtype::bf16;
  config.rounding_points = RoundingPoints::fused;
  return config;
}

RunConfig bf16_invariant() {
  RunConfig config = bf16_base();
  config.name = "bf16-invariant";
  config.attention = AttentionMode::split_kv_size;
  return config;
}

RunConfig bf16_shape_dependent() {
  RunConfig config = bf16_base();
  config.name = "bf16-shape-dependent";
  config.matmul_policy = PlanPolicy::shape_dependent;
  config.attention = AttentionMode::split_kv_count;
  return config;
}

// Fused projections, kernels chosen by shape, split-KV decoding: what such a server does by
// default.
RunConfig vllm_default_like() {
  RunConfig config = bf16_shape_dependent();
  config.name = "vllm-default-like";
  config.fused_qkv = true;
  config.fused_gate_up = true;
  return config;
}

RunConfig vllm_batch_invariant_like() {
  RunConfig config = vllm_default_like();
  config.name = "vllm-batch-invariant-like";
  config.matmul_policy = PlanPolicy::invariant;
  config.attention = AttentionMode::split_kv_size;
  return config;
}

// Separate modules, each rounding its output; whole softmax; f32 softmax and norm statistics.
RunConfig hf_eager_like() {
  RunConfig config = bf16_base();
  config.name = "hf-eager-like";
  config.rounding_points = RoundingPoints::every_op;
  config.attention = AttentionMode::eager;
  config.matmul_policy = PlanPolicy::shape_dependent;
  config.rope_table_dtype = RopeTableDtype::bf16;
  return config;
}

RunConfig f16_invariant() {
  RunConfig config = bf16_invariant();
  config.name = "f16-invariant";
  config.weight_dtype = WeightDtype::f16;
  config.lm_head_dtype = WeightDtype::f16;
  config.activation_dtype = Dtype::f16;
  config.kv_dtype = KvDtype::f16;
  return config;
}

constexpr std::array kPresets{
    Preset{"reference-f32",
           "f32 activations, f64 matmul sums and softmax, eager attention: nearest to exact",
           &reference_f32},
    Preset{"bf16-invariant", "bf16, one plan for every shape: batch composition changes no bit",
           &bf16_invariant},
    Preset{"bf16-shape-dependent", "bf16, plans chosen from the rows in flight, fixed split count",
           &bf16_shape_dependent},
    Preset{"f16-invariant", "as bf16-invariant with f16", &f16_invariant},
    Preset{
        "vllm-default-like",
        "bf16, fused projections, shape-dependent plans, split-KV attention, as a serving engine",
        &vllm_default_like},
    Preset{"vllm-batch-invariant-like",
           "the same with one plan and fixed-size KV splits, as a serving engine's invariant mode",
           &vllm_batch_invariant_like},
    Preset{"hf-eager-like",
           "bf16, every module rounds its output, eager attention, bf16 RoPE table",
           &hf_eager_like},
};

Result<RunConfig> load_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return fail(ErrorKind::malformed, fmt::format("{}: cannot read this configuration file", path));
  }
  // A key given twice would set a knob twice, and the reader of the file would see only one.
  std::set<std::string> keys;
  std::string repeated;
  const auto note_key = [&](int depth, nlohmann::ordered_json::parse_event_t event,
                            nlohmann::ordered_json& parsed) {
    if (event == nlohmann::ordered_json::parse_event_t::key && depth == 1 &&
        !keys.insert(parsed.get<std::string>()).second) {
      repeated = parsed.get<std::string>();
    }
    return true;
  };
  const auto json = nlohmann::ordered_json::parse(text.str(), note_key, false);
  if (!repeated.empty()) {
    return fail(ErrorKind::malformed, fmt::format("{}: \"{}\" is given twice; keep one", path,
                                                  escape_for_display(repeated)));
  }
  if (json.is_discarded()) {
    return fail(
        ErrorKind::malformed,
        fmt::format("{}: not valid JSON; a configuration is an object of knob: value", path));
  }
  auto config = config_from_json(json, path);
  if (config && config->name.empty()) config->name = path;
  return config;
}

}  // namespace

std::span<const Preset> presets() { return kPresets; }

std::string config_label(const RunConfig& config) {
  const auto found = std::find_if(kPresets.begin(), kPresets.end(),
                                  [&](const Preset& preset) { return preset.name == config.name; });
  if (found == kPresets.end()) return config.name;
  const auto changed = config_difference(found->make(), config);
  if (changed.empty()) return config.name;
  constexpr std::size_t kShown = 3;
  if (changed.size() > kShown) {
    return fmt::format("{} + {} other knobs", config.name, changed.size());
  }
  std::string label = config.name + " +";
  for (std::size_t i = 0; i < changed.size(); ++i) {
    label += fmt::format("{}{}={}", i == 0 ? " " : ", ", changed[i].id, changed[i].b);
  }
  return label;
}

Result<RunConfig> load_config(std::string_view name_or_path) {
  const auto found = std::find_if(kPresets.begin(), kPresets.end(), [&](const Preset& preset) {
    return preset.name == name_or_path;
  });
  if (found != kPresets.end()) return found->make();
  const std::string path(name_or_path);
  if (path.find('/') != std::string::npos || path.ends_with(".json")) return load_file(path);
  std::string names;
  for (const Preset& preset : kPresets) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", preset.name);
  }
  return fail(ErrorKind::usage, fmt::format("unknown preset \"{}\"; give a .json file or one of {}",
                                            name_or_path, names));
}

}  // namespace driftscope
