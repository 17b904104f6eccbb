// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/module/context.h"

#include <cstdio>

namespace driftscope {

CudaContext::~CudaContext() {
  static_cast<void>(cudaSetDevice(device));
  for (const cudaEvent_t event : joined) cudaEventDestroy(event);
  for (const cudaEvent_t event : copied) cudaEventDestroy(event);
  if (forked != nullptr) cudaEventDestroy(forked);
  if (computed != nullptr) cudaEventDestroy(computed);
  for (const cudaStream_t stream : streams) cudaStreamDestroy(stream);
  if (copy_stream != nullptr) cudaStreamDestroy(copy_stream);
#if !defined(DRIFTSCOPE_SIMT)
  if (vendor != nullptr) release_vendor(vendor);
#endif
}

namespace {

// Whether the device still works. An error of a kernel comes back from every later call; one that
// only says that a graph is being recorded (900 …) does not count.
cudaError_t probe() {
  const cudaError_t error = cudaDeviceSynchronize();
  static_cast<void>(cudaGetLastError());
  const int number = static_cast<int>(error);
  return number >= 900 && number < 1000 ? cudaSuccess : error;
}

}  // namespace

int report(CudaContext* context, cudaError_t error, const char* call, CudaMessage* message) {
  if (error == cudaSuccess) return 0;
  std::snprintf(message->text, sizeof message->text, "%s: %s", call, cudaGetErrorString(error));
  static_cast<void>(cudaGetLastError());  // else a later check of a launch would find it again
  if (context != nullptr && context->failed == cudaSuccess) {
    context->failed = probe();
    context->failed_in = call;
  }
  return static_cast<int>(error);
}

int check_usable(const CudaContext& context, CudaMessage* message) {
  if (context.failed == cudaSuccess) {
    const cudaError_t error = cudaSetDevice(context.device);
    if (error == cudaSuccess) return 0;
    std::snprintf(message->text, sizeof message->text, "cudaSetDevice: %s",
                  cudaGetErrorString(error));
    return static_cast<int>(error);
  }
  std::snprintf(message->text, sizeof message->text,
                "the device failed earlier, in %s: %s; nothing more runs on it in this process",
                context.failed_in.c_str(), cudaGetErrorString(context.failed));
  return static_cast<int>(context.failed);
}

}  // namespace driftscope
