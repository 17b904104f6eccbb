// SPDX-License-Identifier: Apache-2.0
// QuantFormat::int8_dynamic: a block quantises a row of x, then a warp computes an output as exact
// integer products, so that neither lanes nor the order of threads matter; chunks meet as step 4 of
// the plan says (matmul.h).
#include "kernels/matmul/matmul_quantised.cuh"
#include "kernels/matmul/matmul_rows.cuh"
#include "kernels/quant/codes_device.h"

namespace driftscope::cuda {

namespace {

constexpr int kWarps = kMatmulThreads / kWarpWidth;
constexpr std::uint32_t kInfinityBits = 0x7f800000U;

__device__ std::uint32_t larger_bits(std::uint32_t a, std::uint32_t b) { return a < b ? b : a; }

// The bits of the largest magnitude of a row, in every thread of the block. NaN is greater than
// every number.
__device__ std::uint32_t largest_of_row(const Global<const float>& x, std::int64_t count) {
  DRIFTSCOPE_SHARED(std::uint32_t, of_warp, kWarps);
  std::uint32_t largest = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += kMatmulThreads) {
    largest = larger_bits(largest, exact::bits_of(x[i]) & 0x7fffffffU);
  }
  for (int d = kWarpWidth / 2; d >= 1; d /= 2) {
    largest = larger_bits(largest, __shfl_xor_sync(0xffffffffU, largest, d));
  }
  const int thread = static_cast<int>(threadIdx.x);
  if (thread % kWarpWidth == 0) of_warp[thread / kWarpWidth] = largest;
  __syncthreads();
  for (int warp = 0; warp < kWarps; ++warp) {
    const std::uint32_t other = of_warp[warp];
    largest = larger_bits(largest, other);
  }
  return largest;
}

// quantise_activations(), a block a row.
__global__ void quantise_rows(DeviceMatmul a) {
  const std::int64_t row = blockIdx.x;
  const Global<const float> x = Global<const float>(a.x) + row * a.x_stride;
  const Global<std::int8_t> codes = Global<std::int8_t>(a.x_codes) + row * a.k;
  const std::uint32_t largest = largest_of_row(x, a.k);
  const bool finite = largest < kInfinityBits;
  const float scale = __fdiv_rn(exact::float_of(largest), 127.0F);
  const bool coded = finite && scale != 0.0F;
  for (std::int64_t i = threadIdx.x; i < a.k; i += kMatmulThreads) {
    codes[i] = static_cast<std::int8_t>(coded ? exact::int8_code(x[i], scale) : 0);
  }
  if (threadIdx.x == 0) {
    Global<float>(a.x_scales)[row] = finite ? scale : exact::float_of(0x7fc00000U);
  }
}

struct Dot {
  Global<const std::int8_t> x;
  Global<const std::int8_t> w;
  std::int64_t k;
  std::int64_t chunk_length;
  int lane;

  // Exact; the same in every thread of the warp. 0 of an empty chunk.
  [[nodiscard]] __device__ int of_chunk(std::int64_t chunk) const {
    const std::int64_t begin = chunk * chunk_length;
    const std::int64_t end = begin + chunk_length < k ? begin + chunk_length : k;
    int sum = 0;
    for (std::int64_t i = begin + lane; i < end; i += kWarpWidth) {
      sum += static_cast<int>(x[i]) * static_cast<int>(w[i]);
    }
    for (int d = kWarpWidth / 2; d >= 1; d /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, d);
    return sum;
  }
};

__device__ float combined(const DevicePlan& plan, const Dot& dot) {
  if (plan.accumulator == Accumulator::f64 || plan.accumulator == Accumulator::kahan) {
    double sum = 0.0;  // a sum of few integers is exact
    for (int i = 0; i < plan.split_k; ++i) sum = __dadd_rn(sum, dot.of_chunk(i));
    return static_cast<float>(sum);
  }
  return join_chunks<PlainState>(plan,
                                 [&](std::int64_t chunk) {
                                   PlainState state{static_cast<float>(dot.of_chunk(chunk))};
                                   state.round_to(accumulator_rounding(plan.accumulator));
                                   return state;
                                 })
      .sum;
}

// Grid: ceil(m · n / warps of a block).
__global__ void int8_outputs(DeviceMatmul a) {
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t output = static_cast<std::int64_t>(blockIdx.x) * kWarps + thread / kWarpWidth;
  if (output >= a.m * a.n) return;  // the whole warp
  const std::int64_t row = output % a.m;
  const std::int64_t column = output / a.m;
  const auto* weights = reinterpret_cast<const std::int8_t*>(a.quantised.codes);
  const Dot dot{Global<const std::int8_t>(a.x_codes) + row * a.k,
                Global<const std::int8_t>(weights) +
                    (column * a.quantised.code_stride + a.quantised.first_term),
                a.k, (a.k + a.plan.split_k - 1) / a.plan.split_k, thread % kWarpWidth};
  const float sum = exact::with_canonical_nan(combined(a.plan, dot));
  if (thread % kWarpWidth != 0) return;
  const Global<const float> x_scales(a.x_scales);
  const Global<const float> w_scales(a.quantised.scales);
  const float scale = __fmul_rn(x_scales[row], w_scales[column * a.quantised.scale_stride]);
  Global<float>(a.y)[row * a.y_stride + column] = finished(a, __fmul_rn(sum, scale), column);
}

}  // namespace

cudaError_t launch_int8_matmul(const DeviceMatmul& a, cudaStream_t stream) {
  constexpr std::int64_t kMostTerms = 133144;  // as kMostInt8Terms
  if (a.x_codes == nullptr || a.x_scales == nullptr || a.quantised.scales == nullptr ||
      a.k > kMostTerms || a.m > 0x7fffffff) {
    return cudaErrorInvalidValue;
  }
  const cudaError_t error = launch_blocks(quantise_rows, "quantise_rows", a.m, a, stream);
  if (error != cudaSuccess) return error;
  return launch_blocks(int8_outputs, "int8_outputs", (a.m * a.n + kWarps - 1) / kWarps, a, stream);
}

}  // namespace driftscope::cuda
