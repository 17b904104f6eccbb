// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/host/projector.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "engine/config/knob.h"
#include "kernels/allreduce/all_reduce.h"
#include "kernels/matmul/matmul.h"

namespace driftscope {
namespace {

constexpr std::size_t kMostFused = 3;  // q, k and v

AllReduceOrder order_of(AllReduce all_reduce) {
  switch (all_reduce) {
    case AllReduce::ring:
      return AllReduceOrder::ring;
    case AllReduce::tree:
      return AllReduceOrder::tree;
    case AllReduce::one_shot:
    case AllReduce::nccl:  // check_config() refuses it here
      return AllReduceOrder::one_shot;
  }
  return AllReduceOrder::one_shot;
}

SharedShape shape_of(const Projection& projection) {
  return {.m = projection.plan_rows > 0 ? projection.plan_rows : projection.m,
          .n = projection.weight.rows,
          .k = projection.weight.columns,
          .parts = projection.parts};
}

// Empty where `ranks` can share the model, else what they cannot share.
std::string obstacle(std::int64_t ranks, const ModelDescription& model) {
  if (model.heads % ranks != 0) return fmt::format("{} attention heads", model.heads);
  if (model.kv_heads % ranks != 0 && ranks % model.kv_heads != 0) {
    return fmt::format("{} key and value heads", model.kv_heads);
  }
  if (model.intermediate % ranks != 0) {
    return fmt::format("{} feed-forward channels", model.intermediate);
  }
  for (const std::int64_t width : {model.moe.intermediate, model.moe.shared_intermediate}) {
    if (width % ranks != 0) return fmt::format("{} channels of an expert", width);
  }
  return {};
}

}  // namespace

Result<void> check_ranks(const RunConfig& config, const ModelDescription& model) {
  // A rank quantises the inputs that it has, so its scale depends on how many ranks share a row.
  if (config.tensor_parallel > 1 && config.tensor_parallel_invariant &&
      config.quantisation == Quantisation::int8_w8a8) {
    return fail(ErrorKind::engine,
                "knob tensor_parallel_invariant: int8_w8a8 scales the inputs of each rank on its "
                "own; give --set quantisation=int8_w8a16 or tensor_parallel_invariant=false");
  }
  const std::string what = obstacle(config.tensor_parallel, model);
  if (what.empty()) return {};
  std::string allowed;
  for (const std::int64_t ranks : {1, 2, 4, 8}) {
    if (!obstacle(ranks, model).empty()) continue;
    allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", ranks);
  }
  return fail(ErrorKind::engine,
              fmt::format("knob tensor_parallel: {} ranks cannot share {} of this model equally; "
                          "it allows {}",
                          config.tensor_parallel, what, allowed));
}

std::string ranks_note(const RunConfig& config, const ModelDescription& model) {
  const std::int64_t ranks = config.tensor_parallel;
  std::string text = fmt::format(
      "tensor_parallel: ranks={}; q, k, v, gate, up, lm_head by outputs; o, down by terms", ranks);
  if (ranks > model.kv_heads) {
    text += fmt::format("; each key and value head on {} ranks", ranks / model.kv_heads);
  }
  return text;
}

Projector::Projector(const RunConfig& config, Isa isa, Parallel& parallel)
    : m_config(config),
      m_isa(isa),
      m_parallel(parallel),
      m_all_reduce_text(fmt::format("all_reduce {} ranks={} dtype={}",
                                    get_knob(config, *find_knob("all_reduce")),
                                    config.tensor_parallel, dtype_name(config.reduce_dtype))) {}

template <class Run>
void Projector::for_each_rank(std::int64_t ranks, const Run& run) {
  if (ranks > 1 && ranks >= m_parallel.workers()) {
    m_parallel.run(static_cast<std::size_t>(ranks), [&](std::size_t rank, int) {
      SerialParallel alone;
      run(static_cast<std::int64_t>(rank), static_cast<Parallel&>(alone));
    });
    return;
  }
  for (std::int64_t rank = 0; rank < ranks; ++rank) run(rank, m_parallel);
}

void Projector::multiply(const MatmulArguments& arguments, Parallel& parallel) const {
  if (m_config.matmul_kernel == MatmulKernel::bf16_dot) {
    matmul_bf16_dot(arguments, parallel);
  } else {
    matmul(arguments, m_isa, parallel);
  }
}

void Projector::share_outputs(Phase phase, std::string_view operation,
                              std::span<const Projection> group, PlanLog& plans) {
  assert(!group.empty() && group.size() <= kMostFused);
  std::array<SharedShape, kMostFused> shapes;
  std::int64_t outputs = 0;  // of a rank
  for (std::size_t i = 0; i < group.size(); ++i) {
    shapes[i] = shape_of(group[i]);
    outputs += driftscope::share_outputs(m_config, shapes[i]).n;
  }
  const ReductionPlan plan = plan_of_outputs(m_config, {shapes.data(), group.size()});
  plans.record(phase, operation, shapes[0].m, outputs, shapes[0].k, plan, m_config.tensor_parallel);
  for (const Projection& part : group) {
    const RankShape share = driftscope::share_outputs(m_config, shape_of(part));
    for_each_rank(share.shards, [&](std::int64_t rank, Parallel& parallel) {
      const std::int64_t first = std::min(rank * share.n, part.weight.rows);
      const std::int64_t count = std::min(share.n, part.weight.rows - first);
      multiply({.x = part.x,
                .m = part.m,
                .weight = row_slice(part.weight, first, count),
                .bias = part.bias == nullptr ? nullptr : part.bias + first,
                .y = part.y + first,
                .y_stride = part.weight.rows,
                .plan = plan,
                .output_dtype = part.output_dtype},
               parallel);
    });
  }
}

void Projector::share_terms(Phase phase, std::string_view operation, const Projection& projection,
                            PlanLog& plans) {
  const SharedShape shape = shape_of(projection);
  const RankShape share = driftscope::share_terms(m_config, shape);
  const ReductionPlan plan = plan_of_terms(m_config, shape);
  plans.record(phase, operation, shape.m, share.n, share.k, plan, share.shards);
  MatmulArguments arguments{.x = projection.x,
                            .m = projection.m,
                            .weight = projection.weight,
                            .bias = projection.bias,
                            .y = projection.y,
                            .x_stride = projection.weight.columns,
                            .plan = plan,
                            .output_dtype = projection.output_dtype};
  if (share.shards == 1) return multiply(arguments, m_parallel);
  const auto message = static_cast<std::size_t>(projection.m * share.n);
  const auto ranks = static_cast<std::size_t>(share.shards);
  if (m_partial.size() < ranks * message) m_partial.resize(ranks * message);
  m_messages.clear();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    m_messages.push_back(m_partial.data() + rank * message);
  }
  arguments.bias = nullptr;
  arguments.output_dtype = Dtype::f32;
  for_each_rank(share.shards, [&](std::int64_t rank, Parallel& parallel) {
    MatmulArguments own = arguments;
    own.x += rank * share.k;
    own.weight = column_slice(projection.weight, rank * share.k, share.k);
    own.y = m_messages[static_cast<std::size_t>(rank)];
    multiply(own, parallel);
  });
  plans.record_message(phase, m_all_reduce_text, projection.m * share.n);
  all_reduce(
      order_of(m_config.all_reduce),
      {.ranks = m_messages, .elements = projection.m * share.n, .dtype = m_config.reduce_dtype},
      m_parallel);
  finish_sums(projection);
}

// Every rank does the same with the same sums; rank 0's are taken.
void Projector::finish_sums(const Projection& projection) {
  const std::int64_t n = projection.weight.rows;
  m_parallel.run(static_cast<std::size_t>(projection.m), [&](std::size_t row, int) {
    const std::int64_t begin = static_cast<std::int64_t>(row) * n;
    const float* sums = m_messages[0] + begin;
    float* y = projection.y + begin;
    for (std::int64_t j = 0; j < n; ++j) {
      y[j] = canonical_nan(projection.bias == nullptr ? sums[j] : sums[j] + projection.bias[j]);
    }
    round_span(projection.output_dtype, y, static_cast<std::size_t>(n));
  });
}

}  // namespace driftscope
