// SPDX-License-Identifier: Apache-2.0
// The table of cuda_interface.h over the CUDA runtime and our kernels.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>
#include <memory>

#include "engine/backend/cuda/module/context.h"
#include "kernels/activation/activation_portable.cuh"
#include "kernels/allreduce/all_reduce_portable.cuh"
#include "kernels/attention/attention_portable.cuh"
#include "kernels/matmul/matmul_portable.cuh"
#include "kernels/plan/convert_portable.cuh"
#include "kernels/rmsnorm/rmsnorm_portable.cuh"
#include "kernels/rope/rope_portable.cuh"
#include "kernels/routing/routing_portable.cuh"
#include "kernels/softmax/softmax_portable.cuh"

#define DRIFTSCOPE_TRY(call) \
  if (const int status = report(context, (call), #call, message); status != 0) return status
#define DRIFTSCOPE_USABLE \
  if (const int status = check_usable(*context, message); status != 0) return status

namespace driftscope {
namespace {

int get_versions(CudaVersions* versions, CudaMessage* message) {
  CudaContext* const context = nullptr;
  DRIFTSCOPE_TRY(cudaDriverGetVersion(&versions->driver));
  DRIFTSCOPE_TRY(cudaRuntimeGetVersion(&versions->runtime));
  return 0;
}

int device_count(int* count, CudaMessage* message) {
  CudaContext* const context = nullptr;
  *count = 0;
  DRIFTSCOPE_TRY(cudaGetDeviceCount(count));
  return 0;
}

int get_device(int index, CudaDeviceInfo* device, CudaMessage* message) {
  CudaContext* const context = nullptr;
  cudaDeviceProp properties{};
  DRIFTSCOPE_TRY(cudaGetDeviceProperties(&properties, index));
  std::snprintf(device->name, sizeof device->name, "%s", properties.name);
  device->compute_major = properties.major;
  device->compute_minor = properties.minor;
  device->multiprocessors = properties.multiProcessorCount;
  device->memory_bytes = properties.totalGlobalMem;
  return 0;
}

int make_streams(CudaContext* context, int streams, CudaMessage* message) {
  for (int i = 0; i < streams; ++i) {
    cudaStream_t stream = nullptr;
    DRIFTSCOPE_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    context->streams.push_back(stream);
    if (i == 0) continue;
    cudaEvent_t event = nullptr;
    DRIFTSCOPE_TRY(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    context->joined.push_back(event);
  }
  DRIFTSCOPE_TRY(cudaStreamCreateWithFlags(&context->copy_stream, cudaStreamNonBlocking));
  DRIFTSCOPE_TRY(cudaEventCreateWithFlags(&context->forked, cudaEventDisableTiming));
  DRIFTSCOPE_TRY(cudaEventCreateWithFlags(&context->computed, cudaEventDisableTiming));
  for (int i = 0; i < kCopySlots; ++i) {
    cudaEvent_t event = nullptr;
    DRIFTSCOPE_TRY(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    context->copied.push_back(event);
  }
  return 0;
}

int open_context(const CudaContextOptions* options, CudaContext** result, CudaMessage* message) {
  CudaContext* const context = nullptr;
  if (options->streams < 1 || options->streams > 32) {
    std::snprintf(message->text, sizeof message->text, "%d streams: give 1 to 32",
                  options->streams);
    return -1;
  }
  DRIFTSCOPE_TRY(cudaSetDevice(options->device));
  auto made = std::make_unique<CudaContext>();
  made->device = options->device;
  if (const int status = make_streams(made.get(), options->streams, message); status != 0) {
    return status;
  }
  *result = made.release();
  return 0;
}

void close_context(CudaContext* context) { delete context; }

int allocate(CudaContext* context, const char* what, std::size_t bytes, void** pointer,
             CudaMessage* message) {
  *pointer = nullptr;
  DRIFTSCOPE_USABLE;
  if (bytes == 0) return 0;
  const cudaError_t error = cudaMalloc(pointer, bytes);
  if (error != cudaErrorMemoryAllocation) return report(context, error, "cudaMalloc", message);
  static_cast<void>(cudaGetLastError());  // not sticky
  std::size_t free_bytes = 0;
  std::size_t all_bytes = 0;
  static_cast<void>(cudaMemGetInfo(&free_bytes, &all_bytes));
  std::snprintf(message->text, sizeof message->text,
                "out of device memory: %s needs %zu MiB, and %zu of %zu MiB are free", what,
                (bytes >> 20U) + 1, free_bytes >> 20U, all_bytes >> 20U);
  return static_cast<int>(error);
}

void release(CudaContext* context, void* pointer) {
  static_cast<void>(cudaSetDevice(context->device));
  cudaFree(pointer);
}

int allocate_pinned(CudaContext* context, std::size_t bytes, void** pointer, CudaMessage* message) {
  *pointer = nullptr;
  DRIFTSCOPE_USABLE;
  DRIFTSCOPE_TRY(cudaMallocHost(pointer, bytes));
  return 0;
}

void release_pinned(CudaContext*, void* pointer) { cudaFreeHost(pointer); }

int upload(CudaContext* context, void* target, const void* source, std::size_t bytes,
           CudaMessage* message) {
  DRIFTSCOPE_USABLE;
  DRIFTSCOPE_TRY(
      cudaMemcpyAsync(target, source, bytes, cudaMemcpyHostToDevice, context->streams[0]));
  return 0;
}

int download(CudaContext* context, void* target, const void* source, std::size_t bytes,
             CudaMessage* message) {
  DRIFTSCOPE_USABLE;
  DRIFTSCOPE_TRY(
      cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToHost, context->streams[0]));
  DRIFTSCOPE_TRY(cudaStreamSynchronize(context->streams[0]));
  return 0;
}

int copy(CudaContext* context, void* target, const void* source, std::size_t bytes,
         CudaMessage* message) {
  DRIFTSCOPE_USABLE;
  DRIFTSCOPE_TRY(
      cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, context->streams[0]));
  return 0;
}

int zero(CudaContext* context, void* target, std::size_t bytes, CudaMessage* message) {
  DRIFTSCOPE_USABLE;
  DRIFTSCOPE_TRY(cudaMemsetAsync(target, 0, bytes, context->streams[0]));
  return 0;
}

int synchronize(CudaContext* context, CudaMessage* message) {
  DRIFTSCOPE_USABLE;
  DRIFTSCOPE_TRY(cudaStreamSynchronize(context->streams[0]));
  return 0;
}

int start_copy(CudaContext* context, int slot, void* pinned, const void* source, std::size_t bytes,
               CudaMessage* message) {
  DRIFTSCOPE_USABLE;
  DRIFTSCOPE_TRY(cudaEventRecord(context->computed, context->streams[0]));
  DRIFTSCOPE_TRY(cudaStreamWaitEvent(context->copy_stream, context->computed, 0));
  DRIFTSCOPE_TRY(
      cudaMemcpyAsync(pinned, source, bytes, cudaMemcpyDeviceToHost, context->copy_stream));
  DRIFTSCOPE_TRY(
      cudaEventRecord(context->copied[static_cast<std::size_t>(slot)], context->copy_stream));
  return 0;
}

int wait_copy(CudaContext* context, int slot, CudaMessage* message) {
  DRIFTSCOPE_USABLE;
  DRIFTSCOPE_TRY(cudaEventSynchronize(context->copied[static_cast<std::size_t>(slot)]));
  return 0;
}

int copy_between(CudaContext* to, void* target, CudaContext* from, const void* source,
                 std::size_t bytes, CudaMessage* message) {
  CudaContext* context = from;
  DRIFTSCOPE_USABLE;
  DRIFTSCOPE_TRY(cudaEventRecord(from->computed, from->streams[0]));
  context = to;
  DRIFTSCOPE_USABLE;
  DRIFTSCOPE_TRY(cudaStreamWaitEvent(to->streams[0], from->computed, 0));
  DRIFTSCOPE_TRY(
      cudaMemcpyPeerAsync(target, to->device, source, from->device, bytes, to->streams[0]));
  return 0;
}

int fork_streams(CudaContext* context, CudaMessage* message) {
  DRIFTSCOPE_USABLE;
  if (context->streams.size() == 1) return 0;
  DRIFTSCOPE_TRY(cudaEventRecord(context->forked, context->streams[0]));
  for (std::size_t i = 1; i < context->streams.size(); ++i) {
    DRIFTSCOPE_TRY(cudaStreamWaitEvent(context->streams[i], context->forked, 0));
  }
  return 0;
}

int join_streams(CudaContext* context, CudaMessage* message) {
  DRIFTSCOPE_USABLE;
  for (std::size_t i = 1; i < context->streams.size(); ++i) {
    DRIFTSCOPE_TRY(cudaEventRecord(context->joined[i - 1], context->streams[i]));
    DRIFTSCOPE_TRY(cudaStreamWaitEvent(context->streams[0], context->joined[i - 1], 0));
  }
  return 0;
}

int begin_graph(CudaContext* context, CudaMessage* message) {
  DRIFTSCOPE_USABLE;
  DRIFTSCOPE_TRY(cudaStreamBeginCapture(context->streams[0], cudaStreamCaptureModeGlobal));
  return 0;
}

int end_graph(CudaContext* context, CudaGraph** result, CudaMessage* message) {
  *result = nullptr;
  DRIFTSCOPE_USABLE;
  cudaGraph_t graph = nullptr;
  DRIFTSCOPE_TRY(cudaStreamEndCapture(context->streams[0], &graph));
  auto made = std::make_unique<CudaGraph>();
  const cudaError_t error = cudaGraphInstantiate(&made->exec, graph, 0);
  cudaGraphDestroy(graph);
  DRIFTSCOPE_TRY(error);
  *result = made.release();
  return 0;
}

int run_graph(CudaContext* context, CudaGraph* graph, CudaMessage* message) {
  DRIFTSCOPE_USABLE;
  DRIFTSCOPE_TRY(cudaGraphLaunch(graph->exec, context->streams[0]));
  return 0;
}

void release_graph(CudaContext*, CudaGraph* graph) {
  if (graph == nullptr) return;
  cudaGraphExecDestroy(graph->exec);
  delete graph;
}

// For messages.
const char* name_of(const DeviceEmbed&) { return "embedding"; }
const char* name_of(const DeviceRound&) { return "rounding"; }
const char* name_of(const DeviceGather&) { return "gathering rows"; }
const char* name_of(const DeviceNarrow&) { return "narrowing"; }
const char* name_of(const DeviceMatmul&) { return "matmul"; }
const char* name_of(const DeviceRmsNorm&) { return "rmsnorm"; }
const char* name_of(const DeviceAddResidual&) { return "residual sum"; }
const char* name_of(const DeviceSoftmax&) { return "softmax"; }
const char* name_of(const DeviceRope&) { return "rope"; }
const char* name_of(const DeviceSwiglu&) { return "swiglu"; }
const char* name_of(const DeviceStoreKv&) { return "storing keys and values"; }
const char* name_of(const DeviceAttention&) { return "attention"; }
const char* name_of(const DeviceRouting&) { return "routing"; }
const char* name_of(const DeviceExpertSum&) { return "the sum of experts"; }
const char* name_of(const DeviceSigmoid&) { return "gates"; }
const char* name_of(const DeviceAllReduce&) { return "all-reduce"; }

// A kernel of ours on the stream of that number (more streams than there are: round about).
template <class Request, cudaError_t (*launch)(const Request&, cudaStream_t)>
int run(CudaContext* context, int stream, const Request* request, CudaMessage* message) {
  DRIFTSCOPE_USABLE;
  const std::size_t number = static_cast<std::size_t>(stream) % context->streams.size();
  return report(context, launch(*request, context->streams[number]), name_of(*request), message);
}

constexpr CudaTable kTable = {
    .interface_version = kCudaInterface,
    .get_versions = get_versions,
    .device_count = device_count,
    .get_device = get_device,
    .open = open_context,
    .close = close_context,
    .allocate = allocate,
    .release = release,
    .allocate_pinned = allocate_pinned,
    .release_pinned = release_pinned,
    .upload = upload,
    .download = download,
    .copy = copy,
    .zero = zero,
    .synchronize = synchronize,
    .start_copy = start_copy,
    .wait_copy = wait_copy,
    .fork = fork_streams,
    .join = join_streams,
    .copy_between = copy_between,
    .begin_graph = begin_graph,
    .end_graph = end_graph,
    .run_graph = run_graph,
    .release_graph = release_graph,
    .embed = run<DeviceEmbed, cuda::launch_embed>,
    .round = run<DeviceRound, cuda::launch_round>,
    .gather = run<DeviceGather, cuda::launch_gather>,
    .narrow = run<DeviceNarrow, cuda::launch_narrow>,
    .matmul = run<DeviceMatmul, cuda::launch_matmul>,
    .rmsnorm = run<DeviceRmsNorm, cuda::launch_rmsnorm>,
    .add_residual = run<DeviceAddResidual, cuda::launch_add_residual>,
    .softmax = run<DeviceSoftmax, cuda::launch_softmax>,
    .rope = run<DeviceRope, cuda::launch_rope>,
    .swiglu = run<DeviceSwiglu, cuda::launch_swiglu>,
    .store_kv = run<DeviceStoreKv, cuda::launch_store_kv>,
    .attention = run<DeviceAttention, cuda::launch_attention>,
    .route = run<DeviceRouting, cuda::launch_route>,
    .expert_sum = run<DeviceExpertSum, cuda::launch_expert_sum>,
    .sigmoid = run<DeviceSigmoid, cuda::launch_sigmoid>,
    .all_reduce = run<DeviceAllReduce, cuda::launch_all_reduce>,
#if defined(DRIFTSCOPE_SIMT)
    .vendor_matmul = nullptr,
#else
    .vendor_matmul = vendor_matmul,
#endif
#if defined(DRIFTSCOPE_HAS_NCCL)
    .open_group = open_group,
    .close_group = close_group,
    .group_version = group_version,
    .group_sum = group_sum,
#else
    .open_group = nullptr,
    .close_group = nullptr,
    .group_version = nullptr,
    .group_sum = nullptr,
#endif
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const CudaTable* driftscope_cuda_table(void) {
  return &kTable;
}

}  // namespace driftscope
