// SPDX-License-Identifier: Apache-2.0
// What the module exports: see cuda_interface.h.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>

#include "engine/backend/cuda/cuda_interface.h"
#include "kernels/matmul/matmul_portable.cuh"

namespace {

using driftscope::cuda::ChunkOrder;
using driftscope::cuda::Element;
using driftscope::cuda::PortableMatmul;

int report(cudaError_t error, const char* call, DriftscopeCudaMessage* message) {
  if (error == cudaSuccess) return 0;
  std::snprintf(message->text, sizeof message->text, "%s: %s", call, cudaGetErrorString(error));
  return static_cast<int>(error);
}

// Device memory of one call. Empty where nothing was asked for.
class DeviceArray {
 public:
  DeviceArray() = default;
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(m_data); }
  cudaError_t allocate(std::size_t bytes) {
    return bytes == 0 ? cudaSuccess : cudaMalloc(&m_data, bytes);
  }
  cudaError_t copy_from(const void* host, std::size_t bytes) {
    if (host == nullptr || bytes == 0) return cudaSuccess;
    const cudaError_t error = allocate(bytes);
    return error != cudaSuccess ? error : cudaMemcpy(m_data, host, bytes, cudaMemcpyHostToDevice);
  }
  template <class T>
  T* as() const {
    return static_cast<T*>(m_data);
  }

 private:
  void* m_data = nullptr;
};

std::size_t bytes_of(std::int64_t count, std::size_t each) {
  return static_cast<std::size_t>(count) * each;
}

}  // namespace

#define DRIFTSCOPE_TRY(call) \
  if (const int status = report((call), #call, message); status != 0) return status

extern "C" {

__attribute__((visibility("default"))) int driftscope_cuda_interface_version(void) {
  return kDriftscopeCudaInterface;
}

__attribute__((visibility("default"))) int driftscope_cuda_get_versions(
    DriftscopeCudaVersions* versions, DriftscopeCudaMessage* message) {
  DRIFTSCOPE_TRY(cudaDriverGetVersion(&versions->driver));
  DRIFTSCOPE_TRY(cudaRuntimeGetVersion(&versions->runtime));
  return 0;
}

__attribute__((visibility("default"))) int driftscope_cuda_device_count(
    int* count, DriftscopeCudaMessage* message) {
  *count = 0;
  DRIFTSCOPE_TRY(cudaGetDeviceCount(count));
  return 0;
}

__attribute__((visibility("default"))) int driftscope_cuda_get_device(
    int index, DriftscopeCudaDevice* device, DriftscopeCudaMessage* message) {
  cudaDeviceProp properties{};
  DRIFTSCOPE_TRY(cudaGetDeviceProperties(&properties, index));
  std::snprintf(device->name, sizeof device->name, "%s", properties.name);
  device->compute_major = properties.major;
  device->compute_minor = properties.minor;
  device->multiprocessors = properties.multiProcessorCount;
  device->memory_bytes = properties.totalGlobalMem;
  return 0;
}

__attribute__((visibility("default"))) int driftscope_cuda_run_matmul(
    const DriftscopeCudaMatmul* request, DriftscopeCudaMessage* message) {
  const std::size_t weight_bytes = request->weight_dtype == 0 ? 4 : 2;
  const std::size_t y_bytes = bytes_of(request->m * request->n, sizeof(float));
  DeviceArray x;
  DeviceArray weight;
  DeviceArray bias;
  DeviceArray order;
  DeviceArray y;
  DRIFTSCOPE_TRY(x.copy_from(request->x, bytes_of(request->m * request->k, sizeof(float))));
  DRIFTSCOPE_TRY(
      weight.copy_from(request->weight, bytes_of(request->n * request->k, weight_bytes)));
  DRIFTSCOPE_TRY(bias.copy_from(request->bias, bytes_of(request->n, sizeof(float))));
  DRIFTSCOPE_TRY(order.copy_from(request->order, bytes_of(request->split_k, sizeof(int))));
  DRIFTSCOPE_TRY(y.allocate(y_bytes));
  const PortableMatmul arguments{
      .x = x.as<const float>(),
      .weight = weight.as<const void>(),
      .bias = bias.as<const float>(),
      .order = order.as<const int>(),
      .y = y.as<float>(),
      .m = request->m,
      .n = request->n,
      .k = request->k,
      .split_k = request->split_k,
      .chunk_order = static_cast<ChunkOrder>(request->split_combine),
      .weight_type = static_cast<Element>(request->weight_dtype),
      .output_type = static_cast<Element>(request->output_dtype),
  };
  DRIFTSCOPE_TRY(driftscope::cuda::launch_portable_matmul(arguments, nullptr));
  DRIFTSCOPE_TRY(cudaMemcpy(request->y, y.as<float>(), y_bytes, cudaMemcpyDeviceToHost));
  return 0;
}

}  // extern "C"
