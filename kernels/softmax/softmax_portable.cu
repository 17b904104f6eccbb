// SPDX-License-Identifier: Apache-2.0
// A warp a row.
#include "kernels/softmax/softmax_portable.cuh"

#include "kernels/softmax/softmax_row.cuh"

namespace driftscope::cuda {

namespace {

constexpr int kWarps = 4;  // rows of a block

__global__ void softmax_rows(DeviceSoftmax a) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpWidth;
  const std::int64_t row = thread_number() / kWarpWidth;
  if (row >= a.rows) return;  // the whole warp
  softmax_row({a.plan, a.compute_dtype, a.output_dtype}, Global<const float>(a.x) + row * a.count,
              Global<float>(a.y) + row * a.count, a.count, lane);
}

}  // namespace

cudaError_t launch_softmax(const DeviceSoftmax& a, cudaStream_t stream) {
  if (a.rows < 0 || a.count < 0 || !valid(a.plan)) return cudaErrorInvalidValue;
  if (a.rows == 0 || a.count == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>((a.rows + kWarps - 1) / kWarps);
  return launch(softmax_rows, "softmax_rows", {dim3(blocks), dim3(kWarps * kWarpWidth), 0}, stream,
                a);
}

}  // namespace driftscope::cuda
