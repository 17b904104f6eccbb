// SPDX-License-Identifier: Apache-2.0
// One layer of CudaForwardPass.
#include <array>
#include <cmath>

#include "engine/backend/cuda/cuda_forward_pass.h"
#include "engine/backend/host/attention_setup.h"

namespace driftscope {

Result<void> CudaForwardPass::run_layer(std::int64_t index) {
  const DeviceLayer& layer = m_weights->layer(index);
  normalise(m_x.as<float>(), layer.attention_norm, m_normed.as<float>(), m_tables.rows(),
            m_model.hidden);
  record(Operation::attn_norm, index, m_normed, m_model.hidden);
  if (auto done = project_qkv(layer, index); !done) return done;
  if (m_model.qk_norm) normalise_heads(layer, index);
  rotate(index);
  attend(index);
  if (auto done = share_terms("o_proj", projection(layer.o, m_attended.as<float>(),
                                                   m_delta.as<float>(), m_model.heads));
      !done) {
    return done;
  }
  record(Operation::attn_out, index, m_delta, m_model.hidden);
  add_to_residual();
  record(Operation::ffn_inp, index, m_x, m_model.hidden);
  if (auto done = feed_forward(layer, index); !done) return done;
  add_to_residual();
  record(Operation::l_out, index, m_x, m_model.hidden);
  return {};
}

Result<void> CudaForwardPass::project_qkv(const DeviceLayer& layer, std::int64_t index) {
  const float* x = m_normed.as<float>();
  // Three that may run side by side.
  const std::array parts{projection(layer.q, x, m_q.as<float>(), m_model.heads, 0),
                         projection(layer.k, x, m_k.as<float>(), m_model.kv_heads, 1),
                         projection(layer.v, x, m_v.as<float>(), m_model.kv_heads, 2)};
  if (m_config.fused_qkv && m_config.tensor_parallel == 1) {
    const CudaProjection stacked = projection(layer.qkv, x, m_qkv.as<float>(), 1);
    if (auto done = share_outputs("qkv_proj", {&stacked, 1}); !done) return done;
    split_qkv();
  } else {
    m_session->call(m_session->table().fork);
    if (m_config.fused_qkv) {
      if (auto done = share_outputs("qkv_proj", parts); !done) return done;
    } else {
      constexpr std::array kNames{"q_proj", "k_proj", "v_proj"};
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if (auto done = share_outputs(kNames[i], {&parts[i], 1}); !done) return done;
      }
    }
    m_session->call(m_session->table().join);
  }
  record(Operation::q_cur, index, m_q, m_model.heads * m_model.head_dim);
  record(Operation::k_cur, index, m_k, m_model.kv_heads * m_model.head_dim);
  record(Operation::v_cur, index, m_v, m_model.kv_heads * m_model.head_dim);
  return {};
}

void CudaForwardPass::split_qkv() {
  const std::int64_t queries = m_model.heads * m_model.head_dim;
  const std::int64_t keys = m_model.kv_heads * m_model.head_dim;
  const auto take = [&](std::int64_t begin, std::int64_t width, const DeviceList& target) {
    m_session->run(m_session->table().gather, DeviceGather{.x = m_qkv.as<float>() + begin,
                                                           .rows = nullptr,
                                                           .y = target.as<float>(),
                                                           .count = m_tables.rows(),
                                                           .width = width,
                                                           .x_stride = queries + 2 * keys,
                                                           .y_stride = width});
  };
  take(0, queries, m_q);
  take(queries, keys, m_k);
  take(queries + keys, keys, m_v);
}

void CudaForwardPass::normalise_heads(const DeviceLayer& layer, std::int64_t index) {
  const std::int64_t rows = m_tables.rows();
  normalise(m_q.as<float>(), layer.q_norm, m_q.as<float>(), rows * m_model.heads, m_model.head_dim);
  normalise(m_k.as<float>(), layer.k_norm, m_k.as<float>(), rows * m_model.kv_heads,
            m_model.head_dim);
  record(Operation::q_cur_normed, index, m_q, m_model.heads * m_model.head_dim);
  record(Operation::k_cur_normed, index, m_k, m_model.kv_heads * m_model.head_dim);
}

void CudaForwardPass::rotate(std::int64_t index) {
  DeviceRope request{.x = m_q.as<float>(),
                     .positions = m_tables.device_rows(index).positions,
                     .cosine = m_cosine.as<float>(),
                     .sine = m_sine.as<float>(),
                     .rows = m_tables.rows(),
                     .heads = m_model.heads,
                     .half = m_model.head_dim / 2,
                     .interleaved = false,
                     .round_products = m_rounding.rope_products,
                     .output_dtype = m_rounding.rope};
  m_session->run(m_session->table().rope, request);
  request.x = m_k.as<float>();
  request.heads = m_model.kv_heads;
  m_session->run(m_session->table().rope, request);
  record(Operation::q_rope, index, m_q, m_model.heads * m_model.head_dim);
  record(Operation::k_rope, index, m_k, m_model.kv_heads * m_model.head_dim);
}

void CudaForwardPass::attend(std::int64_t index) {
  const AttentionArguments host = attention_arguments(m_config, m_model, m_rounding, {});
  m_session->run(m_session->table().store_kv, DeviceStoreKv{.batch = m_tables.device_rows(index),
                                                            .k = m_k.as<float>(),
                                                            .v = m_v.as<float>(),
                                                            .kv_heads = m_model.kv_heads,
                                                            .head_dim = m_model.head_dim,
                                                            .value_dtype = m_rounding.stored_value,
                                                            .kv_dtype = host.kv_dtype});
  m_session->run(m_session->table().attention,
                 DeviceAttention{.batch = m_tables.device_rows(index),
                                 .q = m_q.as<float>(),
                                 .y = m_attended.as<float>(),
                                 .heads = host.heads,
                                 .kv_heads = host.kv_heads,
                                 .head_dim = host.head_dim,
                                 .scale = host.scale,
                                 .window = host.window,
                                 .kv_dtype = host.kv_dtype,
                                 .kind = host.kind,
                                 .tile = host.tile,
                                 .splits = host.splits,
                                 .score_plan = device_plan(host.score_plan, nullptr),
                                 .sum_plan = device_plan(host.sum_plan, nullptr),
                                 .split_combine = host.split_combine,
                                 .merge_orders = m_tables.merge_orders(),
                                 .merge_order_begin = m_tables.merge_order_begin(),
                                 .softmax_dtype = host.softmax_dtype,
                                 .score_dtype = host.score_dtype,
                                 .probability_dtype = host.probability_dtype,
                                 .output_dtype = host.output_dtype,
                                 .scores = m_scores.as<float>(),
                                 .score_stride = m_score_stride});
  record(Operation::kqv_out, index, m_attended, m_model.heads * m_model.head_dim);
}

Result<void> CudaForwardPass::feed_forward(const DeviceLayer& layer, std::int64_t index) {
  const std::int64_t rows = m_tables.rows();
  normalise(m_x.as<float>(), layer.ffn_norm, m_normed.as<float>(), rows, m_model.hidden);
  record(Operation::ffn_norm, index, m_normed, m_model.hidden);
  const auto done =
      m_model.moe.in_layer(index)
          ? m_experts.run(layer.moe, index, m_normed.as<float>(), rows, m_delta.as<float>())
          : feed_forward_dense(layer, index);
  if (!done) return done;
  record(Operation::ffn_out, index, m_delta, m_model.hidden);
  return {};
}

Result<void> CudaForwardPass::feed_forward_dense(const DeviceLayer& layer, std::int64_t index) {
  const std::int64_t width = m_model.intermediate;
  const std::int64_t rows = m_tables.rows();
  const bool stacked = m_config.fused_gate_up && m_config.tensor_parallel == 1;
  const std::int64_t stride = stacked ? 2 * width : width;
  const float* x = m_normed.as<float>();
  float* gate = m_gate_up.as<float>();
  float* up = stacked ? gate + width : gate + rows * width;
  const std::array parts{projection(layer.gate, x, gate, width, 0),
                         projection(layer.up, x, up, width, 1)};
  Result<void> done;
  if (stacked) {
    const CudaProjection both = projection(layer.gate_up, x, gate, 1);
    done = share_outputs("gate_up_proj", {&both, 1});
  } else {
    m_session->call(m_session->table().fork);
    if (m_config.fused_gate_up) {
      done = share_outputs("gate_up_proj", parts);
    } else {
      done = share_outputs("gate_proj", {&parts[0], 1});
      if (done) done = share_outputs("up_proj", {&parts[1], 1});
    }
    m_session->call(m_session->table().join);
  }
  if (!done) return done;
  m_taps.record(Operation::ffn_gate, index, gate, stride, m_tables.taps());
  m_taps.record(Operation::ffn_up, index, up, stride, m_tables.taps());
  m_session->run(m_session->table().swiglu, DeviceSwiglu{.gate = gate,
                                                         .up = up,
                                                         .y = m_activated.as<float>(),
                                                         .rows = rows,
                                                         .width = width,
                                                         .gate_stride = stride,
                                                         .up_stride = stride,
                                                         .silu_dtype = m_rounding.silu,
                                                         .output_dtype = m_rounding.swiglu});
  record(Operation::ffn_swiglu, index, m_activated, width);
  return share_terms("down_proj",
                     projection(layer.down, m_activated.as<float>(), m_delta.as<float>(), width));
}

void CudaForwardPass::normalise(const float* x, const float* weight, float* y, std::int64_t rows,
                                std::int64_t width) {
  ReductionPlan plan;
  plan.lanes = m_config.norm_lanes;
  plan.split_k = m_config.norm_split;
  m_session->run(m_session->table().rmsnorm,
                 DeviceRmsNorm{.x = x,
                               .weight = weight,
                               .y = y,
                               .rows = rows,
                               .width = width,
                               .epsilon = static_cast<float>(m_model.rms_epsilon),
                               .plan = device_plan(plan, nullptr),
                               .normalised_dtype = m_rounding.norm_inner,
                               .output_dtype = m_rounding.norm});
}

CudaProjection CudaForwardPass::projection(const DeviceMatrix& weight, const float* x, float* y,
                                           std::int64_t parts, int stream) const {
  return {.weight = &weight,
          .x = x,
          .y = y,
          .m = m_tables.rows(),
          .parts = parts,
          .output_dtype = m_rounding.matmul,
          .stream = stream};
}

Result<void> CudaForwardPass::share_outputs(std::string_view operation,
                                            std::span<const CudaProjection> group) {
  return m_matmuls.share_outputs(m_phase, operation, group, m_plans, m_generation);
}

Result<void> CudaForwardPass::share_terms(std::string_view operation,
                                          const CudaProjection& projection) {
  return m_matmuls.share_terms(m_phase, operation, projection, m_plans, m_generation);
}

void CudaForwardPass::add_to_residual() {
  m_session->run(m_session->table().add_residual,
                 DeviceAddResidual{m_x.as<float>(), m_delta.as<float>(),
                                   m_tables.rows() * m_model.hidden, m_rounding.residual});
}

void CudaForwardPass::record(Operation operation, std::int64_t layer, const DeviceList& values,
                             std::int64_t width) {
  m_taps.record(operation, layer, values.as<float>(), width, m_tables.taps());
}

}  // namespace driftscope
