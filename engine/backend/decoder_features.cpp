// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/decoder_features.h"

#include <array>
#include <string_view>

namespace driftscope {
namespace {

struct Feature {
  std::string_view phrase;
  bool (*has)(const ModelDescription&);
};

constexpr std::array<Feature, 13> kFeatures{{
    {"layer norms", [](const ModelDescription& m) { return m.norm != NormKind::rms; }},
    {"norms after attention and feed-forward",
     [](const ModelDescription& m) { return m.post_norms; }},
    {"GELU", [](const ModelDescription& m) { return m.activation != Activation::silu; }},
    {"a feed-forward part without gate", [](const ModelDescription& m) { return !m.gated; }},
    {"scaled embeddings", [](const ModelDescription& m) { return m.embedding_scale != 1.0; }},
    {"learned positions", [](const ModelDescription& m) { return m.learned_positions; }},
    {"an attention scale of its own",
     [](const ModelDescription& m) { return m.attention_scale > 0.0; }},
    {"soft caps",
     [](const ModelDescription& m) { return m.attention_softcap > 0.0 || m.final_softcap > 0.0; }},
    {"attention sinks", [](const ModelDescription& m) { return m.attention_sinks; }},
    {"a window in some layers only",
     [](const ModelDescription& m) { return !m.sliding_layers.empty(); }},
    {"angles of their own in some layers",
     [](const ModelDescription& m) { return m.local_rope_theta.has_value(); }},
    {"heads rotated in part, or by an attention factor or LongRoPE",
     [](const ModelDescription& m) {
       return m.rotated() != m.head_dim || m.rope_scaling.attention_factor != 1.0 ||
              m.rope_scaling.kind == RopeScaling::Kind::longrope;
     }},
    {"experts with biases or a clamped activation",
     [](const ModelDescription& m) {
       return m.moe.router_bias || m.moe.biases || m.moe.softmax_of_chosen ||
              m.moe.swiglu_limit > 0.0;
     }},
}};

}  // namespace

std::vector<std::string> features_beyond_llama(const ModelDescription& model) {
  std::vector<std::string> phrases;
  for (const Feature& feature : kFeatures) {
    if (feature.has(model)) phrases.emplace_back(feature.phrase);
  }
  return phrases;
}

}  // namespace driftscope
