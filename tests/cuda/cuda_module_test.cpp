// SPDX-License-Identifier: Apache-2.0
// The loader must be calm on any machine; the device must give the host's bits where there is one.
#include "engine/backend/cuda/cuda_module.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/device/parity.h"

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

// The whole grid of the SIMT harness's test, on the device.
TEST(CudaModule, TheDeviceGivesTheHostsBits) {
  if (!std::filesystem::exists(kModule)) GTEST_SKIP() << "this build has no CUDA module";
  const Result<CudaModule> module = CudaModule::load(kModule);
  ASSERT_TRUE(module.has_value()) << module.error().message;
  const Result<std::vector<CudaDevice>> devices = module->devices();
  if (!devices || devices->empty()) GTEST_SKIP() << "no CUDA device on this machine";
  parity::Device device{.table = &module->table(), .name = devices->front().name};
  const CudaContextOptions options{};
  CudaMessage message{};
  ASSERT_EQ(device.table->open(&options, &device.context, &message), 0) << message.text;
  parity::run_all(device, [](const parity::Line& line) {
    EXPECT_GT(line.cases, 0);
    EXPECT_EQ(line.equal, line.cases) << line.operation << ": " << line.first_difference;
  });
  device.table->close(device.context);
}

}  // namespace
}  // namespace driftscope
