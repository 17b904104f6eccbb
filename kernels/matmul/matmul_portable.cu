// SPDX-License-Identifier: Apache-2.0
// Weights as f32, f16 or bf16; the kernels are in matmul_rows.cuh.
#include "kernels/matmul/matmul_portable.cuh"

#include "kernels/matmul/matmul_quantised.cuh"
#include "kernels/matmul/matmul_rows.cuh"

namespace driftscope::cuda {

namespace {

// Of a type that is known when the kernel is compiled.
template <Dtype Type>
struct TypedRow {
  Global<const void> weight;
  std::int64_t begin = 0;
  TypedRow() = default;
  __device__ TypedRow(const DeviceMatmul& a, std::int64_t column)
      : weight(Global<const char>(static_cast<const char*>(a.weight))),
        begin(column * a.weight_stride) {}
  [[nodiscard]] __device__ float at(std::int64_t i) const { return load(weight, Type, begin + i); }
};

struct PlainRow {
  Global<const void> weight;
  std::int64_t begin = 0;
  Dtype dtype = Dtype::f32;
  __device__ PlainRow(const DeviceMatmul& a, std::int64_t column)
      : weight(Global<const char>(static_cast<const char*>(a.weight))),
        begin(column * a.weight_stride),
        dtype(a.weight_dtype) {}
  [[nodiscard]] __device__ float at(std::int64_t i) const { return load(weight, dtype, begin + i); }
};

cudaError_t launch_plain(const DeviceMatmul& a, cudaStream_t stream) {
  if (!has_tile(a.plan)) return launch_any_plan<PlainRow>(a, stream);
  switch (a.weight_dtype) {
    case Dtype::f32:
      return launch_tiles<TypedRow<Dtype::f32>>(a, stream);
    case Dtype::f16:
      return launch_tiles<TypedRow<Dtype::f16>>(a, stream);
    default:
      return launch_tiles<TypedRow<Dtype::bf16>>(a, stream);
  }
}

}  // namespace

cudaError_t launch_matmul(const DeviceMatmul& request, cudaStream_t stream) {
  DeviceMatmul a = request;
  if (a.x_stride == 0) a.x_stride = a.k;
  if (a.weight_stride == 0) a.weight_stride = a.k;
  if (a.y_stride == 0) a.y_stride = a.n;
  if (a.m < 1 || a.n < 0 || a.k < 0 || !valid(a.plan)) return cudaErrorInvalidValue;
  if (a.n == 0) return cudaSuccess;
  if (a.quantised.codes != nullptr) {
    return a.quantised.format == QuantFormat::int8_dynamic ? launch_int8_matmul(a, stream)
                                                           : launch_quantised_matmul(a, stream);
  }
  return a.weight_dtype == Dtype::f64 ? cudaErrorInvalidValue : launch_plain(a, stream);
}

}  // namespace driftscope::cuda
