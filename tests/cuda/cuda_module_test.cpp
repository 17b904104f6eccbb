// SPDX-License-Identifier: Apache-2.0
// The loader must be calm on any machine; the device must give the host's bits where there is one.
#include "engine/backend/cuda/cuda_module.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "kernels/matmul/matmul.h"
#include "tests/kernels/matmul_test_support.h"

namespace driftscope {
namespace {

const std::string kModule = DRIFTSCOPE_BINARY_DIR "/app/cli/libdriftscope_cuda.so";

TEST(CudaModule, AMissingFileIsOneClearLine) {
  const Result<CudaModule> module = CudaModule::load("/nowhere/libdriftscope_cuda.so");
  ASSERT_FALSE(module.has_value());
  EXPECT_EQ(module.error().kind, ErrorKind::engine);
  EXPECT_NE(module.error().message.find("/nowhere/libdriftscope_cuda.so"), std::string::npos);
  EXPECT_EQ(module.error().message.find('\n'), std::string::npos);
}

// A real shared library, but not ours.
TEST(CudaModule, AnotherLibraryIsRefused) {
  const Result<CudaModule> module = CudaModule::load("libm.so.6");
  ASSERT_FALSE(module.has_value());
  EXPECT_NE(module.error().message.find("not the CUDA module"), std::string::npos);
}

TEST(CudaModule, TheSummaryIsOneLineEverywhere) {
  const std::string summary = cuda_summary();
  EXPECT_FALSE(summary.empty());
  EXPECT_EQ(summary.find('\n'), std::string::npos);
}

TEST(CudaModule, ADriverOrDeviceThatIsMissingIsNamed) {
  if (!std::filesystem::exists(kModule)) GTEST_SKIP() << "this build has no CUDA module";
  const Result<CudaModule> module = CudaModule::load(kModule);
  ASSERT_TRUE(module.has_value()) << module.error().message << " " << module.error().detail;
  const Result<std::string> runtime = module->runtime_version();
  ASSERT_TRUE(runtime.has_value());
  EXPECT_NE(runtime->find('.'), std::string::npos);
  const Result<std::vector<CudaDevice>> devices = module->devices();
  if (devices) {
    for (const CudaDevice& device : *devices) {
      EXPECT_FALSE(device.name.empty());
      EXPECT_GT(device.multiprocessors, 0);
      EXPECT_GT(device.memory_bytes, 0U);
    }
  } else {
    EXPECT_EQ(devices.error().message.rfind("no CUDA", 0), 0U) << devices.error().message;
  }
}

TEST(CudaModule, ThePortableMatmulGivesTheHostsBits) {
  if (!std::filesystem::exists(kModule)) GTEST_SKIP() << "this build has no CUDA module";
  const Result<CudaModule> module = CudaModule::load(kModule);
  ASSERT_TRUE(module.has_value()) << module.error().message;
  const Result<std::vector<CudaDevice>> devices = module->devices();
  if (!devices || devices->empty()) GTEST_SKIP() << "no CUDA device on this machine";
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    for (const SplitCombine combine :
         {SplitCombine::sequential, SplitCombine::tree, SplitCombine::arrival}) {
      for (const int split : {1, 3, 64}) {
        const test::MatmulCase shape{.m = 5, .n = 23, .k = 101, .dtype = dtype, .bias = true};
        const test::MatmulInputs inputs(shape);
        const ReductionPlan plan{.lanes = 32, .split_k = split, .split_combine = combine};
        std::vector<float> host(inputs.outputs());
        SerialParallel serial;
        MatmulArguments arguments = inputs.arguments(plan, host.data());
        arguments.output_dtype = Dtype::bf16;
        matmul(arguments, detect_isa(), serial);
        std::vector<float> device(inputs.outputs());
        const std::vector<int> order = arrival_order(plan.arrival_seed, split);
        const DriftscopeCudaMatmul request{.x = arguments.x,
                                           .m = shape.m,
                                           .weight = arguments.weight.data,
                                           .weight_dtype = static_cast<int>(dtype),
                                           .n = shape.n,
                                           .k = shape.k,
                                           .bias = arguments.bias,
                                           .y = device.data(),
                                           .output_dtype = static_cast<int>(Dtype::bf16),
                                           .split_k = split,
                                           .split_combine = static_cast<int>(combine),
                                           .order = order.data()};
        const Result<void> done = module->matmul(request);
        ASSERT_TRUE(done.has_value()) << done.error().message;
        EXPECT_TRUE(test::same_bits(host, device)) << to_string(plan);
      }
    }
  }
}

}  // namespace
}  // namespace driftscope
