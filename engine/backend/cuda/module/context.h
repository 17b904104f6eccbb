// SPDX-License-Identifier: Apache-2.0
// A device in use, inside the module.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <vector>

#include "engine/backend/cuda/cuda_interface.h"

namespace driftscope {

inline constexpr int kCopySlots = 16;

struct CudaContext {
  int device = 0;
  std::vector<cudaStream_t> streams;  // 0: the main one
  cudaStream_t copy_stream = nullptr;
  cudaEvent_t forked = nullptr;
  std::vector<cudaEvent_t> joined;   // of each further stream
  cudaEvent_t computed = nullptr;    // before a copy
  std::vector<cudaEvent_t> copied;   // [kCopySlots]
  cudaError_t failed = cudaSuccess;  // what made the device unusable
  std::string failed_in;
  void* vendor = nullptr;  // the cuBLASLt handle, once it is asked for

  CudaContext() = default;
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;
  ~CudaContext();
};

struct CudaGraph {
  cudaGraphExec_t exec = nullptr;
};

// 0, or the error and its line; remembers one that leaves the device unusable.
int report(CudaContext* context, cudaError_t error, const char* call, CudaMessage* message);
// 0, or the error that the context failed with earlier. Makes its device the thread's current one.
int check_usable(const CudaContext& context, CudaMessage* message);

#if !defined(DRIFTSCOPE_SIMT) && __has_include(<nccl.h>)
#define DRIFTSCOPE_HAS_NCCL
int open_group(CudaContext* const* ranks, int count, CudaGroup** group, CudaMessage* message);
void close_group(CudaGroup* group);
int group_version(const CudaGroup* group);
int group_sum(CudaGroup* group, const CudaGroupSum* request, CudaMessage* message);
#endif

#if !defined(DRIFTSCOPE_SIMT)
int vendor_matmul(CudaContext* context, int stream, const CudaVendorMatmul* request,
                  CudaVendorAlgorithm* algorithm, CudaMessage* message);
void release_vendor(void* handle);
#endif

}  // namespace driftscope
