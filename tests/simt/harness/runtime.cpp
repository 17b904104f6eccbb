// SPDX-License-Identifier: Apache-2.0
// The runtime calls of include/cuda_runtime.h. Everything is in order and done when the call
// returns, unless the stream is being captured.
#include "cuda_runtime.h"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "block.h"
#include "simt/faults.h"
#include "simt/launch.h"
#include "simt/memory.h"

namespace simt {

using Work = std::function<cudaError_t()>;
struct Graph {
  std::vector<Work> work;
};
struct GraphExec {
  std::vector<Work> work;
};
struct Stream {
  std::unique_ptr<Graph> capture;  // while it is being captured
  bool origin = false;             // the stream on which the capture began
  int device = 0;
};
struct Event {
  Graph* capture = nullptr;  // recorded inside this capture
};

namespace {

struct Allocation {
  std::size_t bytes;
  int device;
};

struct Runtime {
  std::map<const char*, Allocation> buffers;  // device memory by its first byte
  int devices = 1;
  int device = 0;    // the current one
  int running = -1;  // the one that a kernel runs on
  Buffer recent;     // most look-ups ask for the same few
  std::vector<std::string> faults;
  cudaError_t sticky = cudaSuccess;
  cudaError_t last = cudaSuccess;
  std::size_t in_use = 0;
  std::size_t limit = std::numeric_limits<std::size_t>::max();
  std::size_t launches = 0;
  std::map<Stream*, Graph*> capturing;  // streams whose work goes into a graph
};

Runtime& runtime() {
  static Runtime state;
  return state;
}

cudaError_t finish(cudaError_t error) {
  if (error != cudaSuccess) runtime().last = error;
  return error;
}

bool inside_one_buffer(const void* address, std::size_t bytes) {
  const Buffer buffer = buffer_of(address);
  const auto* begin = static_cast<const char*>(address);
  return buffer.begin != nullptr && begin + bytes <= buffer.end;
}

cudaError_t copy(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0) return cudaSuccess;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if ((to_device && !inside_one_buffer(target, bytes)) ||
      (from_device && !inside_one_buffer(source, bytes))) {
    runtime().faults.push_back("copy of " + std::to_string(bytes) +
                               " bytes goes outside its buffer");
    return cudaErrorInvalidValue;
  }
  std::memmove(target, source, bytes);
  return cudaSuccess;
}

// Does it now, or notes it in the graph.
cudaError_t enqueue(cudaStream_t stream, Work work) {
  if (runtime().sticky != cudaSuccess) return finish(runtime().sticky);
  const auto captured = runtime().capturing.find(stream);
  if (captured != runtime().capturing.end()) {
    captured->second->work.push_back(std::move(work));
    return cudaSuccess;
  }
  return finish(work());
}

// For as long as a kernel runs.
class Running {
 public:
  explicit Running(int device) {
    runtime().running = device;
    if (runtime().devices > 1) runtime().recent = {};
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() { runtime().running = -1; }
};

cudaError_t run_kernel(const std::string& kernel, const Shape& shape, int device,
                       const std::function<void()>& body) {
  const Running running(device);
  ++runtime().launches;
  uint3 block;
  for (block.z = 0; block.z < shape.grid.z; ++block.z) {
    for (block.y = 0; block.y < shape.grid.y; ++block.y) {
      for (block.x = 0; block.x < shape.grid.x; ++block.x) {
        if (!the_block().run(kernel, shape, block, body)) {
          runtime().sticky = cudaErrorLaunchFailure;
          return cudaErrorLaunchFailure;
        }
      }
    }
  }
  return cudaSuccess;
}

}  // namespace

const std::vector<std::string>& faults() { return runtime().faults; }
void clear_faults() {
  runtime().faults.clear();
  runtime().sticky = cudaSuccess;
  runtime().last = cudaSuccess;
}
void raise_fault(const std::string& text) { throw Fault{text}; }
void set_memory_limit(std::size_t bytes) { runtime().limit = bytes; }
void set_devices(int count) {
  runtime().devices = count;
  runtime().device = 0;
}
std::size_t memory_in_use() { return runtime().in_use; }
std::size_t launches() { return runtime().launches; }

Buffer buffer_of(const void* address) {
  const auto* byte = static_cast<const char*>(address);
  const Buffer& recent = runtime().recent;
  if (byte != nullptr && byte >= recent.begin && byte < recent.end) return recent;
  auto after = runtime().buffers.upper_bound(byte);
  if (after == runtime().buffers.begin()) return {};
  --after;
  const Buffer found{after->first, after->first + after->second.bytes};
  if (byte >= found.end) return {};
  if (runtime().running >= 0 && runtime().running != after->second.device) return {};
  runtime().recent = found;
  return found;
}

void report_outside(const void* address, std::size_t bytes, const Buffer& buffer) {
  if (buffer.begin == nullptr) {
    raise_fault("access of " + std::to_string(bytes) +
                " bytes through a pointer to no device memory");
  }
  raise_fault("access of " + std::to_string(bytes) + " bytes at offset " +
              std::to_string(static_cast<const char*>(address) - buffer.begin) +
              " of a buffer of " + std::to_string(buffer.end - buffer.begin) + " bytes");
}

void report_shared_outside(std::int64_t index, std::int64_t count) {
  raise_fault("index " + std::to_string(index) + " of a shared array of " + std::to_string(count));
}

cudaError_t submit(const char* kernel, const Shape& shape, cudaStream_t stream,
                   std::function<void()> body) {
  const auto threads = std::size_t{shape.block.x} * shape.block.y * shape.block.z;
  const auto blocks = std::size_t{shape.grid.x} * shape.grid.y * shape.grid.z;
  constexpr std::size_t kSharedLimit = std::size_t{48} << 10U;
  if (threads == 0 || threads > 1024 || blocks == 0 || shape.shared_bytes > kSharedLimit ||
      shape.grid.y > 65535 || shape.grid.z > 65535) {
    return finish(cudaErrorInvalidValue);
  }
  const int device = runtime().device;
  if (stream != nullptr && stream->device != device) return finish(cudaErrorInvalidResourceHandle);
  return enqueue(stream, [name = std::string(kernel), shape, device, work = std::move(body)] {
    return run_kernel(name, shape, device, work);
  });
}

}  // namespace simt

using simt::runtime;

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    default:
      return "error";
  }
}
cudaError_t cudaGetLastError() {
  const cudaError_t error = runtime().sticky != cudaSuccess ? runtime().sticky : runtime().last;
  runtime().last = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() {
  return runtime().sticky != cudaSuccess ? runtime().sticky : runtime().last;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = runtime().devices;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= runtime().devices) return simt::finish(cudaErrorInvalidDevice);
  std::strcpy(properties->name, "SIMT harness");
  properties->multiProcessorCount = 1;
  properties->totalGlobalMem = runtime().limit;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= runtime().devices) return simt::finish(cudaErrorInvalidDevice);
  runtime().device = device;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = runtime().limit;
  *free = runtime().limit - runtime().in_use;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  *pointer = nullptr;
  if (runtime().sticky != cudaSuccess) return simt::finish(runtime().sticky);
  if (bytes > runtime().limit - runtime().in_use) return simt::finish(cudaErrorMemoryAllocation);
  constexpr std::size_t kAlignment = 256;
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  auto* memory = static_cast<char*>(std::aligned_alloc(kAlignment, rounded));
  if (memory == nullptr) return simt::finish(cudaErrorMemoryAllocation);
  std::memset(memory, 0xff, bytes);  // as floats: NaN, so what was never written shows
  runtime().buffers[memory] = {bytes, runtime().device};
  runtime().in_use += bytes;
  *pointer = memory;
  return cudaSuccess;
}
cudaError_t cudaFree(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  const auto found = runtime().buffers.find(static_cast<char*>(pointer));
  if (found == runtime().buffers.end()) return simt::finish(cudaErrorInvalidValue);
  runtime().in_use -= found->second.bytes;
  runtime().buffers.erase(found);
  runtime().recent = {};
  std::free(pointer);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
  *pointer = std::malloc(bytes);
  return *pointer == nullptr ? simt::finish(cudaErrorMemoryAllocation) : cudaSuccess;
}
cudaError_t cudaFreeHost(void* pointer) {
  std::free(pointer);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  return simt::enqueue(stream, [=] { return simt::copy(target, source, bytes, kind); });
}
cudaError_t cudaMemcpyPeerAsync(void* target, int target_device, const void* source,
                                int source_device, std::size_t bytes, cudaStream_t stream) {
  for (const auto& [address, device] :
       {std::pair{static_cast<const void*>(target), target_device}, {source, source_device}}) {
    const auto found = runtime().buffers.find(simt::buffer_of(address).begin);
    if (found == runtime().buffers.end() || found->second.device != device) {
      return simt::finish(cudaErrorInvalidValue);
    }
  }
  return cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, stream);
}
cudaError_t cudaMemcpy(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind) {
  return cudaMemcpyAsync(target, source, bytes, kind, nullptr);
}
cudaError_t cudaMemsetAsync(void* target, int value, std::size_t bytes, cudaStream_t stream) {
  return simt::enqueue(stream, [=] {
    if (!simt::inside_one_buffer(target, bytes)) return cudaErrorInvalidValue;
    std::memset(target, value, bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new simt::Stream;
  (*stream)->device = runtime().device;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (runtime().capturing.contains(stream)) {
    return simt::finish(cudaErrorStreamCaptureUnsupported);
  }
  return simt::finish(runtime().sticky);
}
cudaError_t cudaDeviceSynchronize() { return simt::finish(runtime().sticky); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new simt::Event;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const auto captured = runtime().capturing.find(stream);
  event->capture = captured == runtime().capturing.end() ? nullptr : captured->second;
  return cudaSuccess;
}
// A stream that waits for an event of a capture joins it.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (event->capture != nullptr) runtime().capturing.try_emplace(stream, event->capture);
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return simt::finish(runtime().sticky); }

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  stream->capture = std::make_unique<simt::Graph>();
  runtime().capturing[stream] = stream->capture.get();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = stream->capture.release();
  std::erase_if(runtime().capturing, [&](const auto& entry) { return entry.second == *graph; });
  return *graph == nullptr ? simt::finish(cudaErrorInvalidValue) : cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  *exec = new simt::GraphExec{graph->work};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t) {
  for (const simt::Work& work : exec->work) {
    const cudaError_t error = runtime().sticky != cudaSuccess ? runtime().sticky : work();
    if (error != cudaSuccess) return simt::finish(error);
  }
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return cudaSuccess;
}
