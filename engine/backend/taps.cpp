// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/taps.h"

#include <cstddef>
#include <string>

namespace driftscope {
namespace {

std::int64_t hidden_width(const ModelDescription& m) { return m.hidden; }
std::int64_t query_width(const ModelDescription& m) { return m.heads * m.head_dim; }
std::int64_t key_width(const ModelDescription& m) { return m.kv_heads * m.head_dim; }
std::int64_t ffn_width(const ModelDescription& m) { return m.intermediate; }
std::int64_t expert_count(const ModelDescription& m) { return m.moe.experts; }

bool always(const ModelDescription&, std::int64_t) { return true; }
bool with_qk_norm(const ModelDescription& m, std::int64_t) { return m.qk_norm; }
bool with_rotation(const ModelDescription& m, std::int64_t) { return !m.learned_positions; }
bool with_post_norms(const ModelDescription& m, std::int64_t) { return m.post_norms; }
bool in_dense_gated(const ModelDescription& m, std::int64_t layer) {
  return m.gated && !m.moe.in_layer(layer);
}
bool in_dense(const ModelDescription& m, std::int64_t layer) { return !m.moe.in_layer(layer); }
bool in_sparse(const ModelDescription& m, std::int64_t layer) { return m.moe.in_layer(layer); }
bool with_shared(const ModelDescription& m, std::int64_t layer) {
  return m.moe.in_layer(layer) && m.moe.shared_intermediate > 0;
}

using enum OperationPlace;

constexpr std::array kOperations{
    OperationSpec{Operation::embd, "embd", before_layers, true, always, hidden_width,
                  "token embedding, scaled and with its position where the model does so"},
    OperationSpec{Operation::attn_norm, "attn_norm", in_layer, false, always, hidden_width,
                  "norm before attention"},
    OperationSpec{Operation::q_cur, "Qcur", in_layer, false, always, query_width,
                  "query projection, after its bias"},
    OperationSpec{Operation::k_cur, "Kcur", in_layer, false, always, key_width,
                  "key projection, after its bias"},
    OperationSpec{Operation::v_cur, "Vcur", in_layer, false, always, key_width,
                  "value projection, after its bias"},
    OperationSpec{Operation::q_cur_normed, "Qcur_normed", in_layer, false, with_qk_norm,
                  query_width, "queries after their norm per head"},
    OperationSpec{Operation::k_cur_normed, "Kcur_normed", in_layer, false, with_qk_norm, key_width,
                  "keys after their norm per head"},
    OperationSpec{Operation::q_rope, "Qrope", in_layer, false, with_rotation, query_width,
                  "queries after the rotary embedding"},
    OperationSpec{Operation::k_rope, "Krope", in_layer, false, with_rotation, key_width,
                  "keys after the rotary embedding"},
    OperationSpec{Operation::kqv_out, "kqv_out", in_layer, false, always, query_width,
                  "attention before the output projection"},
    OperationSpec{Operation::attn_out, "attn_out", in_layer, false, always, hidden_width,
                  "attention output projection"},
    OperationSpec{Operation::attn_post_norm, "attn_post_norm", in_layer, false, with_post_norms,
                  hidden_width, "norm of what attention adds"},
    OperationSpec{Operation::ffn_inp, "ffn_inp", in_layer, false, always, hidden_width,
                  "residual stream after attention"},
    OperationSpec{Operation::ffn_norm, "ffn_norm", in_layer, false, always, hidden_width,
                  "norm before the feed-forward part"},
    OperationSpec{Operation::ffn_gate, "ffn_gate", in_layer, false, in_dense_gated, ffn_width,
                  "gate projection"},
    OperationSpec{Operation::ffn_up, "ffn_up", in_layer, false, in_dense, ffn_width,
                  "up projection"},
    OperationSpec{Operation::ffn_swiglu, "ffn_swiglu", in_layer, false, in_dense, ffn_width,
                  "activated gate times up; activated up where there is no gate"},
    OperationSpec{Operation::moe_logits, "ffn_moe_logits", in_layer, false, in_sparse, expert_count,
                  "router"},
    OperationSpec{Operation::moe_out, "ffn_moe_out", in_layer, false, in_sparse, hidden_width,
                  "sum of the chosen experts' outputs times their weights"},
    OperationSpec{Operation::moe_shared, "ffn_shexp", in_layer, false, with_shared, hidden_width,
                  "shared expert, before its gate"},
    OperationSpec{Operation::ffn_out, "ffn_out", in_layer, false, always, hidden_width,
                  "what the feed-forward part adds: down projection, or the sum over experts"},
    OperationSpec{Operation::ffn_post_norm, "ffn_post_norm", in_layer, false, with_post_norms,
                  hidden_width, "norm of what the feed-forward part adds"},
    OperationSpec{Operation::l_out, "l_out", in_layer, true, always, hidden_width,
                  "residual stream after the layer"},
    OperationSpec{Operation::result_norm, "result_norm", after_layers, true, always, hidden_width,
                  "norm before the LM head"},
};

void append_place(std::vector<TapSpec>& specs, const ModelDescription& model, TapLevel level,
                  OperationPlace place, std::int64_t layer) {
  for (const OperationSpec& spec : kOperations) {
    if (spec.place != place) continue;
    if (level == TapLevel::layers && !spec.at_layers) continue;
    if (!spec.exists(model, layer)) continue;
    specs.push_back({.layer = static_cast<int>(layer),
                     .operation = std::string(spec.name),
                     .width = spec.width(model)});
  }
}

}  // namespace

std::span<const OperationSpec> tap_operations() { return kOperations; }

std::string_view name_of(Operation operation) {
  return kOperations[static_cast<std::size_t>(operation)].name;
}

RouteSpec route_spec(const ModelDescription& model) {
  RouteSpec spec;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    if (model.moe.in_layer(layer)) spec.layers.push_back(static_cast<std::int32_t>(layer));
  }
  if (spec.layers.empty()) return spec;
  spec.experts = model.moe.experts;
  spec.chosen = model.moe.chosen;
  return spec;
}

std::vector<TapSpec> tap_specs(const ModelDescription& model, TapLevel level) {
  std::vector<TapSpec> specs;
  if (level == TapLevel::logits) return specs;
  append_place(specs, model, level, before_layers, -1);
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    append_place(specs, model, level, in_layer, layer);
  }
  append_place(specs, model, level, after_layers, model.layers);
  return specs;
}

}  // namespace driftscope
