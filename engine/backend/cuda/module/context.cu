// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/module/context.h"

#include <cstdio>

namespace driftscope {

CudaContext::~CudaContext() {
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

int report(CudaContext* context, cudaError_t error, const char* call, CudaMessage* message) {
  if (error == cudaSuccess) return 0;
  std::snprintf(message->text, sizeof message->text, "%s: %s", call, cudaGetErrorString(error));
  // An error that the next call still sees has taken the device's state with it.
  static_cast<void>(cudaGetLastError());
  const cudaError_t left = cudaPeekAtLastError();
  if (context != nullptr && left != cudaSuccess && context->failed == cudaSuccess) {
    context->failed = left;
    context->failed_in = call;
  }
  return static_cast<int>(error);
}

int check_usable(const CudaContext& context, CudaMessage* message) {
  if (context.failed == cudaSuccess) return 0;
  std::snprintf(message->text, sizeof message->text,
                "the device failed earlier, in %s: %s; nothing more runs on it in this process",
                context.failed_in.c_str(), cudaGetErrorString(context.failed));
  return static_cast<int>(context.failed);
}

}  // namespace driftscope
