// SPDX-License-Identifier: Apache-2.0
#include "engine/model/model_tensors.h"

namespace driftscope {
namespace {

void visit_present(const TensorView& view, const VisitTensor& visit) {
  if (view.present()) visit(view);
}

using L = LayerTensors;
// In the order of the network.
constexpr TensorView L::*kBefore[] = {&L::attention_norm,
                                      &L::attention_norm_bias,
                                      &L::q,
                                      &L::k,
                                      &L::v,
                                      &L::q_bias,
                                      &L::k_bias,
                                      &L::v_bias,
                                      &L::q_norm,
                                      &L::k_norm,
                                      &L::sinks,
                                      &L::o,
                                      &L::o_bias,
                                      &L::post_attention_norm,
                                      &L::ffn_norm,
                                      &L::ffn_norm_bias,
                                      &L::gate,
                                      &L::up,
                                      &L::gate_bias,
                                      &L::up_bias,
                                      &L::down,
                                      &L::down_bias,
                                      &L::router,
                                      &L::router_bias};
constexpr TensorView L::*kAfter[] = {&L::shared_gate, &L::shared_up, &L::shared_down,
                                     &L::shared_weight, &L::post_ffn_norm};
using E = ExpertTensors;
constexpr TensorView E::*kExpert[] = {&E::gate,      &E::up,      &E::down,
                                      &E::gate_bias, &E::up_bias, &E::down_bias};

}  // namespace

void for_each_tensor(const LayerTensors& layer, const VisitTensor& visit) {
  for (const auto member : kBefore) visit_present(layer.*member, visit);
  for (const ExpertTensors& expert : layer.experts) {
    for (const auto member : kExpert) visit_present(expert.*member, visit);
  }
  for (const auto member : kAfter) visit_present(layer.*member, visit);
}

void for_each_tensor(const ModelCheckpoint& model, const VisitTensor& visit) {
  visit_present(model.embedding(), visit);
  visit_present(model.position_embedding(), visit);
  for (std::int64_t layer = 0; layer < model.description().layers; ++layer) {
    for_each_tensor(model.layer(layer), visit);
  }
  visit_present(model.final_norm(), visit);
  visit_present(model.final_norm_bias(), visit);
  if (!model.lm_head().same_storage(model.embedding())) visit_present(model.lm_head(), visit);
}

}  // namespace driftscope
