// SPDX-License-Identifier: Apache-2.0
#include "engine/model/quantised_summary.h"

#include <fmt/format.h>

#include <set>
#include <system_error>

#include "engine/model/model_tensors.h"

namespace driftscope {
namespace {

std::set<std::string> files_of_codes(const TensorSource& source, const BoundTensors& tensors) {
  std::set<std::string> files;
  const VisitTensor visit = [&](const TensorView& view) {
    if (view.decoder == nullptr) return;
    const std::filesystem::path file = source.file_of(view.name);
    if (file.extension() == ".safetensors") files.insert(file.filename().string());
  };
  for (const LayerTensors& layer : tensors.layers) for_each_tensor(layer, visit);
  for (const TensorView* view : {&tensors.embedding, &tensors.lm_head}) {
    if (view->present()) visit(*view);
  }
  return files;
}

}  // namespace

StoredQuantisation stored_quantisation(const QuantisedConfig& config, const TensorSource& source,
                                       const BoundTensors& tensors,
                                       const std::filesystem::path& directory) {
  StoredQuantisation result;
  if (config.method == QuantisedMethod::none) return result;
  std::set<std::string> files = files_of_codes(source, tensors);
  if (files.empty()) {
    result.notes.push_back(
        fmt::format("the configuration says {}, but every tensor that the model "
                    "uses is stored plain",
                    config.text));
    return result;
  }
  result.method = config.text;
  if (!config.activations.empty()) {
    result.notes.push_back(
        fmt::format("the checkpoint is made for activations in {}; here the file decides the "
                    "weights only, activations are as the configuration says",
                    config.activations));
  }
  if (!config.kv_cache.empty()) {
    result.notes.push_back(
        fmt::format("the checkpoint is made for a KV cache in {}; here "
                    "the configuration decides (knob kv_dtype)",
                    config.kv_cache));
  }
  std::error_code error;
  for (const char* name : {"kv_cache_scales.json", "quantize_config.json", "quant_config.json"}) {
    if (std::filesystem::exists(directory / name, error)) files.insert(name);
  }
  result.scale_files.assign(files.begin(), files.end());
  return result;
}

}  // namespace driftscope
