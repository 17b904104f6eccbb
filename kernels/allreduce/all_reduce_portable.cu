// SPDX-License-Identifier: Apache-2.0
// A thread an element: it reads every rank's part and adds them in the order that the ranks'
// messages would.
#include "kernels/allreduce/all_reduce_portable.cuh"

#include "kernels/plan/device.cuh"

namespace driftscope::cuda {

namespace {

// One element of every rank's message.
struct Parts {
  const DeviceAllReduce& call;
  Global<const float> first;  // rank 0's
  std::int64_t elements;      // of a message
  std::int64_t element;

  [[nodiscard]] __device__ float round(float value) const {
    return call.ranks == 1 ? value : exact::rounded(call.dtype, value);
  }
  // What a rank sends first.
  [[nodiscard]] __device__ float of(std::int64_t rank) const {
    return round(first[rank * elements + element]);
  }
};

__device__ float in_rank_order(const Parts& parts) {
  float sum = parts.of(0);
  for (std::int64_t rank = 1; rank < parts.call.ranks; ++rank) {
    sum = __fadd_rn(sum, parts.of(rank));
  }
  return parts.round(sum);
}

// The chunk that the element lies in begins its way one rank after the one where it ends.
__device__ float around_ring(const Parts& parts) {
  const std::int64_t ranks = parts.call.ranks;
  const std::int64_t last = parts.element / ((parts.elements + ranks - 1) / ranks);
  float sum = parts.of((last + 1) % ranks);
  for (std::int64_t hop = 2; hop <= ranks; ++hop) {
    sum = parts.round(__fadd_rn(parts.of((last + hop) % ranks), sum));
  }
  return sum;
}

__device__ float up_tree(const Parts& parts) {
  float sums[kMostDeviceRanks];
  const std::int64_t ranks = parts.call.ranks;
  for (std::int64_t rank = 0; rank < ranks; ++rank) sums[rank] = parts.of(rank);
  for (std::int64_t distance = 1; distance < ranks; distance *= 2) {
    for (std::int64_t rank = 0; rank + distance < ranks; rank += 2 * distance) {
      sums[rank] = parts.round(__fadd_rn(sums[rank], sums[rank + distance]));
    }
  }
  return sums[0];
}

__device__ float sum_of(const Parts& parts) {
  switch (parts.call.order) {
    case AllReduceOrder::ring:
      return around_ring(parts);
    case AllReduceOrder::tree:
      return up_tree(parts);
    case AllReduceOrder::one_shot:
      break;
  }
  return in_rank_order(parts);
}

__global__ void add_ranks(DeviceAllReduce a) {
  const Global<const float> bias(a.bias);
  const Global<float> y(a.y);
  const std::int64_t elements = a.rows * a.width;
  for (std::int64_t i = thread_number(); i < elements; i += threads_in_grid()) {
    float value = exact::with_canonical_nan(sum_of({a, Global<const float>(a.parts), elements, i}));
    if (a.bias != nullptr) {
      value = exact::with_canonical_nan(__fadd_rn(value, bias[i % a.width]));
    }
    y[i] = exact::rounded(a.output_dtype, value);
  }
}

}  // namespace

cudaError_t launch_all_reduce(const DeviceAllReduce& a, cudaStream_t stream) {
  if (a.ranks < 1 || a.ranks > kMostDeviceRanks || a.rows < 0 || a.width < 0 ||
      a.dtype == Dtype::f64) {
    return cudaErrorInvalidValue;
  }
  if (a.rows * a.width == 0) return cudaSuccess;
  return launch(add_ranks, "add_ranks", element_shape(a.rows * a.width), stream, a);
}

}  // namespace driftscope::cuda
