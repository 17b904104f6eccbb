// SPDX-License-Identifier: Apache-2.0
// The interface of the module driftscope_cuda, which is loaded at run time so that one program
// starts with and without CUDA: one table of functions over plain structs; includes no CUDA header.
// The module knows kernels, memory and streams; what a model is stays on this side of the table.
//
// Every function that returns int returns 0, or a CUDA error number (negative: an error of the
// module) with one line in `message`. After an error that leaves the device unusable every later
// call on that context fails with it. Pointers in the Device… structs are device memory. Work is
// ordered on its stream; stream 0 is the main one.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/activation/activation_device.h"
#include "kernels/allreduce/all_reduce_device.h"
#include "kernels/attention/attention_device.h"
#include "kernels/matmul/matmul_device.h"
#include "kernels/plan/convert_device.h"
#include "kernels/rmsnorm/rmsnorm_device.h"
#include "kernels/rope/rope_device.h"
#include "kernels/routing/routing_device.h"
#include "kernels/softmax/softmax_device.h"

namespace driftscope {

// Raised whenever a struct or a function below changes.
inline constexpr int kCudaInterface = 3;
inline constexpr const char* kCudaTableSymbol = "driftscope_cuda_table";

struct CudaMessage {
  char text[512];
};

struct CudaVersions {
  int driver;   // 12040 is 12.4; 0: no driver
  int runtime;  // what the module was built with
};

struct CudaDeviceInfo {
  char name[256];
  int compute_major;
  int compute_minor;
  int multiprocessors;
  uint64_t memory_bytes;
};

struct CudaContext;  // a device in use: its streams, and whether it has failed
struct CudaGraph;    // work recorded once
struct CudaGroup;    // ranks with a GPU each that add up through NCCL

struct CudaContextOptions {
  int device = 0;
  int streams = 1;  // 1 … 32
};

// y = x · wᵀ + bias by cuBLASLt: bits depend on the library, the GPU and the shape. x is rounded to
// weight_dtype (16-bit weights) into `narrowed`; sums are f32; y is then rounded to output_dtype.
struct CudaVendorMatmul {
  const float* x = nullptr;  // [m, k]
  void* narrowed = nullptr;  // [m, k] of weight_dtype; unused for f32
  const void* weight = nullptr;
  const float* bias = nullptr;
  float* y = nullptr;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  Dtype weight_dtype = Dtype::f32;
  Dtype output_dtype = Dtype::f32;
  bool tf32 = false;                         // f32 weights on TF32 tensor cores
  bool reduced_precision_reduction = false;  // split-K sums may be added in the weight's type
  void* workspace = nullptr;
  uint64_t workspace_bytes = 0;
  int choice = 0;  // which of the library's proposals, best first
};

// What the library chose, as it reports it.
struct CudaVendorAlgorithm {
  int id;
  int tile;
  int stages;
  int split_k;
  int reduction_scheme;
  int swizzle;
  uint64_t workspace_bytes;
  uint64_t library_version;
};

// parts[r] = sum over the ranks r of round(parts[r]), in the order and with the roundings of NCCL,
// which depend on its version, the GPUs, how they are connected, and its environment variables. On
// each rank's stream 0.
struct CudaGroupSum {
  float* const* parts = nullptr;    // [ranks], each in its own GPU's memory, [count]
  void* const* narrowed = nullptr;  // [ranks], the same of `dtype`; not read for f32
  int64_t count = 0;
  Dtype dtype = Dtype::f32;  // f32, bf16 or f16: of what ranks send
};

struct CudaTable {
  int interface_version;
  int (*get_versions)(CudaVersions*, CudaMessage*);
  int (*device_count)(int* count, CudaMessage*);
  int (*get_device)(int index, CudaDeviceInfo*, CudaMessage*);

  int (*open)(const CudaContextOptions*, CudaContext**, CudaMessage*);
  void (*close)(CudaContext*);
  // `what` names the memory in the message if it does not fit.
  int (*allocate)(CudaContext*, const char* what, size_t bytes, void** pointer, CudaMessage*);
  void (*release)(CudaContext*, void* pointer);
  int (*allocate_pinned)(CudaContext*, size_t bytes, void** pointer, CudaMessage*);
  void (*release_pinned)(CudaContext*, void* pointer);
  // On stream 0. `source` (pageable memory) may be changed once it returns.
  int (*upload)(CudaContext*, void* target, const void* source, size_t bytes, CudaMessage*);
  // On stream 0; waits for everything before it.
  int (*download)(CudaContext*, void* target, const void* source, size_t bytes, CudaMessage*);
  int (*copy)(CudaContext*, void* target, const void* source, size_t bytes, CudaMessage*);
  int (*zero)(CudaContext*, void* target, size_t bytes, CudaMessage*);
  int (*synchronize)(CudaContext*, CudaMessage*);

  // Copies to pinned memory beside the kernels: starts when what stream 0 was given so far is done.
  // Slots (0 … 15) say which copies to wait for.
  int (*start_copy)(CudaContext*, int slot, void* pinned, const void* source, size_t bytes,
                    CudaMessage*);
  int (*wait_copy)(CudaContext*, int slot, CudaMessage*);

  // The other streams wait for stream 0; stream 0 waits for them.
  int (*fork)(CudaContext*, CudaMessage*);
  int (*join)(CudaContext*, CudaMessage*);

  // From one GPU's memory to another's: after what stream 0 of `from` was given so far, before what
  // stream 0 of `to` is given next.
  int (*copy_between)(CudaContext* to, void* target, CudaContext* from, const void* source,
                      size_t bytes, CudaMessage*);

  // What is given to the streams between the two is recorded instead of run.
  int (*begin_graph)(CudaContext*, CudaMessage*);
  int (*end_graph)(CudaContext*, CudaGraph**, CudaMessage*);
  int (*run_graph)(CudaContext*, CudaGraph*, CudaMessage*);
  void (*release_graph)(CudaContext*, CudaGraph*);

  int (*embed)(CudaContext*, int stream, const DeviceEmbed*, CudaMessage*);
  int (*round)(CudaContext*, int stream, const DeviceRound*, CudaMessage*);
  int (*gather)(CudaContext*, int stream, const DeviceGather*, CudaMessage*);
  int (*narrow)(CudaContext*, int stream, const DeviceNarrow*, CudaMessage*);
  int (*matmul)(CudaContext*, int stream, const DeviceMatmul*, CudaMessage*);
  int (*rmsnorm)(CudaContext*, int stream, const DeviceRmsNorm*, CudaMessage*);
  int (*add_residual)(CudaContext*, int stream, const DeviceAddResidual*, CudaMessage*);
  int (*softmax)(CudaContext*, int stream, const DeviceSoftmax*, CudaMessage*);
  int (*rope)(CudaContext*, int stream, const DeviceRope*, CudaMessage*);
  int (*swiglu)(CudaContext*, int stream, const DeviceSwiglu*, CudaMessage*);
  int (*store_kv)(CudaContext*, int stream, const DeviceStoreKv*, CudaMessage*);
  int (*attention)(CudaContext*, int stream, const DeviceAttention*, CudaMessage*);
  int (*route)(CudaContext*, int stream, const DeviceRouting*, CudaMessage*);
  int (*expert_sum)(CudaContext*, int stream, const DeviceExpertSum*, CudaMessage*);
  int (*sigmoid)(CudaContext*, int stream, const DeviceSigmoid*, CudaMessage*);
  int (*all_reduce)(CudaContext*, int stream, const DeviceAllReduce*, CudaMessage*);
  // Null where the module was built without cuBLAS.
  int (*vendor_matmul)(CudaContext*, int stream, const CudaVendorMatmul*, CudaVendorAlgorithm*,
                       CudaMessage*);
  // Null where the module was built without NCCL's header. The contexts outlive the group.
  int (*open_group)(CudaContext* const* ranks, int count, CudaGroup**, CudaMessage*);
  void (*close_group)(CudaGroup*);
  int (*group_version)(const CudaGroup*);  // 22809 is 2.28.9
  int (*group_sum)(CudaGroup*, const CudaGroupSum*, CudaMessage*);
};

// The one symbol that the module exports.
extern "C" const CudaTable* driftscope_cuda_table(void);

}  // namespace driftscope
