// SPDX-License-Identifier: Apache-2.0
// A warp a row: softmax, then the best expert that comes after the one chosen before it, as often
// as wanted. The order of experts is strict, so exchanging the best of each lane is exact.
#include "kernels/routing/routing_portable.cuh"

#include "kernels/softmax/softmax_row.cuh"

namespace driftscope::cuda {

namespace {

constexpr int kWarps = 4;  // rows of a block
constexpr unsigned kAllLanes = 0xffffffffU;

struct Candidate {
  float value = 0.0F;
  std::int32_t id = -1;  // -1: none
};

// Larger value first, then the lower id; NaN last.
__device__ bool before(const Candidate& a, const Candidate& b) {
  if (a.value > b.value) return true;
  if (a.value < b.value) return false;
  const bool a_nan = !(a.value == a.value);
  const bool b_nan = !(b.value == b.value);
  return a_nan != b_nan ? b_nan : a.id < b.id;
}

__device__ Candidate better(const Candidate& a, const Candidate& b) {
  if (a.id < 0) return b;
  return b.id < 0 || before(a, b) ? a : b;
}

// The best of those that come after `last`; the same in every lane.
__device__ Candidate next_after(const Candidate& last, const Global<const float>& values,
                                std::int64_t count, int lane) {
  Candidate best;
  for (std::int64_t i = lane; i < count; i += kWarpWidth) {
    const Candidate candidate{values[i], static_cast<std::int32_t>(i)};
    if (last.id < 0 || before(last, candidate)) best = better(best, candidate);
  }
  for (int d = kWarpWidth / 2; d >= 1; d /= 2) {
    const float value = __shfl_xor_sync(kAllLanes, best.value, d);
    const std::int32_t id = __shfl_xor_sync(kAllLanes, best.id, d);
    best = better(best, {value, id});
  }
  return best;
}

// The largest logit of those that come after `last` in the order of probabilities.
__device__ float largest_rejected(const Candidate& last, const Global<const float>& probabilities,
                                  const Global<const float>& logits, std::int64_t count, int lane) {
  float largest = -__builtin_inff();
  for (std::int64_t i = lane; i < count; i += kWarpWidth) {
    const float logit = logits[i];
    const bool rejected = before(last, {probabilities[i], static_cast<std::int32_t>(i)});
    largest = rejected && largest < logit ? logit : largest;
  }
  for (int d = kWarpWidth / 2; d >= 1; d /= 2) {
    const float other = __shfl_xor_sync(kAllLanes, largest, d);
    largest = largest < other ? other : largest;
  }
  return largest;
}

// By one thread.
__device__ void weigh(const DeviceRouting& a, const Global<float>& weights) {
  if (a.renormalise) {
    float sum = weights[0];
    for (std::int64_t i = 1; i < a.chosen; ++i) {
      sum = exact::rounded(a.compute_dtype, __fadd_rn(sum, weights[i]));
    }
    for (std::int64_t i = 0; i < a.chosen; ++i) {
      weights[i] = exact::rounded(a.compute_dtype, __fdiv_rn(weights[i], sum));
    }
  }
  for (std::int64_t i = 0; i < a.chosen; ++i) {
    weights[i] = exact::with_canonical_nan(exact::rounded(a.weight_dtype, weights[i]));
  }
}

__global__ void route_rows(DeviceRouting a) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpWidth;
  const std::int64_t row = thread_number() / kWarpWidth;
  if (row >= a.rows) return;  // the whole warp
  const Global<const float> logits = Global<const float>(a.logits) + row * a.experts;
  const Global<float> probabilities = Global<float>(a.probabilities) + row * a.experts;
  const Global<std::int32_t> ids = Global<std::int32_t>(a.ids) + row * a.chosen;
  const Global<float> weights = Global<float>(a.weights) + row * a.chosen;
  softmax_row({a.plan, a.compute_dtype, a.compute_dtype}, logits, probabilities, a.experts, lane);
  __syncwarp();
  Candidate last;
  for (std::int64_t n = 0; n < a.chosen; ++n) {
    last = next_after(last, probabilities, a.experts, lane);
    if (lane == 0) {
      ids[n] = last.id;
      weights[n] = last.value;
    }
  }
  const float rejected = largest_rejected(last, probabilities, logits, a.experts, lane);
  if (lane != 0) return;
  weigh(a, weights);
  // + 0: the difference of two zeros is +0, whatever their signs.
  const float margin = __fadd_rn(__fsub_rn(logits[last.id], rejected), 0.0F);
  Global<float>(a.margins)[row] =
      a.chosen == a.experts ? exact::float_of(0x7fc00000U) : exact::with_canonical_nan(margin);
}

__global__ void add_expert_rows(DeviceExpertSum a) {
  const Global<const float> outputs(a.outputs);
  const Global<const float> weights(a.weights);
  const Global<const std::int64_t> rows(a.rows);
  const Global<float> totals(a.totals);
  for (std::int64_t i = thread_number(); i < a.count * a.width; i += threads_in_grid()) {
    const std::int64_t row = i / a.width;
    const std::int64_t to = (a.rows == nullptr ? row : rows[row]) * a.width + i % a.width;
    const float product = exact::rounded(a.product_dtype, __fmul_rn(weights[row], outputs[i]));
    const float total = exact::rounded(a.sum_dtype, __fadd_rn(totals[to], product));
    totals[to] = exact::with_canonical_nan(total);
  }
}

__global__ void sigmoid_elements(DeviceSigmoid a) {
  const Global<float> gates(a.gates);
  for (std::int64_t i = thread_number(); i < a.count; i += threads_in_grid()) {
    const float gate = __fdiv_rn(1.0F, __fadd_rn(1.0F, portable::exp_f32(-gates[i])));
    gates[i] = exact::with_canonical_nan(exact::rounded(a.dtype, gate));
  }
}

}  // namespace

cudaError_t launch_route(const DeviceRouting& a, cudaStream_t stream) {
  if (a.rows < 0 || a.chosen < 1 || a.chosen > a.experts || a.experts > 0x7fffffff ||
      a.compute_dtype == Dtype::f64 || !valid(a.plan)) {
    return cudaErrorInvalidValue;
  }
  if (a.rows == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>((a.rows + kWarps - 1) / kWarps);
  return launch(route_rows, "route_rows", {dim3(blocks), dim3(kWarps * kWarpWidth), 0}, stream, a);
}

cudaError_t launch_expert_sum(const DeviceExpertSum& a, cudaStream_t stream) {
  if (a.count < 0 || a.width < 0) return cudaErrorInvalidValue;
  if (a.count * a.width == 0) return cudaSuccess;
  return launch(add_expert_rows, "add_expert_rows", element_shape(a.count * a.width), stream, a);
}

cudaError_t launch_sigmoid(const DeviceSigmoid& a, cudaStream_t stream) {
  if (a.count < 0) return cudaErrorInvalidValue;
  if (a.count == 0) return cudaSuccess;
  return launch(sigmoid_elements, "sigmoid_elements", element_shape(a.count), stream, a);
}

}  // namespace driftscope::cuda
