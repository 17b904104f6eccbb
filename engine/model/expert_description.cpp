// SPDX-License-Identifier: Apache-2.0
#include "engine/model/expert_description.h"

#include <fmt/format.h>

#include <algorithm>

namespace driftscope {
namespace {

// mlp_only_layers: layers that stay dense. Numbers beyond the last layer say nothing, as in the
// reference implementation.
std::vector<std::int64_t> read_dense_layers(ConfigFields& fields) {
  constexpr std::int64_t kHighest = 0x7fffffff;
  std::vector<std::int64_t> layers;
  const auto* list = fields.find("mlp_only_layers");
  if (list == nullptr) return layers;
  if (!list->is_array()) {
    fields.refuse(
        fmt::format("mlp_only_layers is {}; it must be a list of layers", show_value(*list)));
    return layers;
  }
  for (const auto& item : *list) {
    const auto layer = integer_in(item, kHighest);
    if (!layer) {
      fields.refuse(fmt::format("mlp_only_layers has {}; layers count from 0", show_value(item)));
      return layers;
    }
    layers.push_back(*layer);
  }
  std::sort(layers.begin(), layers.end());
  return layers;
}

void read_own_keys(ConfigFields& fields, const Architecture::Mixture& mixture,
                   ExpertDescription& moe) {
  moe.intermediate = fields.count("moe_intermediate_size", mixture.default_intermediate);
  moe.renormalise = fields.flag("norm_topk_prob", false);
  moe.step = fields.count("decoder_sparse_step", 1);
  moe.dense_layers = read_dense_layers(fields);
  if (mixture.default_shared > 0) {
    moe.shared_intermediate =
        fields.count("shared_expert_intermediate_size", mixture.default_shared);
  }
}

}  // namespace

void read_experts(ConfigFields& fields, const Architecture& architecture,
                  ModelDescription& description) {
  const Architecture::Mixture& mixture = architecture.mixture;
  if (mixture.experts_key.empty()) return;
  ExpertDescription moe;
  moe.experts = fields.whole(mixture.experts_key, mixture.default_experts);
  moe.chosen = fields.count("num_experts_per_tok", mixture.default_chosen);
  moe.names = mixture.names;
  if (mixture.own_keys) {
    read_own_keys(fields, mixture, moe);
  } else {
    moe.intermediate = description.intermediate;
    moe.renormalise = !mixture.gpt_oss;
  }
  if (mixture.gpt_oss) {
    constexpr double kDefaultLimit = 7.0;
    moe.router_bias = true;
    moe.biases = true;
    moe.softmax_of_chosen = true;
    moe.swiglu_limit = fields.positive("swiglu_limit", kDefaultLimit);
    if (moe.experts == 0) fields.refuse("num_local_experts is 0; it must be at least 1");
  }
  if (!fields.good()) return;
  if (moe.experts > 0 && moe.chosen > moe.experts) {
    fields.refuse(fmt::format("num_experts_per_tok {} is more than {} {}; fix the checkpoint",
                              moe.chosen, mixture.experts_key, moe.experts));
    return;
  }
  description.moe = std::move(moe);
}

}  // namespace driftscope
