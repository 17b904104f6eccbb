// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/cuda_expert_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <numeric>

#include "engine/backend/taps.h"

namespace driftscope {
namespace {

// As ExpertLayer's.
constexpr ReductionPlan kSoftmaxPlan{};

struct Names {
  std::string_view gate, up, gate_up, down;
};
constexpr Names kExpert{"expert_gate_proj", "expert_up_proj", "expert_gate_up_proj",
                        "expert_down_proj"};
constexpr Names kShared{"shared_gate_proj", "shared_up_proj", "shared_gate_up_proj",
                        "shared_down_proj"};

std::string describe(const ExpertDescription& moe, Dtype router_dtype) {
  return fmt::format(
      "router: softmax {} dtype={}, top {} of {}, ties to the lower id{}; totals in rising expert "
      "id{}",
      to_string(kSoftmaxPlan), dtype_name(router_dtype), moe.chosen, moe.experts,
      moe.renormalise ? ", renormalised" : "", moe.shared_intermediate > 0 ? ", shared last" : "");
}

}  // namespace

CudaExpertLayer::CudaExpertLayer(const Setup& setup)
    : m_setup(setup),
      m_hidden(setup.model.hidden),
      m_chosen(setup.model.moe.chosen),
      m_layers(route_spec(setup.model).decisions()) {
  if (m_layers > 0) m_note = describe(setup.model.moe, setup.config.router_dtype);
}

void CudaExpertLayer::begin(Phase phase, std::span<const std::int64_t> output_rows,
                            const std::int64_t* tap_rows) {
  m_phase = phase;
  m_tap_rows = tap_rows;
  if (m_layers == 0) return;
  m_kept_layers = 0;
  m_kept_rows.assign(output_rows.begin(), output_rows.end());
  m_kept_ids.resize(m_kept_rows.size() * m_layers * static_cast<std::size_t>(m_chosen));
  m_kept_weights.resize(m_kept_ids.size());
  m_kept_margins.resize(m_kept_rows.size() * m_layers);
}

RouteRow CudaExpertLayer::routes(std::int64_t index) const {
  if (m_layers == 0) return {};
  const auto row = static_cast<std::size_t>(index);
  assert(row < m_kept_rows.size());
  const std::size_t width = m_layers * static_cast<std::size_t>(m_chosen);
  return {.experts = std::span(m_kept_ids).subspan(row * width, width),
          .weights = std::span(m_kept_weights).subspan(row * width, width),
          .margins = std::span(m_kept_margins).subspan(row * m_layers, m_layers)};
}

Result<void> CudaExpertLayer::grow(DeviceList& list, std::int64_t rows, std::int64_t width) {
  return list.reserve(m_setup.session, static_cast<std::size_t>(rows * width) * sizeof(float),
                      m_setup.generation);
}

Result<void> CudaExpertLayer::run(const DeviceExperts& weights, std::int64_t layer, const float* x,
                                  std::int64_t rows, float* y) {
  if (auto done = choose(weights.router, layer, x, rows); !done) return done;
  keep_routes(rows);
  if (auto done = group_rows(rows); !done) return done;
  CudaSession& session = m_setup.session;
  const std::int64_t elements = rows * m_hidden;
  session.call(session.table().zero, static_cast<void*>(y),
               static_cast<std::size_t>(elements) * sizeof(float));
  for (std::size_t id = 0; id < weights.experts.size(); ++id) {
    if (m_first[id] == m_first[id + 1]) continue;
    if (auto done = run_expert(weights.experts[id], id, x, rows, y); !done) return done;
  }
  session.run(session.table().round, DeviceRound{y, elements, m_setup.rounding.expert_total});
  m_setup.taps.record(Operation::moe_out, layer, y, m_hidden, m_tap_rows);
  if (weights.shared_weight.data == nullptr) return {};
  return add_shared(weights, layer, x, rows, y);
}

Result<void> CudaExpertLayer::choose(const DeviceMatrix& router, std::int64_t layer, const float* x,
                                     std::int64_t rows) {
  const ExpertDescription& moe = m_setup.model.moe;
  CudaSession& session = m_setup.session;
  if (auto done = grow(m_logits, rows, moe.experts); !done) return done;
  if (auto done = grow(m_probabilities, rows, moe.experts); !done) return done;
  if (auto done = grow(m_device_routes, rows, 2 * m_chosen + 1); !done) return done;
  const Dtype dtype = m_setup.config.router_dtype;
  if (auto done = project_whole("router", router, x, rows, m_logits.as<float>(), dtype); !done) {
    return done;
  }
  m_setup.taps.record(Operation::moe_logits, layer, m_logits.as<float>(), moe.experts, m_tap_rows);
  session.run(session.table().route,
              DeviceRouting{.logits = m_logits.as<float>(),
                            .probabilities = m_probabilities.as<float>(),
                            .rows = rows,
                            .experts = moe.experts,
                            .chosen = m_chosen,
                            .renormalise = moe.renormalise,
                            .plan = device_plan(kSoftmaxPlan, nullptr),
                            .compute_dtype = dtype,
                            .weight_dtype = m_setup.rounding.expert_weight,
                            .ids = m_device_routes.as<std::int32_t>(),
                            .weights = m_device_routes.as<float>() + rows * m_chosen,
                            .margins = m_device_routes.as<float>() + 2 * rows * m_chosen});
  m_routes.resize(static_cast<std::size_t>(rows * (2 * m_chosen + 1)));
  session.call(session.table().download, static_cast<void*>(m_routes.data()),
               static_cast<const void*>(m_device_routes.as<void>()),
               m_routes.size() * sizeof(std::uint32_t));
  return session.status();
}

void CudaExpertLayer::keep_routes(std::int64_t rows) {
  const auto chosen = static_cast<std::size_t>(m_chosen);
  const std::size_t choices = static_cast<std::size_t>(rows) * chosen;
  for (std::size_t i = 0; i < m_kept_rows.size(); ++i) {
    const auto row = static_cast<std::size_t>(m_kept_rows[i]);
    const std::size_t place = i * m_layers + m_kept_layers;
    for (std::size_t n = 0; n < chosen; ++n) {
      const std::size_t from = row * chosen + n;
      m_kept_ids[place * chosen + n] = static_cast<std::int32_t>(m_routes[from]);
      m_kept_weights[place * chosen + n] = std::bit_cast<float>(m_routes[choices + from]);
    }
    m_kept_margins[place] = std::bit_cast<float>(m_routes[2 * choices + row]);
  }
  ++m_kept_layers;
}

Result<void> CudaExpertLayer::group_rows(std::int64_t rows) {
  const auto chosen = static_cast<std::size_t>(m_chosen);
  const std::size_t choices = static_cast<std::size_t>(rows) * chosen;
  m_first.assign(static_cast<std::size_t>(m_setup.model.moe.experts) + 1, 0);
  for (std::size_t i = 0; i < choices; ++i) ++m_first[m_routes[i] + 1];
  std::partial_sum(m_first.begin(), m_first.end(), m_first.begin());
  m_group_rows.resize(choices);
  m_group_weights.resize(choices);
  std::vector<std::size_t> next(m_first.begin(), m_first.end() - 1);
  for (std::size_t i = 0; i < choices; ++i) {
    const std::size_t place = next[m_routes[i]]++;
    m_group_rows[place] = static_cast<std::int64_t>(i / chosen);
    m_group_weights[place] = std::bit_cast<float>(m_routes[choices + i]);
  }
  int& generation = m_setup.generation;
  if (auto done = m_device_group_rows.assign(m_setup.session, m_group_rows, generation); !done) {
    return done;
  }
  return m_device_group_weights.assign(m_setup.session, m_group_weights, generation);
}

Result<void> CudaExpertLayer::run_expert(const DeviceExpert& expert, std::size_t id, const float* x,
                                         std::int64_t rows, float* y) {
  CudaSession& session = m_setup.session;
  const std::size_t first = m_first[id];
  const auto count = static_cast<std::int64_t>(m_first[id + 1] - first);
  const std::int64_t* group = m_device_group_rows.as<std::int64_t>() + first;
  const float* input = x;
  if (count < rows) {
    if (auto done = grow(m_gathered, count, m_hidden); !done) return done;
    session.run(session.table().gather, DeviceGather{.x = x,
                                                     .rows = group,
                                                     .y = m_gathered.as<float>(),
                                                     .count = count,
                                                     .width = m_hidden,
                                                     .x_stride = m_hidden,
                                                     .y_stride = m_hidden});
    input = m_gathered.as<float>();
  }
  if (auto done = grow(m_outputs, count, m_hidden); !done) return done;
  float* outputs = m_outputs.as<float>();
  if (auto done = feed(expert, false, input, count, outputs, m_setup.rounding.expert_output);
      !done) {
    return done;
  }
  session.run(session.table().expert_sum,
              DeviceExpertSum{.outputs = outputs,
                              .rows = group,
                              .weights = m_device_group_weights.as<float>() + first,
                              .count = count,
                              .width = m_hidden,
                              .totals = y,
                              .product_dtype = m_setup.rounding.expert_product,
                              .sum_dtype = m_setup.rounding.expert_sum});
  return {};
}

Result<void> CudaExpertLayer::project_whole(std::string_view operation, const DeviceMatrix& weight,
                                            const float* x, std::int64_t rows, float* y,
                                            Dtype output_dtype) {
  const CudaProjection projection{
      .weight = &weight, .x = x, .y = y, .m = rows, .output_dtype = output_dtype};
  return m_setup.matmuls.share_outputs(m_phase, operation, {&projection, 1}, m_setup.plans,
                                       m_setup.generation);
}

Result<void> CudaExpertLayer::feed(const DeviceExpert& expert, bool shared, const float* x,
                                   std::int64_t rows, float* y, Dtype output_dtype) {
  const RoundingScheme& rounding = m_setup.rounding;
  const Names& names = shared ? kShared : kExpert;
  const std::int64_t width = expert.gate.rows;
  const bool fused = m_setup.config.fused_gate_up;
  const bool stacked = fused && m_setup.config.tensor_parallel == 1;
  const std::int64_t stride = stacked ? 2 * width : width;
  if (auto done = grow(m_gate_up, rows, 2 * width); !done) return done;
  if (auto done = grow(m_activated, rows, width); !done) return done;
  float* gate = m_gate_up.as<float>();
  float* up = stacked ? gate + width : gate + rows * width;
  const auto part = [&](const DeviceMatrix& weight, float* to, std::int64_t parts) {
    return CudaProjection{.weight = &weight,
                          .x = x,
                          .y = to,
                          .m = rows,
                          .parts = parts,
                          .output_dtype = rounding.matmul};
  };
  const auto outputs = [&](std::string_view name, std::span<const CudaProjection> group) {
    return m_setup.matmuls.share_outputs(m_phase, name, group, m_setup.plans, m_setup.generation);
  };
  const std::array parts{part(expert.gate, gate, width), part(expert.up, up, width)};
  Result<void> done;
  if (stacked) {
    const CudaProjection both = part(expert.gate_up, gate, 1);
    done = outputs(names.gate_up, {&both, 1});
  } else if (fused) {
    done = outputs(names.gate_up, parts);
  } else {
    done = outputs(names.gate, {&parts[0], 1});
    if (done) done = outputs(names.up, {&parts[1], 1});
  }
  if (!done) return done;
  m_setup.session.run(m_setup.session.table().swiglu,
                      DeviceSwiglu{.gate = gate,
                                   .up = up,
                                   .y = m_activated.as<float>(),
                                   .rows = rows,
                                   .width = width,
                                   .gate_stride = stride,
                                   .up_stride = stride,
                                   .silu_dtype = rounding.silu,
                                   .output_dtype = rounding.swiglu});
  const CudaProjection down{.weight = &expert.down,
                            .x = m_activated.as<float>(),
                            .y = y,
                            .m = rows,
                            .parts = width,
                            .output_dtype = output_dtype};
  return m_setup.matmuls.share_terms(m_phase, names.down, down, m_setup.plans, m_setup.generation);
}

Result<void> CudaExpertLayer::add_shared(const DeviceExperts& weights, std::int64_t layer,
                                         const float* x, std::int64_t rows, float* y) {
  const RoundingScheme& rounding = m_setup.rounding;
  CudaSession& session = m_setup.session;
  if (auto done = grow(m_outputs, rows, m_hidden); !done) return done;
  if (auto done = grow(m_gates, rows, 1); !done) return done;
  float* outputs = m_outputs.as<float>();
  float* gates = m_gates.as<float>();
  if (auto done = feed(weights.shared, true, x, rows, outputs, rounding.matmul); !done) return done;
  m_setup.taps.record(Operation::moe_shared, layer, outputs, m_hidden, m_tap_rows);
  if (auto done = project_whole("shared_expert_gate", weights.shared_weight, x, rows, gates,
                                rounding.matmul);
      !done) {
    return done;
  }
  session.run(session.table().sigmoid, DeviceSigmoid{gates, rows, rounding.expert_weight});
  session.run(session.table().expert_sum, DeviceExpertSum{.outputs = outputs,
                                                          .rows = nullptr,
                                                          .weights = gates,
                                                          .count = rows,
                                                          .width = m_hidden,
                                                          .totals = y,
                                                          .product_dtype = rounding.expert_product,
                                                          .sum_dtype = rounding.expert_total});
  return {};
}

}  // namespace driftscope
