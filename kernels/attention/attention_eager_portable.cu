// SPDX-License-Identifier: Apache-2.0
// Eager attention: a block computes all scores of one query and head into the workspace, its first
// warp the softmax, and each thread some elements of P·V, keys in rising order.
#include "kernels/attention/attention_eager.cuh"
#include "kernels/attention/attention_query.cuh"
#include "kernels/softmax/softmax_row.cuh"

namespace driftscope::cuda {

namespace {

constexpr int kThreads = 128;

__global__ void eager_attention(DeviceAttention a) {
  const QueryOfBlock query = query_of_block(a);
  const std::int64_t count = query.visible.end - query.visible.begin;
  const Global<float> scores =
      Global<float>(a.scores) + static_cast<std::int64_t>(blockIdx.x) * a.score_stride;
  const Group group = group_of(a.score_plan.lanes);
  const std::int64_t groups = static_cast<std::int64_t>(blockDim.x) / group.width;
  for (std::int64_t i = group_number(group); i < count; i += groups) {
    const float dot = score_of(a, query, query.visible.begin + i, group);
    const float stored = exact::rounded(a.score_dtype, dot);
    if (group.lane == 0) scores[i] = exact::rounded(a.score_dtype, __fmul_rn(stored, a.scale));
  }
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < kWarpWidth) {
    softmax_row({a.sum_plan, a.softmax_dtype, a.probability_dtype}, scores, scores, count, thread);
  }
  __syncthreads();
  for (std::int64_t d = thread; d < a.head_dim; d += kThreads) {
    float sum = 0.0F;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t key = query.visible.begin + i;
      sum = __fmaf_rn(scores[i], query.value(key).at(d), sum);
    }
    query.y[d] = exact::with_canonical_nan(exact::rounded(a.output_dtype, sum));
  }
}

}  // namespace

cudaError_t launch_eager_attention(const DeviceAttention& a, cudaStream_t stream) {
  if (a.scores == nullptr || !valid(a.sum_plan)) return cudaErrorInvalidValue;
  const auto blocks = static_cast<unsigned>(a.batch.rows * a.heads);
  return launch(eager_attention, "eager_attention", {dim3(blocks), dim3(kThreads), 0}, stream, a);
}

}  // namespace driftscope::cuda
