// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/cuda_matmuls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

namespace driftscope {

namespace {

constexpr std::size_t kMostFused = 3;  // q, k and v

AllReduceOrder order_of_ranks(AllReduce all_reduce) {
  switch (all_reduce) {
    case AllReduce::ring:
      return AllReduceOrder::ring;
    case AllReduce::tree:
      return AllReduceOrder::tree;
    case AllReduce::one_shot:
    case AllReduce::nccl:  // one part is left, so nothing is added
      return AllReduceOrder::one_shot;
  }
  return AllReduceOrder::one_shot;
}

SharedShape shape_of(const CudaProjection& projection) {
  return {.m = projection.plan_rows > 0 ? projection.plan_rows : projection.m,
          .n = projection.weight->rows,
          .k = projection.weight->columns,
          .parts = projection.parts};
}

// Outputs [first, first + count), as far as there are any.
DeviceMatmul outputs_of(DeviceMatmul request, std::int64_t first, std::int64_t count) {
  first = std::min(first, request.n);
  request.n = std::min(count, request.n - first);
  const auto row_bytes =
      request.weight_stride * static_cast<std::int64_t>(dtype_size(request.weight_dtype));
  if (request.quantised.present()) {
    request.quantised = request.quantised.from_row(first);
  } else {
    request.weight = static_cast<const char*>(request.weight) + first * row_bytes;
  }
  if (request.bias != nullptr) request.bias += first;
  request.y += first;
  return request;
}

}  // namespace

DeviceMatmul CudaMatmuls::terms_of(DeviceMatmul request, std::int64_t first, std::int64_t count) {
  request.k = count;
  request.x += first;
  if (request.quantised.present()) {
    request.quantised.first_term += first;
  } else {
    request.weight = static_cast<const char*>(request.weight) +
                     first * static_cast<std::int64_t>(dtype_size(request.weight_dtype));
  }
  return request;
}

Result<const int*> CudaMatmuls::order_of(const ReductionPlan& plan) {
  if (plan.split_combine != SplitCombine::arrival || plan.split_k == 1) return nullptr;
  DeviceMemory& known = m_orders[plan.split_k];
  if (known.data() == nullptr) {
    const std::vector<int> order = arrival_order(plan.arrival_seed, plan.split_k);
    auto memory =
        m_session->copy_of("an order of arrival", order.data(), order.size() * sizeof(int));
    if (!memory) return tl::unexpected(memory.error());
    known = *std::move(memory);
  }
  return known.as<int>();
}

DeviceMatmul CudaMatmuls::request_of(const CudaProjection& projection) {
  const DeviceMatrix& weight = *projection.weight;
  return {.x = projection.x,
          .weight = weight.data,
          .bias = weight.bias,
          .y = projection.y,
          .m = projection.m,
          .n = weight.rows,
          .k = weight.columns,
          .x_stride = weight.columns,
          .weight_stride = weight.columns,
          .y_stride = weight.rows,
          .weight_dtype = weight.dtype,
          .output_dtype = projection.output_dtype,
          .quantised = weight.quantised};
}

Result<void> CudaMatmuls::share_outputs(Phase phase, std::string_view operation,
                                        std::span<const CudaProjection> group, PlanLog& plans,
                                        int& generation) {
  assert(!group.empty() && group.size() <= kMostFused);
  if (vendor()) {
    assert(group.size() == 1);  // CudaResources::open() refuses ranks
    return run_vendor(phase, operation, group[0], generation);
  }
  std::array<SharedShape, kMostFused> shapes;
  std::int64_t outputs = 0;  // of a rank
  for (std::size_t i = 0; i < group.size(); ++i) {
    shapes[i] = shape_of(group[i]);
    outputs += driftscope::share_outputs(m_config, shapes[i]).n;
  }
  const ReductionPlan plan = plan_of_outputs(m_config, {shapes.data(), group.size()});
  plans.record(phase, operation, shapes[0].m, outputs, shapes[0].k, plan, m_config.tensor_parallel);
  for (std::size_t i = 0; i < group.size(); ++i) {
    const RankShape share = driftscope::share_outputs(m_config, shapes[i]);
    for (std::int64_t rank = 0; rank < share.shards; ++rank) {
      const DeviceMatmul request = outputs_of(request_of(group[i]), rank * share.n, share.n);
      if (request.n == 0) continue;
      if (auto done = multiply(request, plan, group[i].stream, generation); !done) return done;
    }
  }
  return {};
}

Result<void> CudaMatmuls::share_terms(Phase phase, std::string_view operation,
                                      const CudaProjection& projection, PlanLog& plans,
                                      int& generation) {
  if (vendor()) return run_vendor(phase, operation, projection, generation);
  const SharedShape shape = shape_of(projection);
  const RankShape share = driftscope::share_terms(m_config, shape);
  const ReductionPlan plan = plan_of_terms(m_config, shape);
  plans.record(phase, operation, shape.m, share.n, share.k, plan, share.shards);
  if (share.shards == 1)
    return multiply(request_of(projection), plan, projection.stream, generation);
  plans.record_message(phase, m_all_reduce_text, projection.m * share.n);
  return m_group ? reduce_by_nccl(projection, {share, plan}, generation)
                 : reduce(projection, {share, plan}, generation);
}

Result<void> CudaMatmuls::reduce(const CudaProjection& projection, const RankShare& share,
                                 int& generation) {
  const std::int64_t message = projection.m * share.shape.n;
  DeviceList& partial = m_scratch[projection.stream].partial;
  const auto bytes = static_cast<std::size_t>(share.shape.shards * message) * sizeof(float);
  if (auto done = partial.reserve(*m_session, bytes, generation); !done) return done;
  const DeviceMatmul whole = request_of(projection);
  for (std::int64_t rank = 0; rank < share.shape.shards; ++rank) {
    DeviceMatmul own = terms_of(whole, rank * share.shape.k, share.shape.k);
    own.bias = nullptr;
    own.output_dtype = Dtype::f32;
    own.y = partial.as<float>() + rank * message;
    if (auto done = multiply(own, share.plan, projection.stream, generation); !done) return done;
  }
  finish_sum(projection, partial.as<float>(), share.shape.shards);
  return {};
}

void CudaMatmuls::finish_sum(const CudaProjection& projection, const float* parts,
                             std::int64_t ranks) {
  m_session->run(m_session->table().all_reduce,
                 DeviceAllReduce{.parts = parts,
                                 .bias = projection.weight->bias,
                                 .y = projection.y,
                                 .ranks = ranks,
                                 .rows = projection.m,
                                 .width = projection.weight->rows,
                                 .order = order_of_ranks(m_config.all_reduce),
                                 .dtype = m_config.reduce_dtype,
                                 .output_dtype = projection.output_dtype},
                 projection.stream);
}

Result<void> CudaMatmuls::multiply(DeviceMatmul request, const ReductionPlan& plan, int stream,
                                   int& generation) {
  const Result<const int*> order = order_of(plan);
  if (!order) return tl::unexpected(order.error());
  request.plan = device_plan(plan, *order);
  if (request.quantised.present() && request.quantised.format == QuantFormat::int8_dynamic) {
    if (auto done = give_code_space(request, m_scratch[stream], generation); !done) return done;
  }
  m_session->run(m_session->table().matmul, request, stream);
  return {};
}

Result<void> CudaMatmuls::give_code_space(DeviceMatmul& request, Scratch& scratch,
                                          int& generation) {
  const auto rows = static_cast<std::size_t>(request.m);
  const std::size_t bytes = rows * static_cast<std::size_t>(request.k);
  if (auto done = scratch.codes.reserve(*m_session, bytes, generation); !done) return done;
  if (auto done = scratch.scales.reserve(*m_session, rows * sizeof(float), generation); !done) {
    return done;
  }
  request.x_codes = scratch.codes.as<std::int8_t>();
  request.x_scales = scratch.scales.as<float>();
  return {};
}

Result<void> CudaMatmuls::run_vendor(Phase phase, std::string_view operation,
                                     const CudaProjection& job, int& generation) {
  const CudaTable& table = m_session->table();
  if (table.vendor_matmul == nullptr) {
    return fail(ErrorKind::engine,
                "knob matmul_policy: this CUDA module was built without cuBLAS; use --set "
                "matmul_policy=invariant");
  }
  const DeviceMatrix& weight = *job.weight;
  assert(!weight.quantised.present());  // CudaResources::open() refuses it
  Scratch& scratch = m_scratch[job.stream];
  const auto workspace_bytes = static_cast<std::size_t>(m_config.cublas_workspace) << 10U;
  const std::size_t narrowed_bytes =
      weight.dtype == Dtype::f32
          ? 0
          : static_cast<std::size_t>(job.m * weight.columns) * dtype_size(weight.dtype);
  if (auto done = scratch.workspace.reserve(*m_session, workspace_bytes, generation); !done) {
    return done;
  }
  if (auto done = scratch.narrowed.reserve(*m_session, narrowed_bytes, generation); !done) {
    return done;
  }
  const std::int64_t asked = m_config.cublas_algorithm;
  const CudaVendorMatmul request{
      .x = job.x,
      .narrowed = scratch.narrowed.as<void>(),
      .weight = weight.data,
      .bias = weight.bias,
      .y = job.y,
      .m = job.m,
      .n = weight.rows,
      .k = weight.columns,
      .weight_dtype = weight.dtype,
      .output_dtype = job.output_dtype,
      .tf32 = m_config.tf32,
      .reduced_precision_reduction = m_config.reduced_precision_reduction,
      .workspace = scratch.workspace.as<void>(),
      .workspace_bytes = workspace_bytes,
      .choice = asked < 0 ? 0 : static_cast<int>(asked)};
  CudaVendorAlgorithm algorithm{};
  m_session->call(table.vendor_matmul, job.stream, &request, &algorithm);
  if (auto status = m_session->status(); !status) return status;
  note_choice(phase, operation, job, algorithm);
  return {};
}

void CudaMatmuls::note_choice(Phase phase, std::string_view operation, const CudaProjection& job,
                              const CudaVendorAlgorithm& algorithm) {
  const DeviceMatrix& weight = *job.weight;
  std::string line = fmt::format(
      "{} {} m={} n={} k={}: cublasLt {} algorithm={} tile={} stages={} split_k={} "
      "reduction_scheme={} swizzle={} workspace={} KiB tf32={} reduced_precision_reduction={}",
      name_of(phase), operation, job.m, weight.rows, weight.columns, algorithm.library_version,
      algorithm.id, algorithm.tile, algorithm.stages, algorithm.split_k, algorithm.reduction_scheme,
      algorithm.swizzle, algorithm.workspace_bytes >> 10U, m_config.tf32,
      m_config.reduced_precision_reduction);
  if (m_known_choices.insert(line).second) m_choices.push_back(std::move(line));
}

}  // namespace driftscope
