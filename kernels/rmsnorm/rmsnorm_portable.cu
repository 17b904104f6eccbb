// SPDX-License-Identifier: Apache-2.0
// A warp a row: groups of min(lanes, 32) threads each compute the row's scale (all the same), then
// the whole warp writes the row.
#include "kernels/rmsnorm/rmsnorm_portable.cuh"

#include "kernels/plan/device_reduction.cuh"

namespace driftscope::cuda {

namespace {

constexpr int kWarps = 4;  // rows of a block

__device__ float row_scale(const DeviceRmsNorm& a, const Global<const float>& x,
                           const Group& group) {
  const ProductTerms squares{x, x, Dtype::f32};
  if (a.plan.accumulator == Accumulator::f64) {  // mean and scale in f64, too
    double sum = reduce<WideState>(a.plan, a.width, squares, group).sum;
    sum = __shfl_sync(group.mask, sum, 0, group.width);
    const double mean = __ddiv_rn(sum, static_cast<double>(a.width));
    const double root = __dsqrt_rn(__dadd_rn(mean, static_cast<double>(a.epsilon)));
    return static_cast<float>(__ddiv_rn(1.0, root));
  }
  const float sum = reduce_products(a.plan, a.width, squares, group);
  const float mean = __fdiv_rn(sum, static_cast<float>(a.width));
  return __fdiv_rn(1.0F, __fsqrt_rn(__fadd_rn(mean, a.epsilon)));
}

__global__ void rmsnorm_rows(DeviceRmsNorm a) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpWidth;
  const std::int64_t row = thread_number() / kWarpWidth;
  if (row >= a.rows) return;  // the whole warp
  const Global<const float> x = Global<const float>(a.x) + row * a.width;
  const Global<const float> weight(a.weight);
  const Global<float> y = Global<float>(a.y) + row * a.width;
  const float scale = row_scale(a, x, group_of(a.plan.lanes));
  __syncwarp();  // y may be x, which other groups of the warp still read
  for (std::int64_t i = lane; i < a.width; i += kWarpWidth) {
    const float normalised = exact::rounded(a.normalised_dtype, __fmul_rn(x[i], scale));
    const float value = __fmul_rn(normalised, weight[i]);
    y[i] = exact::with_canonical_nan(exact::rounded(a.output_dtype, value));
  }
}

__global__ void add_rounded(DeviceAddResidual a) {
  const Global<float> residual(a.residual);
  const Global<const float> delta(a.delta);
  for (std::int64_t i = thread_number(); i < a.count; i += threads_in_grid()) {
    const float sum = __fadd_rn(residual[i], delta[i]);
    residual[i] = exact::with_canonical_nan(exact::rounded(a.dtype, sum));
  }
}

}  // namespace

cudaError_t launch_rmsnorm(const DeviceRmsNorm& a, cudaStream_t stream) {
  if (a.rows < 0 || a.width < 1 || !valid(a.plan)) return cudaErrorInvalidValue;
  if (a.rows == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>((a.rows + kWarps - 1) / kWarps);
  return launch(rmsnorm_rows, "rmsnorm_rows", {dim3(blocks), dim3(kWarps * kWarpWidth), 0}, stream,
                a);
}

cudaError_t launch_add_residual(const DeviceAddResidual& a, cudaStream_t stream) {
  if (a.count < 0) return cudaErrorInvalidValue;
  if (a.count == 0) return cudaSuccess;
  return launch(add_rounded, "add_rounded", element_shape(a.count), stream, a);
}

}  // namespace driftscope::cuda
