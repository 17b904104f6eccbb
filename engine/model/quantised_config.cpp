// SPDX-License-Identifier: Apache-2.0
#include "engine/model/quantised_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "engine/model/config_fields.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kSupported =
    "supported are gptq, awq, fp8, fbgemm_fp8, compressed-tensors and mxfp4";

std::string group_text(const QuantisedConfig& config) {
  return config.group_size == 0 ? "one group a row" : fmt::format("group {}", config.group_size);
}

// -1 is the format's word for one group over all inputs.
std::int64_t read_group_size(ConfigFields& fields, std::string_view key, std::int64_t fallback) {
  const Json* value = fields.find(key);
  if (value != nullptr && value->is_number_integer() && *value == -1) return 0;
  return fields.count(key, fallback);
}

void allow(ConfigFields& fields, std::string_view key, const std::string& value,
           std::initializer_list<std::string_view> allowed) {
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return;
  std::string list;
  for (const std::string_view item : allowed) {
    list += fmt::format("{}\"{}\"", list.empty() ? "" : ", ", item);
  }
  fields.refuse(fmt::format("{} \"{}\" is not supported; supported: {}", key,
                            escape_for_display(value), list));
}

// A part of the method that would change the weights' values and is not read.
void refuse_present(ConfigFields& fields, std::string_view key) {
  const Json* value = fields.find(key);
  if (value == nullptr || (value->is_structured() && value->empty())) return;
  fields.refuse(
      fmt::format("{} is not supported; use a checkpoint quantised the same way "
                  "throughout",
                  key));
}

std::int64_t listed(const ConfigFields& fields, std::string_view key) {
  const Json* value = fields.find(key);
  return value != nullptr && value->is_array() ? static_cast<std::int64_t>(value->size()) : 0;
}

void read_gptq(ConfigFields& fields, QuantisedConfig& config) {
  config.method = QuantisedMethod::gptq;
  const std::int64_t bits = fields.count("bits");
  if (fields.good() && bits != 2 && bits != 3 && bits != 4 && bits != 8) {
    fields.refuse(fmt::format("bits {} is not supported; supported: 2, 3, 4, 8", bits));
  }
  config.bits = static_cast<unsigned>(bits);
  config.group_size = read_group_size(fields, "group_size", 128);
  config.symmetric = fields.flag("sym", true);
  config.reordered = fields.flag("desc_act", false);
  const std::string format = fields.text("checkpoint_format", "gptq");
  allow(fields, "checkpoint_format", format, {"gptq", "gptq_v2"});
  config.stored_zero_is_one_less = format == "gptq";
  if (fields.flag("is_marlin_format", false)) {
    fields.refuse("is_marlin_format is set: that order of codes is not supported");
  }
  refuse_present(fields, "dynamic");
  config.text = fmt::format("GPTQ int{}, {}, {}{}{}", config.bits, group_text(config),
                            config.symmetric ? "symmetric" : "zero points",
                            config.reordered ? ", inputs reordered (desc_act)" : "",
                            config.stored_zero_is_one_less ? "" : ", format gptq_v2");
}

void read_awq(ConfigFields& fields, QuantisedConfig& config) {
  config.method = QuantisedMethod::awq;
  const std::int64_t bits = fields.count("bits", fields.count("w_bit", 4));
  if (fields.good() && bits != 4) {
    fields.refuse(fmt::format("bits {} is not supported; AWQ checkpoints have 4", bits));
  }
  config.bits = 4;
  config.group_size =
      read_group_size(fields, "group_size", read_group_size(fields, "q_group_size", 128));
  config.symmetric = !fields.flag("zero_point", true);
  std::string version = fields.text("version", "gemm");
  std::transform(version.begin(), version.end(), version.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  allow(fields, "version", version, {"gemm"});
  config.ignored = listed(fields, "modules_to_not_convert");
  config.text = fmt::format("AWQ int4, {}, {}", group_text(config),
                            config.symmetric ? "symmetric" : "zero points");
}

void read_fp8(ConfigFields& fields, QuantisedConfig& config) {
  config.method = QuantisedMethod::fp8;
  allow(fields, "fmt", fields.text("fmt", "e4m3"), {"e4m3", "e4m3fn", "e5m2", "float8_e4m3fn"});
  if (const Json* block = fields.find("weight_block_size")) {
    const bool good = block->is_array() && block->size() == 2 &&
                      integer_in((*block)[0], 1 << 20).value_or(0) > 0 &&
                      integer_in((*block)[1], 1 << 20).value_or(0) > 0;
    if (good) {
      config.block_rows = (*block)[0].get<std::int64_t>();
      config.block_columns = (*block)[1].get<std::int64_t>();
    } else {
      fields.refuse(fmt::format("weight_block_size is {}; it must be two sizes, [128, 128]",
                                show_value(*block)));
    }
  }
  const std::string scheme = fields.text("activation_scheme", "dynamic");
  allow(fields, "activation_scheme", scheme, {"dynamic", "static"});
  config.activations = scheme == "static" ? "fp8 with the scales of input_scale"
                                          : "fp8 with scales taken at run time";
  config.ignored =
      std::max(listed(fields, "modules_to_not_convert"), listed(fields, "ignored_layers"));
  config.text = "FP8";
  if (config.block_rows > 0) {
    config.text +=
        fmt::format(", a scale per block of {} x {}", config.block_rows, config.block_columns);
  }
}

// "int8 per token, scales taken at run time" of input_activations and the like.
std::string activation_text(const Json& scheme) {
  if (!scheme.is_object()) return {};
  const auto text = [&](const char* key, const char* fallback) {
    const auto found = scheme.find(key);
    return found != scheme.end() && found->is_string()
               ? escape_for_display(found->get<std::string>())
               : std::string(fallback);
  };
  const auto bits = scheme.find("num_bits");
  const auto dynamic = scheme.find("dynamic");
  const bool at_run_time = dynamic != scheme.end() && *dynamic != false;
  return fmt::format("{}{} per {}, scales {}", text("type", "int") == "float" ? "fp" : "int",
                     bits != scheme.end() ? show_value(*bits) : "8", text("strategy", "tensor"),
                     at_run_time ? "taken at run time" : "stored");
}

void read_group(ConfigFields& group, QuantisedConfig& config, std::string& text) {
  const Json* weights = group.find("weights");
  if (weights == nullptr || !weights->is_object()) {
    group.refuse("has no weights; fix the checkpoint");
    return;
  }
  ConfigFields fields(*weights, group.name() + " weights");
  const std::int64_t bits = fields.count("num_bits", 8);
  const std::string type = fields.text("type", "int");
  const std::string strategy = fields.text("strategy", "tensor");
  allow(fields, "type", type, {"int", "float"});
  allow(fields, "strategy", strategy, {"tensor", "channel", "group", "block"});
  if (type == "float" && bits != 8) fields.refuse(fmt::format("fp{} is not supported", bits));
  if (type == "int" && bits != 4 && bits != 8) {
    fields.refuse(fmt::format("int{} is not supported; supported: int4, int8", bits));
  }
  config.symmetric = fields.flag("symmetric", true);
  const bool first = config.packed_bits.empty();
  config.zeros_required = (first || config.zeros_required) && !config.symmetric;
  // "group" (older exports: true) orders the inputs by weight_g_idx; "weight" and "static" do not.
  if (const Json* order = fields.find("actorder"); order != nullptr) {
    config.reordered = config.reordered || *order == "group" || *order == true;
  }
  if (strategy == "group") config.group_size = read_group_size(fields, "group_size", 128);
  if (const Json* block = fields.find("block_structure"); block != nullptr && strategy == "block") {
    const auto size = [&](std::size_t i) {
      return block->is_array() && block->size() == 2 ? integer_in((*block)[i], 1 << 20).value_or(0)
                                                     : 0;
    };
    config.block_rows = size(0);
    config.block_columns = size(1);
    if (config.block_rows == 0 || config.block_columns == 0) {
      fields.refuse("block_structure must be two sizes, [128, 128]");
    }
  }
  group.adopt(fields);
  config.packed_bits.push_back(static_cast<unsigned>(bits));
  text += fmt::format("{}{}{}, a scale per {}{}", text.empty() ? "" : "; ",
                      type == "float" ? "fp" : "int", bits, strategy,
                      config.symmetric ? "" : ", zero points");
  if (const Json* input = group.find("input_activations"); input != nullptr) {
    config.activations = activation_text(*input);
  }
}

void read_compressed(ConfigFields& fields, QuantisedConfig& config) {
  config.method = QuantisedMethod::compressed_tensors;
  const std::string format = fields.text("format", "");
  allow(fields, "format", format,
        {"int-quantized", "float-quantized", "naive-quantized", "pack-quantized"});
  refuse_present(fields, "transform_config");
  if (const Json* sparsity = fields.find("sparsity_config");
      sparsity != nullptr && sparsity->contains("format") && (*sparsity)["format"] != "dense") {
    fields.refuse("sparsity_config is not supported; use a checkpoint without sparse compression");
  }
  const Json* groups = fields.find("config_groups");
  if (groups == nullptr || !groups->is_object() || groups->empty()) {
    fields.refuse("config_groups is missing; fix the checkpoint");
    return;
  }
  std::string text;
  for (const auto& [key, value] : groups->items()) {
    ConfigFields group(value,
                       fmt::format("{} config_groups {}", fields.name(), escape_for_display(key)));
    if (group.good()) read_group(group, config, text);
    fields.adopt(group);
  }
  if (groups->size() > 1) {  // the tensors say for themselves
    config.group_size = 0;
    config.block_rows = 0;
    config.block_columns = 0;
  }
  config.ignored = listed(fields, "ignore");
  if (const Json* cache = fields.find("kv_cache_scheme")) config.kv_cache = activation_text(*cache);
  config.text = "compressed-tensors " + text;
  if (config.group_size > 0) config.text += fmt::format(" of {}", config.group_size);
}

void read_method(ConfigFields& fields, QuantisedConfig& config) {
  const std::string method = fields.text("quant_method", "");
  if (!fields.good()) return;
  if (method == "gptq") return read_gptq(fields, config);
  if (method == "awq") return read_awq(fields, config);
  if (method == "fp8" || method == "fbgemm_fp8") return read_fp8(fields, config);
  if (method == "compressed-tensors") return read_compressed(fields, config);
  if (method == "mxfp4") {
    config.method = QuantisedMethod::mxfp4;
    config.ignored = listed(fields, "modules_to_not_convert");
    config.text = "MXFP4 experts";
    return;
  }
  fields.refuse(method.empty() ? fmt::format("quant_method is missing; {}", kSupported)
                               : fmt::format("quant_method \"{}\" is not supported; {}",
                                             escape_for_display(method), kSupported));
}

}  // namespace

Result<QuantisedConfig> read_quantised_config(const Json& config, const std::string& name) {
  QuantisedConfig result;
  const auto found = config.find("quantization_config");
  if (found == config.end() || found->is_null()) return result;
  ConfigFields fields(*found, name + " quantization_config");
  if (fields.good()) read_method(fields, result);
  if (!fields.good()) return fields.failure();
  return result;
}

}  // namespace driftscope
