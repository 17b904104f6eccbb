// SPDX-License-Identifier: Apache-2.0
// Ranks with a GPU each in this process, added up by NCCL. The library is loaded when it is first
// asked for; its header gives the types only, and where there is none the module is built without.
#include "engine/backend/cuda/module/context.h"

#if defined(DRIFTSCOPE_HAS_NCCL)

#include <dlfcn.h>
#include <nccl.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "kernels/plan/convert_portable.cuh"
#include "kernels/plan/device.cuh"

namespace driftscope {

struct CudaGroup {
  void* file = nullptr;
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetErrorString) error_string = nullptr;
  decltype(&ncclCommInitAll) init_all = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclCommGetAsyncError) async_error = nullptr;
  decltype(&ncclGroupStart) start = nullptr;
  decltype(&ncclGroupEnd) end = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  int version = 0;
  std::vector<CudaContext*> ranks;
  std::vector<ncclComm_t> communicators;  // [ranks]

  CudaGroup() = default;
  CudaGroup(const CudaGroup&) = delete;
  CudaGroup& operator=(const CudaGroup&) = delete;
  ~CudaGroup() {
    for (const ncclComm_t communicator : communicators) destroy(communicator);
    if (file != nullptr) ::dlclose(file);
  }
};

namespace {

constexpr int kModuleError = -2;

int fail(CudaMessage* message, const char* text, const char* detail) {
  std::snprintf(message->text, sizeof message->text, "all_reduce nccl: %s%s", text, detail);
  return kModuleError;
}

template <class Function>
bool bind(void* file, Function& function, const char* name) {
  function = reinterpret_cast<Function>(::dlsym(file, name));
  return function != nullptr;
}

int open_library(CudaGroup& group, CudaMessage* message) {
  group.file = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (group.file == nullptr) {
    return fail(message,
                "the library does not load; install NCCL, or use ring or tree: ", ::dlerror());
  }
  void* const file = group.file;
  const bool all = bind(file, group.get_version, "ncclGetVersion") &&
                   bind(file, group.error_string, "ncclGetErrorString") &&
                   bind(file, group.init_all, "ncclCommInitAll") &&
                   bind(file, group.destroy, "ncclCommDestroy") &&
                   bind(file, group.async_error, "ncclCommGetAsyncError") &&
                   bind(file, group.start, "ncclGroupStart") &&
                   bind(file, group.end, "ncclGroupEnd") &&
                   bind(file, group.all_reduce, "ncclAllReduce");
  if (!all) return fail(message, "this library lacks a function that is needed", "");
  return 0;
}

// 0, or the error and its line.
int check(const CudaGroup& group, ncclResult_t result, const char* call, CudaMessage* message) {
  if (result == ncclSuccess) return 0;
  std::snprintf(message->text, sizeof message->text, "all_reduce nccl: %s: %s", call,
                group.error_string(result));
  return kModuleError;
}

ncclDataType_t type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16:
      return ncclFloat16;
    case Dtype::bf16:
      return ncclBfloat16;
    default:
      return ncclFloat32;
  }
}

__global__ void widen_elements(const void* source, float* target, std::int64_t count, Dtype dtype) {
  for (std::int64_t i = cuda::thread_number(); i < count; i += cuda::threads_in_grid()) {
    target[i] = cuda::load(source, dtype, i);
  }
}

int add_up(CudaGroup& group, const CudaGroupSum& request, CudaMessage* message) {
  const bool plain = request.dtype == Dtype::f32;
  if (const int status = check(group, group.start(), "ncclGroupStart", message); status != 0) {
    return status;
  }
  ncclResult_t first = ncclSuccess;
  for (std::size_t rank = 0; rank < group.ranks.size(); ++rank) {
    void* const buffer = plain ? request.parts[rank] : request.narrowed[rank];
    const ncclResult_t result = group.all_reduce(
        buffer, buffer, static_cast<std::size_t>(request.count), type_of(request.dtype), ncclSum,
        group.communicators[rank], group.ranks[rank]->streams[0]);
    if (first == ncclSuccess) first = result;
  }
  const ncclResult_t ended = group.end();  // whatever happened, the group is closed
  if (const int status = check(group, first, "ncclAllReduce", message); status != 0) return status;
  if (const int status = check(group, ended, "ncclGroupEnd", message); status != 0) return status;
  for (const ncclComm_t communicator : group.communicators) {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = group.async_error(communicator, &state);
    const ncclResult_t found = asked == ncclSuccess ? state : asked;
    if (const int status = check(group, found, "ncclAllReduce", message); status != 0) {
      return status;
    }
  }
  return 0;
}

}  // namespace

int open_group(CudaContext* const* ranks, int count, CudaGroup** result, CudaMessage* message) {
  auto group = std::make_unique<CudaGroup>();
  if (const int status = open_library(*group, message); status != 0) return status;
  std::vector<int> devices;
  for (int rank = 0; rank < count; ++rank) {
    group->ranks.push_back(ranks[rank]);
    devices.push_back(ranks[rank]->device);
  }
  const ncclResult_t version = group->get_version(&group->version);
  if (const int status = check(*group, version, "ncclGetVersion", message); status != 0) {
    return status;
  }
  std::vector<ncclComm_t> communicators(static_cast<std::size_t>(count), nullptr);
  const ncclResult_t made = group->init_all(communicators.data(), count, devices.data());
  if (const int status = check(*group, made, "ncclCommInitAll", message); status != 0) {
    return status;
  }
  group->communicators = communicators;
  *result = group.release();
  return 0;
}

void close_group(CudaGroup* group) { delete group; }

int group_version(const CudaGroup* group) { return group->version; }

int group_sum(CudaGroup* group, const CudaGroupSum* request, CudaMessage* message) {
  const bool plain = request->dtype == Dtype::f32;
  for (std::size_t rank = 0; rank < group->ranks.size(); ++rank) {
    CudaContext* const context = group->ranks[rank];
    if (const int status = check_usable(*context, message); status != 0) return status;
    if (plain) continue;
    const DeviceNarrow narrow{request->parts[rank], request->narrowed[rank], request->count,
                              request->dtype};
    const cudaError_t error = cuda::launch_narrow(narrow, context->streams[0]);
    if (const int status = report(context, error, "narrowing", message); status != 0) return status;
  }
  if (const int status = add_up(*group, *request, message); status != 0) return status;
  for (std::size_t rank = 0; !plain && rank < group->ranks.size(); ++rank) {
    CudaContext* const context = group->ranks[rank];
    if (const int status = check_usable(*context, message); status != 0) return status;
    const cudaError_t error = cuda::launch(
        widen_elements, "widen_elements", cuda::element_shape(request->count), context->streams[0],
        request->narrowed[rank], request->parts[rank], request->count, request->dtype);
    if (const int status = report(context, error, "widening", message); status != 0) return status;
  }
  return 0;
}

}  // namespace driftscope

#endif
