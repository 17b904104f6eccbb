// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/host/expert_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <numeric>

#include "engine/backend/taps.h"
#include "kernels/activation/activation.h"
#include "kernels/routing/routing.h"

namespace driftscope {
namespace {

// The sum of the router's softmax: one warp a row, whatever the policy of matmuls is.
constexpr ReductionPlan kSoftmaxPlan{};

template <class T>
void grow(std::vector<T>& buffer, std::int64_t rows, std::int64_t width) {
  const auto elements = static_cast<std::size_t>(rows * width);
  if (buffer.size() < elements) buffer.resize(elements);
}

// In the list of plans.
struct Names {
  std::string_view gate, up, gate_up, down;
};
constexpr Names kExpert{"expert_gate_proj", "expert_up_proj", "expert_gate_up_proj",
                        "expert_down_proj"};
constexpr Names kShared{"shared_gate_proj", "shared_up_proj", "shared_gate_up_proj",
                        "shared_down_proj"};

// `parts`: of the axis that ranks share (SharedShape); 1: not shared.
Projection projection_of(const Linear& linear, const float* x, std::int64_t rows, float* y,
                         std::int64_t parts) {
  return {.weight = linear.weight,
          .bias = linear.bias_or_null(),
          .x = x,
          .m = rows,
          .y = y,
          .parts = parts};
}

std::string describe(const ExpertDescription& moe, Dtype router_dtype) {
  const std::string softmax =
      fmt::format("softmax {} dtype={}", to_string(kSoftmaxPlan), dtype_name(router_dtype));
  const std::string top =
      fmt::format("top {} of {}, ties to the lower id", moe.chosen, moe.experts);
  const std::string end = fmt::format("; totals in rising expert id{}",
                                      moe.shared_intermediate > 0 ? ", shared last" : "");
  if (moe.softmax_of_chosen) return fmt::format("router: {}, then {}{}", top, softmax, end);
  return fmt::format("router: {}, {}{}{}", softmax, top, moe.renormalise ? ", renormalised" : "",
                     end);
}

}  // namespace

ExpertLayer::ExpertLayer(const Setup& setup)
    : m_setup(setup),
      m_hidden(setup.model.hidden),
      m_chosen(static_cast<std::size_t>(setup.model.moe.chosen)),
      m_layers(route_spec(setup.model).decisions()) {
  if (m_layers > 0) m_note = describe(setup.model.moe, setup.config.router_dtype);
}

void ExpertLayer::begin(Phase phase, std::span<const std::int64_t> output_rows) {
  m_phase = phase;
  if (m_layers == 0) return;
  m_kept_layers = 0;
  m_kept_rows.assign(output_rows.begin(), output_rows.end());
  m_kept_ids.resize(m_kept_rows.size() * m_layers * m_chosen);
  m_kept_weights.resize(m_kept_ids.size());
  m_kept_margins.resize(m_kept_rows.size() * m_layers);
}

RouteRow ExpertLayer::routes(std::int64_t index) const {
  if (m_layers == 0) return {};
  const auto row = static_cast<std::size_t>(index);
  assert(row < m_kept_rows.size());
  const std::size_t width = m_layers * m_chosen;
  return {.experts = std::span(m_kept_ids).subspan(row * width, width),
          .weights = std::span(m_kept_weights).subspan(row * width, width),
          .margins = std::span(m_kept_margins).subspan(row * m_layers, m_layers)};
}

void ExpertLayer::run(const HostExperts& weights, std::int64_t layer, const float* x,
                      std::int64_t rows, float* y) {
  choose(weights.router, layer, x, rows);
  keep_routes();
  group_rows(rows);
  const auto elements = static_cast<std::size_t>(rows * m_hidden);
  std::fill_n(y, elements, 0.0F);
  for (std::size_t id = 0; id < weights.experts.size(); ++id) {
    if (m_first[id] < m_first[id + 1]) run_expert(weights.experts[id], id, x, rows, y);
  }
  round_span(m_setup.rounding.expert_total, y, elements);
  m_setup.taps.record(Operation::moe_out, layer, y, m_hidden);
  if (weights.shared_weight.weight.data != nullptr) add_shared(weights, layer, x, rows, y);
}

void ExpertLayer::choose(const Linear& router, std::int64_t layer, const float* x,
                         std::int64_t rows) {
  const ExpertDescription& moe = m_setup.model.moe;
  grow(m_logits, rows, moe.experts);
  grow(m_ids, rows, moe.chosen);
  grow(m_weights, rows, moe.chosen);
  grow(m_margins, rows, 1);
  project_whole("router", router, x, rows, m_logits.data(), m_setup.config.router_dtype);
  m_setup.taps.record(Operation::moe_logits, layer, m_logits.data(), moe.experts);
  route({.logits = m_logits.data(),
         .rows = rows,
         .experts = moe.experts,
         .chosen = moe.chosen,
         .renormalise = moe.renormalise,
         .softmax_of_chosen = moe.softmax_of_chosen,
         .plan = kSoftmaxPlan,
         .compute_dtype = m_setup.config.router_dtype,
         .weight_dtype = m_setup.rounding.expert_weight,
         .ids = m_ids.data(),
         .weights = m_weights.data(),
         .margins = m_margins.data()},
        m_setup.isa);
}

void ExpertLayer::keep_routes() {
  const auto chosen = static_cast<std::ptrdiff_t>(m_chosen);
  for (std::size_t i = 0; i < m_kept_rows.size(); ++i) {
    const std::size_t place = i * m_layers + m_kept_layers;
    const auto target = static_cast<std::ptrdiff_t>(place) * chosen;
    const std::ptrdiff_t source = m_kept_rows[i] * chosen;
    std::copy_n(m_ids.begin() + source, chosen, m_kept_ids.begin() + target);
    std::copy_n(m_weights.begin() + source, chosen, m_kept_weights.begin() + target);
    m_kept_margins[place] = m_margins[static_cast<std::size_t>(m_kept_rows[i])];
  }
  ++m_kept_layers;
}

void ExpertLayer::group_rows(std::int64_t rows) {
  const std::size_t choices = static_cast<std::size_t>(rows) * m_chosen;
  m_first.assign(static_cast<std::size_t>(m_setup.model.moe.experts) + 1, 0);
  for (std::size_t i = 0; i < choices; ++i) ++m_first[static_cast<std::size_t>(m_ids[i]) + 1];
  std::partial_sum(m_first.begin(), m_first.end(), m_first.begin());
  grow(m_group_rows, rows, m_setup.model.moe.chosen);
  grow(m_group_weights, rows, m_setup.model.moe.chosen);
  std::vector<std::size_t> next(m_first.begin(), m_first.end() - 1);
  for (std::size_t i = 0; i < choices; ++i) {
    const std::size_t place = next[static_cast<std::size_t>(m_ids[i])]++;
    m_group_rows[place] = static_cast<std::int64_t>(i / m_chosen);
    m_group_weights[place] = m_weights[i];
  }
}

void ExpertLayer::run_expert(const HostExpert& expert, std::size_t id, const float* x,
                             std::int64_t rows, float* y) {
  const std::size_t first = m_first[id];
  const auto count = static_cast<std::int64_t>(m_first[id + 1] - first);
  const std::int64_t* group = m_group_rows.data() + first;
  const float* input = x;
  if (count < rows) {
    grow(m_gathered, count, m_hidden);
    for (std::int64_t i = 0; i < count; ++i) {
      std::copy_n(x + group[i] * m_hidden, m_hidden, m_gathered.data() + i * m_hidden);
    }
    input = m_gathered.data();
  }
  grow(m_outputs, count, m_hidden);
  feed(expert, false, input, count, m_outputs.data(), m_setup.rounding.expert_output);
  add_expert_outputs({.outputs = m_outputs.data(),
                      .rows = group,
                      .weights = m_group_weights.data() + first,
                      .count = count,
                      .width = m_hidden,
                      .totals = y,
                      .product_dtype = m_setup.rounding.expert_product,
                      .sum_dtype = m_setup.rounding.expert_sum},
                     m_setup.parallel);
}

void ExpertLayer::project_whole(std::string_view operation, const Linear& linear, const float* x,
                                std::int64_t rows, float* y, Dtype output_dtype) {
  Projection projection = projection_of(linear, x, rows, y, 1);
  projection.output_dtype = output_dtype;
  m_setup.projector.share_outputs(m_phase, operation, {&projection, 1}, m_setup.plans);
}

void ExpertLayer::feed(const HostExpert& expert, bool shared, const float* x, std::int64_t rows,
                       float* y, Dtype output_dtype) {
  const RoundingScheme& rounding = m_setup.rounding;
  const Names& names = shared ? kShared : kExpert;
  const std::int64_t width = expert.gate.weight.rows;
  const bool fused = m_setup.config.fused_gate_up;
  const bool stacked = fused && m_setup.config.tensor_parallel == 1;
  const std::int64_t stride = stacked ? 2 * width : width;
  grow(m_gate_up, rows, 2 * width);
  grow(m_activated, rows, width);
  float* gate = m_gate_up.data();
  float* up = stacked ? gate + width : gate + rows * width;
  std::array parts{projection_of(expert.gate, x, rows, gate, width),
                   projection_of(expert.up, x, rows, up, width)};
  for (Projection& part : parts) part.output_dtype = rounding.matmul;
  Projector& projector = m_setup.projector;
  if (stacked) {
    Projection both = projection_of(expert.gate_up, x, rows, gate, 1);
    both.output_dtype = rounding.matmul;
    projector.share_outputs(m_phase, names.gate_up, {&both, 1}, m_setup.plans);
  } else if (fused) {
    projector.share_outputs(m_phase, names.gate_up, parts, m_setup.plans);
  } else {
    projector.share_outputs(m_phase, names.gate, {&parts[0], 1}, m_setup.plans);
    projector.share_outputs(m_phase, names.up, {&parts[1], 1}, m_setup.plans);
  }
  const bool clamps = m_setup.model.moe.swiglu_limit > 0.0;
  swiglu({.gate = gate,
          .up = up,
          .y = m_activated.data(),
          .rows = rows,
          .width = width,
          .gate_stride = stride,
          .up_stride = stride,
          .silu_dtype = rounding.silu,
          .output_dtype = rounding.swiglu,
          .kind = clamps ? ActivationKind::clamped_silu : ActivationKind::silu,
          .limit = static_cast<float>(m_setup.model.moe.swiglu_limit)},
         m_setup.isa, m_setup.parallel);
  Projection down = projection_of(expert.down, m_activated.data(), rows, y, width);
  down.output_dtype = output_dtype;
  projector.share_terms(m_phase, names.down, down, m_setup.plans);
}

void ExpertLayer::add_shared(const HostExperts& weights, std::int64_t layer, const float* x,
                             std::int64_t rows, float* y) {
  const RoundingScheme& rounding = m_setup.rounding;
  grow(m_outputs, rows, m_hidden);
  grow(m_gates, rows, 1);
  while (static_cast<std::int64_t>(m_all_rows.size()) < rows) {
    m_all_rows.push_back(static_cast<std::int64_t>(m_all_rows.size()));
  }
  feed(weights.shared, true, x, rows, m_outputs.data(), rounding.matmul);
  m_setup.taps.record(Operation::moe_shared, layer, m_outputs.data(), m_hidden);
  project_whole("shared_expert_gate", weights.shared_weight, x, rows, m_gates.data(),
                rounding.matmul);
  sigmoid_gates(m_gates.data(), rows, rounding.expert_weight);
  add_expert_outputs({.outputs = m_outputs.data(),
                      .rows = m_all_rows.data(),
                      .weights = m_gates.data(),
                      .count = rows,
                      .width = m_hidden,
                      .totals = y,
                      .product_dtype = rounding.expert_product,
                      .sum_dtype = rounding.expert_total},
                     m_setup.parallel);
}

}  // namespace driftscope
