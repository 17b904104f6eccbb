// SPDX-License-Identifier: Apache-2.0
// A thread a pair.
#include "kernels/rope/rope_portable.cuh"

#include "kernels/plan/device.cuh"

namespace driftscope::cuda {

namespace {

struct Pair {
  float first;
  float second;
};

__device__ Pair rotated(const DeviceRope& a, const Pair& x, float cosine, float sine) {
  const Dtype dtype = a.output_dtype;
  if (a.round_products) {
    const auto product = [&](float p, float q) { return exact::rounded(dtype, __fmul_rn(p, q)); };
    return {__fsub_rn(product(x.first, cosine), product(x.second, sine)),
            __fadd_rn(product(x.second, cosine), product(x.first, sine))};
  }
  return {__fmaf_rn(x.first, cosine, -__fmul_rn(x.second, sine)),
          __fmaf_rn(x.second, cosine, __fmul_rn(x.first, sine))};
}

__global__ void rotate_pairs(DeviceRope a) {
  const Global<float> x(a.x);
  const Global<const std::int32_t> positions(a.positions);
  const Global<const float> cosine(a.cosine);
  const Global<const float> sine(a.sine);
  const std::int64_t pairs = a.rows * a.heads * a.half;
  for (std::int64_t p = thread_number(); p < pairs; p += threads_in_grid()) {
    const std::int64_t i = p % a.half;
    const std::int64_t head = p / a.half;  // of all rows
    const std::int64_t entry = positions[head / a.heads] * a.half + i;
    const std::int64_t first = head * 2 * a.half + (a.interleaved ? 2 * i : i);
    const std::int64_t second = a.interleaved ? first + 1 : first + a.half;
    const Pair pair = rotated(a, {x[first], x[second]}, cosine[entry], sine[entry]);
    x[first] = exact::with_canonical_nan(exact::rounded(a.output_dtype, pair.first));
    x[second] = exact::with_canonical_nan(exact::rounded(a.output_dtype, pair.second));
  }
}

}  // namespace

cudaError_t launch_rope(const DeviceRope& a, cudaStream_t stream) {
  if (a.rows < 0 || a.heads < 0 || a.half < 0) return cudaErrorInvalidValue;
  const std::int64_t pairs = a.rows * a.heads * a.half;
  if (pairs == 0) return cudaSuccess;
  return launch(rotate_pairs, "rotate_pairs", element_shape(pairs), stream, a);
}

}  // namespace driftscope::cuda
