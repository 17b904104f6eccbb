// SPDX-License-Identifier: Apache-2.0
// The harness must catch what it promises to: each kernel here has one planted fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/plan/device.cuh"
#include "tests/simt/device_memory.h"

namespace driftscope::cuda {
namespace {

using testing::HasSubstr;

Global<float> as_global(float* pointer) { return Global<float>(pointer); }

// One block; the first fault that the launch has, or "".
template <class... Arguments>
std::string fault_of(void (*kernel)(Arguments...), unsigned threads, Arguments... arguments) {
  simt::clear_faults();
  const cudaError_t error =
      launch(kernel, "kernel", {dim3(1), dim3(threads), 1024}, nullptr, arguments...);
  const std::string first = simt::faults().empty() ? "" : simt::faults().front();
  EXPECT_EQ(error == cudaSuccess, first.empty());
  EXPECT_EQ(cudaDeviceSynchronize(), error) << "a crashed kernel's error is sticky";
  simt::clear_faults();
  return first;
}

__global__ void sum_of_warp(float* out) {
  const Global<float> y(out);
  float sum = static_cast<float>(threadIdx.x);
  for (int d = 16; d >= 1; d /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, d);
  y[threadIdx.x] = sum;
}

TEST(SimtHarness, AShuffleSumIsTheSumInEveryThread) {
  const test::DeviceArray<float> out(64);
  EXPECT_EQ(fault_of(sum_of_warp, 64, out.data()), "");
  const std::vector<float> y = out.read();
  EXPECT_THAT(std::vector<float>(y.begin(), y.begin() + 32), testing::Each(496.0F));
  EXPECT_THAT(std::vector<float>(y.begin() + 32, y.end()), testing::Each(1520.0F));
}

__global__ void reversed_by_shared_memory(float* out) {
  DRIFTSCOPE_SHARED(float, values, 64);
  values[threadIdx.x] = static_cast<float>(threadIdx.x);
  __syncthreads();
  as_global(out)[threadIdx.x] = values[63 - threadIdx.x];
}

TEST(SimtHarness, BarriersMakeSharedValuesVisible) {
  const test::DeviceArray<float> out(64);
  for (const simt::Order order : {simt::Order::rising, simt::Order::falling}) {
    simt::set_order(order);
    EXPECT_EQ(fault_of(reversed_by_shared_memory, 64, out.data()), "");
    const std::vector<float> y = out.read();
    for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(y[i], static_cast<float>(63 - i));
  }
  simt::set_order(simt::Order::rising);
}

__global__ void votes_and_down_shuffle(unsigned* out) {
  const int lane = static_cast<int>(threadIdx.x);
  const Global<unsigned> y(out);
  const unsigned odd = __ballot_sync(0xffffffffU, lane & 1);
  const int down = __shfl_down_sync(0xffffffffU, lane, 3);
  const int any = __any_sync(0xffffffffU, lane == 40);
  const int segment = __shfl_sync(0xffffffffU, lane, 1, 8);
  if (lane == 30) {
    y[0] = odd;
    y[1] = static_cast<unsigned>(down);
    y[2] = static_cast<unsigned>(any);
    y[3] = static_cast<unsigned>(segment);
  }
}

TEST(SimtHarness, VotesAndShufflesFollowCudasRules) {
  const test::DeviceArray<unsigned> out(4);
  EXPECT_EQ(fault_of(votes_and_down_shuffle, 32, out.data()), "");
  EXPECT_EQ(out.read(), (std::vector<unsigned>{0xaaaaaaaaU, 30, 0, 25}));
}

__global__ void barrier_by_some(float*) {
  if (threadIdx.x < 40) __syncthreads();
}
TEST(SimtHarness, ABarrierReachedByPartOfTheBlockIsReported) {
  EXPECT_THAT(fault_of(barrier_by_some, 64, static_cast<float*>(nullptr)),
              HasSubstr("reached by 40 of 64 threads"));
}

__global__ void two_barriers(float*) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}
TEST(SimtHarness, TwoDifferentBarriersAreNotOne) {
  EXPECT_THAT(fault_of(two_barriers, 64, static_cast<float*>(nullptr)), HasSubstr("while thread"));
}

__global__ void shuffle_by_some(float*) {
  if (threadIdx.x % 2 == 0) static_cast<void>(__shfl_xor_sync(0xffffffffU, 1.0F, 2));
}
TEST(SimtHarness, AShuffleReachedByPartOfItsMaskIsReported) {
  EXPECT_THAT(fault_of(shuffle_by_some, 32, static_cast<float*>(nullptr)),
              HasSubstr("reached by 16 of 32 threads"));
}

__global__ void shuffle_after_exit(float*) {
  if (threadIdx.x == 31) return;
  static_cast<void>(__shfl_down_sync(0xffffffffU, 1.0F, 1));
}
TEST(SimtHarness, AShuffleThatNamesAThreadThatLeftIsReported) {
  EXPECT_THAT(fault_of(shuffle_after_exit, 32, static_cast<float*>(nullptr)),
              HasSubstr("reached by 31 of 32 threads"));
}

__global__ void shuffle_from_outside(float*) {
  if (threadIdx.x < 16) static_cast<void>(__shfl_sync(0x0000ffffU, 1.0F, 20));
}
TEST(SimtHarness, AShuffleFromALaneOutsideTheMaskIsReported) {
  EXPECT_THAT(fault_of(shuffle_from_outside, 32, static_cast<float*>(nullptr)),
              HasSubstr("reads lane 20, which is not in the mask"));
}

__global__ void write_at(float* out, int index) { as_global(out)[index] = 1.0F; }
TEST(SimtHarness, AnIndexOutsideABufferIsReported) {
  const test::DeviceArray<float> out(10);
  EXPECT_EQ(fault_of(write_at, 1, out.data(), 9), "");
  EXPECT_THAT(fault_of(write_at, 1, out.data(), 10), HasSubstr("offset 40 of a buffer of 40"));
  EXPECT_THAT(fault_of(write_at, 1, out.data(), -1), HasSubstr("offset -4"));
  EXPECT_THAT(fault_of(write_at, 1, static_cast<float*>(nullptr), 0),
              HasSubstr("no device memory"));
  float host = 0;
  EXPECT_THAT(fault_of(write_at, 1, &host, 0), HasSubstr("no device memory"));
}

TEST(SimtHarness, AKernelStaysOnItsGpu) {
  simt::set_devices(2);
  const test::DeviceArray<float> on_first(4);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_THAT(fault_of(write_at, 1, on_first.data(), 0), HasSubstr("no device memory"));
  cudaStream_t of_second = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&of_second, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(fault_of(write_at, 1, on_first.data(), 0), "");
  EXPECT_EQ(launch(write_at, "write_at", {dim3(1), dim3(1), 0}, of_second, on_first.data(), 0),
            cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  cudaStreamDestroy(of_second);
  simt::clear_faults();
  simt::set_devices(1);
}

__global__ void read_unwritten(float* out) {
  DRIFTSCOPE_SHARED(float, values, 8);
  if (threadIdx.x < 7) values[threadIdx.x] = 1.0F;
  __syncthreads();
  as_global(out)[threadIdx.x] = values[threadIdx.x];
}
TEST(SimtHarness, AnUninitialisedSharedReadIsReported) {
  const test::DeviceArray<float> out(8);
  const std::string fault = fault_of(read_unwritten, 8, out.data());
  EXPECT_THAT(fault, HasSubstr("thread 7"));
  EXPECT_THAT(fault, HasSubstr("read before any thread has written it"));
}

__global__ void read_without_barrier(float* out) {
  DRIFTSCOPE_SHARED(float, values, 32);
  values[threadIdx.x] = 1.0F;
  as_global(out)[threadIdx.x] = values[threadIdx.x ^ 1U];
}
TEST(SimtHarness, ASharedReadWithoutABarrierIsReported) {
  const test::DeviceArray<float> out(32);
  EXPECT_NE(fault_of(read_without_barrier, 32, out.data()), "");
}

__global__ void overwrite_without_barrier(float* out) {
  DRIFTSCOPE_SHARED(float, values, 1);
  if (threadIdx.x == 0) values[0] = 1.0F;
  __syncthreads();
  const float read = values[0];
  if (threadIdx.x == 33) values[0] = 2.0F;
  as_global(out)[threadIdx.x] = read;
}
TEST(SimtHarness, ASharedWriteThatOvertakesAReadIsReported) {
  const test::DeviceArray<float> out(64);
  EXPECT_THAT(fault_of(overwrite_without_barrier, 64, out.data()),
              HasSubstr("read by another thread without a barrier before this write"));
}

__global__ void warp_barrier_is_enough(float* out) {
  DRIFTSCOPE_SHARED(float, values, 32);
  values[threadIdx.x] = static_cast<float>(threadIdx.x);
  __syncwarp();
  const float read = values[threadIdx.x ^ 1U];
  __syncwarp();
  values[threadIdx.x] = read;
  as_global(out)[threadIdx.x] = read;
}
TEST(SimtHarness, AWarpBarrierOrdersTheThreadsOfOneWarp) {
  const test::DeviceArray<float> out(32);
  EXPECT_EQ(fault_of(warp_barrier_is_enough, 32, out.data()), "");
  EXPECT_EQ(out.read()[4], 5.0F);
}

__global__ void shared_index(int index) {
  DRIFTSCOPE_DYNAMIC_SHARED(float, values, 0, 4);
  values[index] = 1.0F;
}
TEST(SimtHarness, AnIndexOutsideASharedArrayIsReported) {
  EXPECT_EQ(fault_of(shared_index, 1, 3), "");
  EXPECT_THAT(fault_of(shared_index, 1, 4), HasSubstr("index 4 of a shared array of 4"));
}

TEST(SimtHarness, ACopyOutsideItsBufferFails) {
  const test::DeviceArray<float> out(4);
  std::vector<float> host(5);
  EXPECT_EQ(cudaMemcpy(out.data(), host.data(), 20, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(simt::faults().size(), 1U);
  simt::clear_faults();
}

TEST(SimtHarness, ACapturedGraphDoesItsWorkAtEachLaunch) {
  const test::DeviceArray<float> out(2);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  const std::size_t before = simt::launches();
  EXPECT_EQ(launch(write_at, "write_at", {dim3(1), dim3(1), 0}, stream, out.data(), 1),
            cudaSuccess);
  EXPECT_EQ(simt::launches(), before);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  EXPECT_EQ(simt::launches(), before + 2);
  EXPECT_EQ(out.read()[1], 1.0F);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

}  // namespace
}  // namespace driftscope::cuda
