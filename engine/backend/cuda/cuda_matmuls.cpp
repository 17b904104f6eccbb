// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/cuda_matmuls.h"

#include <fmt/format.h>

#include <cassert>

#include "kernels/plan/plan_policy.h"

namespace driftscope {

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

Result<void> CudaMatmuls::run(const Job& job, PlanLog& plans, int& generation) {
  if (vendor()) return run_vendor(job, generation);
  const DeviceMatrix& weight = *job.weight;
  const ReductionPlan plan = matmul_plan(m_config.matmul_policy, m_config.matmul_plan,
                                         job.rows_in_flight, weight.rows, weight.columns);
  plans.record(job.phase, job.operation, job.rows_in_flight, weight.rows, weight.columns, plan);
  const Result<const int*> order = order_of(plan);
  if (!order) return tl::unexpected(order.error());
  DeviceMatmul request{.x = job.x,
                       .weight = weight.data,
                       .bias = weight.bias,
                       .y = job.y,
                       .m = job.m,
                       .n = weight.rows,
                       .k = weight.columns,
                       .weight_dtype = weight.dtype,
                       .output_dtype = job.output_dtype,
                       .plan = device_plan(plan, *order),
                       .quantised = weight.quantised};
  if (weight.quantised.present() && weight.quantised.format == QuantFormat::int8_dynamic) {
    if (auto done = give_code_space(request, m_scratch[job.stream], generation); !done) return done;
  }
  m_session->run(m_session->table().matmul, request, job.stream);
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

Result<void> CudaMatmuls::run_vendor(const Job& job, int& generation) {
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
  note_choice(job, algorithm);
  return {};
}

void CudaMatmuls::note_choice(const Job& job, const CudaVendorAlgorithm& algorithm) {
  const DeviceMatrix& weight = *job.weight;
  std::string line = fmt::format(
      "{} {} m={} n={} k={}: cublasLt {} algorithm={} tile={} stages={} split_k={} "
      "reduction_scheme={} swizzle={} workspace={} KiB tf32={} reduced_precision_reduction={}",
      name_of(job.phase), job.operation, job.m, weight.rows, weight.columns,
      algorithm.library_version, algorithm.id, algorithm.tile, algorithm.stages, algorithm.split_k,
      algorithm.reduction_scheme, algorithm.swizzle, algorithm.workspace_bytes >> 10U,
      m_config.tf32, m_config.reduced_precision_reduction);
  if (m_known_choices.insert(line).second) m_choices.push_back(std::move(line));
}

}  // namespace driftscope
