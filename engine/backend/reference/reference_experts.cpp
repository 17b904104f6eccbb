// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/reference/reference_experts.h"

#include "engine/backend/reference/reference_operations.h"

namespace driftscope::reference {
namespace {

using Values = std::vector<double>;

Values project(const TensorView& weight, const TensorView& bias, const double* x, std::int64_t rows,
               Parallel& parallel) {
  Values y(static_cast<std::size_t>(rows * weight.shape[0]));
  linear(weight, bias, x, rows, y.data(), parallel);
  return y;
}

Values feed(const ModelDescription& model, const ExpertTensors& expert, const double* x,
            std::int64_t rows, Parallel& parallel) {
  Values gate = project(expert.gate, expert.gate_bias, x, rows, parallel);
  const Values up = project(expert.up, expert.up_bias, x, rows, parallel);
  const auto count = static_cast<std::int64_t>(gate.size());
  if (model.moe.swiglu_limit > 0.0) {
    clamped_swiglu(model.moe.swiglu_limit, gate.data(), up.data(), count, gate.data());
  } else {
    gated(model.activation, gate.data(), up.data(), count, gate.data());
  }
  return project(expert.down, expert.down_bias, gate.data(), rows, parallel);
}

}  // namespace

void Experts::begin() {
  m_routes.clear();
  m_layers_seen = 0;
}

RouteRow Experts::routes(std::int64_t index) const {
  if (m_spec.layers.empty()) return {};
  return m_routes[static_cast<std::size_t>(index)].row();
}

void Experts::keep(std::int64_t row, std::int64_t rows, const std::int32_t* ids,
                   const double* weights, double margin) {
  if (row < rows - m_keep) return;
  StoredRoutes& routes = m_routes[m_first + static_cast<std::size_t>(row - (rows - m_keep))];
  for (std::int64_t i = 0; i < m_spec.chosen; ++i) {
    routes.experts.push_back(ids[i]);
    routes.weights.push_back(static_cast<float>(weights[i]));
  }
  routes.margins.push_back(static_cast<float>(margin));
}

Values Experts::run(const LayerTensors& layer, const Values& x, std::int64_t rows,
                    Parallel& parallel) {
  if (m_layers_seen++ % m_spec.decisions() == 0) {  // a sequence begins
    m_first = m_routes.size();
    m_routes.resize(m_first + static_cast<std::size_t>(m_keep));
  }
  const std::int64_t hidden = m_model.hidden;
  const auto experts = static_cast<std::size_t>(m_spec.experts);
  const Values logits = project(layer.router, layer.router_bias, x.data(), rows, parallel);
  // A softmax over the chosen logits is one over all of them, divided by the sum of the chosen.
  const bool renormalise = m_model.moe.renormalise || m_model.moe.softmax_of_chosen;
  Values total(x.size());
  std::vector<std::int32_t> ids(static_cast<std::size_t>(m_spec.chosen));
  Values weights(ids.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto own = std::span(logits).subspan(static_cast<std::size_t>(row) * experts, experts);
    const double margin = route(own, m_spec.chosen, renormalise, ids.data(), weights.data());
    keep(row, rows, ids.data(), weights.data(), margin);
    double* sum = total.data() + row * hidden;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const ExpertTensors& expert = layer.experts[static_cast<std::size_t>(ids[i])];
      const Values y = feed(m_model, expert, x.data() + row * hidden, 1, parallel);
      for (std::size_t j = 0; j < y.size(); ++j) sum[j] += weights[i] * y[j];
    }
  }
  if (!layer.shared_weight.present()) return total;
  const Values shared = feed(m_model, {layer.shared_gate, layer.shared_up, layer.shared_down},
                             x.data(), rows, parallel);
  const Values gates = project(layer.shared_weight, {}, x.data(), rows, parallel);
  for (std::size_t i = 0; i < total.size(); ++i) {
    total[i] += sigmoid(gates[i / static_cast<std::size_t>(hidden)]) * shared[i];
  }
  return total;
}

}  // namespace driftscope::reference
