// SPDX-License-Identifier: Apache-2.0
// One warp an output: thread t is lane t, exclusive-or shuffles are the butterfly. Every operation
// that rounds is written as the intrinsic that rounds to nearest, and the file is compiled with
// -fmad=false, so nothing is contracted or reordered.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/matmul/matmul_portable.cuh"

namespace driftscope::cuda {

namespace {

constexpr int kLanes = 32;
constexpr int kWarps = 4;  // outputs of one block
constexpr unsigned kAll = 0xffffffffU;

template <Element Type>
__device__ float load_weight(const void* weight, std::int64_t index) {
  if constexpr (Type == Element::f32) {
    return static_cast<const float*>(weight)[index];
  } else if constexpr (Type == Element::f16) {
    return __half2float(static_cast<const __half*>(weight)[index]);
  } else {
    return __bfloat162float(static_cast<const __nv_bfloat16*>(weight)[index]);
  }
}

// NaN is always 0x7fc00000, as on the host.
__device__ float rounded(float value, Element type) {
  if (value != value) return __uint_as_float(0x7fc00000U);
  switch (type) {
    case Element::f32:
      return value;
    case Element::f16:
      return __half2float(__float2half_rn(value));
    case Element::bf16:
      return __bfloat162float(__float2bfloat16_rn(value));
  }
  return value;
}

// x, w: [length]. Steps 2 and 3 of the plan; every thread returns the sum of its own butterfly,
// lane 0 the one that counts.
template <Element Type>
__device__ float sum_chunk(const float* x, const void* weight, std::int64_t first,
                           std::int64_t length, int lane) {
  float sum = 0.0F;
  for (std::int64_t step = 0; step < length; step += kLanes) {
    const std::int64_t i = step + lane;
    const bool inside = i < length;  // padding: +0 · +0
    const float a = inside ? x[i] : 0.0F;
    const float b = inside ? load_weight<Type>(weight, first + i) : 0.0F;
    sum = __fmaf_rn(a, b, sum);
  }
  for (int d = kLanes / 2; d >= 1; d /= 2) {
    sum = __fadd_rn(sum, __shfl_xor_sync(kAll, sum, d));
  }
  return sum;
}

// Step 4 by one thread; chunks: [split_k] in shared memory, overwritten.
__device__ float combine_chunks(const PortableMatmul& arguments, float* chunks) {
  const int count = arguments.split_k;
  switch (arguments.chunk_order) {
    case ChunkOrder::sequential:
      for (int i = 1; i < count; ++i) chunks[0] = __fadd_rn(chunks[0], chunks[i]);
      return chunks[0];
    case ChunkOrder::tree:
      for (int d = 1; d < count; d *= 2) {
        for (int i = 0; i + d < count; i += 2 * d) {
          chunks[i] = __fadd_rn(chunks[i], chunks[i + d]);
        }
      }
      return chunks[0];
    case ChunkOrder::listed: {
      float sum = chunks[arguments.order[0]];
      for (int i = 1; i < count; ++i) sum = __fadd_rn(sum, chunks[arguments.order[i]]);
      return sum;
    }
  }
  return chunks[0];
}

// Grid: [ceil(n / kWarps), rows]; block: [32, kWarps]; shared: kWarps · split_k floats.
template <Element Type>
__global__ void portable_matmul(PortableMatmul arguments, std::int64_t first_row) {
  extern __shared__ float shared[];
  const int lane = static_cast<int>(threadIdx.x);
  const std::int64_t column =
      static_cast<std::int64_t>(blockIdx.x) * kWarps + static_cast<std::int64_t>(threadIdx.y);
  if (column >= arguments.n) return;  // the whole warp
  const std::int64_t row = first_row + static_cast<std::int64_t>(blockIdx.y);
  const float* x = arguments.x + row * arguments.k;
  float* chunks = shared + threadIdx.y * static_cast<unsigned>(arguments.split_k);
  const std::int64_t chunk_length = (arguments.k + arguments.split_k - 1) / arguments.split_k;
  for (int chunk = 0; chunk < arguments.split_k; ++chunk) {
    const std::int64_t begin = chunk * chunk_length;
    const std::int64_t left = arguments.k - begin;
    const std::int64_t length = left < chunk_length ? left : chunk_length;
    const float sum = length > 0 ? sum_chunk<Type>(x + begin, arguments.weight,
                                                   column * arguments.k + begin, length, lane)
                                 : 0.0F;
    if (lane == 0) chunks[chunk] = sum;
  }
  if (lane != 0) return;
  float value = combine_chunks(arguments, chunks);
  if (arguments.bias != nullptr) value = __fadd_rn(value, arguments.bias[column]);
  arguments.y[row * arguments.n + column] = rounded(value, arguments.output_type);
}

template <Element Type>
cudaError_t launch(const PortableMatmul& arguments, cudaStream_t stream) {
  constexpr std::int64_t kMostRows = 65535;  // of a grid's second dimension
  const dim3 block(kLanes, kWarps);
  const auto columns = static_cast<unsigned>((arguments.n + kWarps - 1) / kWarps);
  const std::size_t shared_bytes =
      sizeof(float) * kWarps * static_cast<std::size_t>(arguments.split_k);
  for (std::int64_t row = 0; row < arguments.m; row += kMostRows) {
    const std::int64_t left = arguments.m - row;
    const dim3 grid(columns, static_cast<unsigned>(left < kMostRows ? left : kMostRows));
    portable_matmul<Type><<<grid, block, shared_bytes, stream>>>(arguments, row);
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t launch_portable_matmul(const PortableMatmul& arguments, cudaStream_t stream) {
  if (arguments.m < 1 || arguments.n < 0 || arguments.k < 0 || arguments.split_k < 1 ||
      arguments.split_k > 1024) {
    return cudaErrorInvalidValue;
  }
  if (arguments.n == 0) return cudaSuccess;
  switch (arguments.weight_type) {
    case Element::f32:
      return launch<Element::f32>(arguments, stream);
    case Element::f16:
      return launch<Element::f16>(arguments, stream);
    case Element::bf16:
      return launch<Element::bf16>(arguments, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace driftscope::cuda
