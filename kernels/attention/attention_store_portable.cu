// SPDX-License-Identifier: Apache-2.0
// Keys and values into the caches: the bits of kv_store().
#include "kernels/attention/attention_cache.cuh"
#include "kernels/attention/attention_portable.cuh"
#include "kernels/plan/device_store.cuh"

namespace driftscope::cuda {

namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarpWidth;

__device__ KvCacheSide cache_of_row(const DeviceStoreKv& a, std::int64_t row, KvSide side) {
  const std::int32_t number = Global<const std::int32_t>(a.batch.sequence_of)[row];
  return {Global<const DeviceSequence>(a.batch.sequences)[number], a.kv_heads, a.batch.layer, side};
}

__device__ float value_of(const DeviceStoreKv& a, KvSide side, std::int64_t index) {
  if (side == KvSide::keys) return Global<const float>(a.k)[index];
  return exact::rounded(a.value_dtype, Global<const float>(a.v)[index]);
}

__device__ void store_element(const KvPlace& place, KvDtype dtype, std::int64_t element,
                              float value) {
  const Global<char> codes(place.codes);
  switch (dtype) {
    case KvDtype::f32:
      return store(codes, Dtype::f32, element, value);
    case KvDtype::f16:
      return store(codes, Dtype::f16, element, value);
    case KvDtype::bf16:
      return store(codes, Dtype::bf16, element, value);
    default:
      global_cast<std::uint8_t>(codes)[element] = exact::e4m3_narrowed(value);
  }
}

// A thread an element of a key or value.
__global__ void store_elements(DeviceStoreKv a) {
  const Global<const std::int32_t> positions(a.batch.positions);
  const std::int64_t width = a.kv_heads * a.head_dim;
  const std::int64_t count = a.batch.rows * width;
  for (std::int64_t i = thread_number(); i < count; i += threads_in_grid()) {
    const std::int64_t row = i / width;
    const std::int64_t head = i % width / a.head_dim;
    for (const KvSide side : {KvSide::keys, KvSide::values}) {
      const KvPlace place = cache_of_row(a, row, side).place(positions[row], head);
      store_element(place, a.kv_dtype, place.head * a.head_dim + i % a.head_dim,
                    value_of(a, side, i));
    }
  }
}

// A warp a head, since its codes share a scale. Grid: ceil(2 · rows · kv_heads / warps of a block).
__global__ void store_int8_heads(DeviceStoreKv a) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpWidth;
  const std::int64_t item = thread_number() / kWarpWidth;
  if (item >= 2 * a.batch.rows * a.kv_heads) return;  // the whole warp
  const KvSide side = item % 2 == 0 ? KvSide::keys : KvSide::values;
  const std::int64_t head = item / 2;  // [rows, kv_heads], counted through
  const std::int64_t begin = head * a.head_dim;
  std::uint32_t largest = 0;  // the bits of a magnitude; NaN is greater than every number
  for (std::int64_t i = lane; i < a.head_dim; i += kWarpWidth) {
    const std::uint32_t bits = exact::bits_of(value_of(a, side, begin + i)) & 0x7fffffffU;
    largest = largest < bits ? bits : largest;
  }
  for (int d = kWarpWidth / 2; d >= 1; d /= 2) {
    const std::uint32_t bits = __shfl_xor_sync(0xffffffffU, largest, d);
    largest = largest < bits ? bits : largest;
  }
  const std::int64_t row = head / a.kv_heads;
  const std::int64_t position = Global<const std::int32_t>(a.batch.positions)[row];
  const KvPlace place = cache_of_row(a, row, side).place(position, head % a.kv_heads);
  const bool finite = largest < 0x7f800000U;
  const float scale = __fdiv_rn(exact::float_of(largest), 127.0F);
  const Global<std::int8_t> codes = global_cast<std::int8_t>(Global<char>(place.codes));
  for (std::int64_t i = lane; i < a.head_dim; i += kWarpWidth) {
    const int code =
        finite && scale != 0.0F ? exact::int8_code(value_of(a, side, begin + i), scale) : 0;
    codes[place.head * a.head_dim + i] = static_cast<std::int8_t>(code);
  }
  if (lane == 0) {
    global_cast<float>(Global<char>(place.scales))[place.head] =
        finite ? scale : exact::float_of(0x7fc00000U);
  }
}

}  // namespace

cudaError_t launch_store_kv(const DeviceStoreKv& a, cudaStream_t stream) {
  if (a.batch.rows < 0 || a.kv_heads < 1 || a.head_dim < 1) return cudaErrorInvalidValue;
  if (a.batch.rows == 0) return cudaSuccess;
  if (a.kv_dtype != KvDtype::int8) {
    return launch(store_elements, "store_elements",
                  element_shape(a.batch.rows * a.kv_heads * a.head_dim), stream, a);
  }
  const std::int64_t blocks = (2 * a.batch.rows * a.kv_heads + kWarps - 1) / kWarps;
  if (blocks > 0x7fffffff) return cudaErrorInvalidValue;
  return launch(store_int8_heads, "store_int8_heads",
                {dim3(static_cast<unsigned>(blocks)), dim3(kThreads), 0}, stream, a);
}

}  // namespace driftscope::cuda
