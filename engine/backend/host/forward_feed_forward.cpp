// SPDX-License-Identifier: Apache-2.0
// The feed-forward part of ForwardPass.
#include <array>

#include "engine/backend/host/forward_pass.h"
#include "engine/backend/host/forward_support.h"
#include "kernels/activation/activation.h"

namespace driftscope {
namespace {

ActivationKind activation_kind(Activation activation) {
  switch (activation) {
    case Activation::silu:
      return ActivationKind::silu;
    case Activation::gelu_tanh:
      return ActivationKind::gelu_tanh;
    case Activation::gelu_erf:
      return ActivationKind::gelu_erf;
  }
  return ActivationKind::silu;
}

}  // namespace

// m_delta: what the feed-forward part adds to the residual stream.
void ForwardPass::run_feed_forward(const HostLayer& layer, std::int64_t index) {
  normalise(m_x.data(), layer.ffn_norm, layer.ffn_norm_bias, m_normed.data(), m_rows);
  m_taps.record(Operation::ffn_norm, index, m_normed.data(), m_model.hidden);
  if (m_model.moe.in_layer(index)) {
    m_experts.run(layer.moe, index, m_normed.data(), m_rows, m_delta.data());
  } else {
    if (m_model.gated) {
      project_gated(layer, index);
    } else {
      project_ungated(layer, index);
    }
    m_projector.share_terms(
        m_phase, "down_proj",
        projection(layer.down, m_activated.data(), m_delta.data(), m_model.intermediate), m_plans);
  }
  m_taps.record(Operation::ffn_out, index, m_delta.data(), m_model.hidden);
  if (!m_model.post_norms) return;
  normalise_rms(m_delta.data(), layer.post_ffn_norm, m_delta.data(), m_rows, m_model.hidden);
  m_taps.record(Operation::ffn_post_norm, index, m_delta.data(), m_model.hidden);
}

void ForwardPass::project_gated(const HostLayer& layer, std::int64_t index) {
  const std::int64_t width = m_model.intermediate;
  const bool stacked = m_config.fused_gate_up && m_config.tensor_parallel == 1;
  const std::int64_t stride = stacked ? 2 * width : width;
  float* gate = m_gate_up.data();
  float* up = stacked ? gate + width : gate + m_rows * width;
  const std::array parts{projection(layer.gate, m_normed.data(), gate, width),
                         projection(layer.up, m_normed.data(), up, width)};
  if (stacked) {
    const Projection both = projection(layer.gate_up, m_normed.data(), gate, 1);
    m_projector.share_outputs(m_phase, "gate_up_proj", {&both, 1}, m_plans);
  } else if (m_config.fused_gate_up) {
    m_projector.share_outputs(m_phase, "gate_up_proj", parts, m_plans);
  } else {
    m_projector.share_outputs(m_phase, "gate_proj", {&parts[0], 1}, m_plans);
    m_projector.share_outputs(m_phase, "up_proj", {&parts[1], 1}, m_plans);
  }
  m_taps.record(Operation::ffn_gate, index, gate, stride);
  m_taps.record(Operation::ffn_up, index, up, stride);
  activate(gate, up, stride, index);
}

void ForwardPass::project_ungated(const HostLayer& layer, std::int64_t index) {
  const std::int64_t width = m_model.intermediate;
  const Projection only = projection(layer.up, m_normed.data(), m_gate_up.data(), width);
  m_projector.share_outputs(m_phase, "up_proj", {&only, 1}, m_plans);
  m_taps.record(Operation::ffn_up, index, m_gate_up.data(), width);
  activate(m_gate_up.data(), nullptr, width, index);
}

void ForwardPass::activate(const float* gate, const float* up, std::int64_t stride,
                           std::int64_t index) {
  swiglu({.gate = gate,
          .up = up,
          .y = m_activated.data(),
          .rows = m_rows,
          .width = m_model.intermediate,
          .gate_stride = stride,
          .up_stride = stride,
          .silu_dtype = m_rounding.silu,
          .output_dtype = m_rounding.swiglu,
          .kind = activation_kind(m_model.activation)},
         m_isa, m_parallel);
  m_taps.record(Operation::ffn_swiglu, index, m_activated.data(), m_model.intermediate);
}

}  // namespace driftscope
