// SPDX-License-Identifier: Apache-2.0
// A whole model on the CUDA backend, its kernels in the harness: the host backend's logits and
// taps, bit for bit, under every knob that both honour.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/backend/cuda/cuda_backend.h"
#include "simt/faults.h"
#include "tests/device/model_parity.h"

namespace driftscope {
namespace {

using parity::config_of;
using parity::random_checkpoint;
using testing::HasSubstr;

std::shared_ptr<const CudaModule> simt_module() {
  return std::make_shared<const CudaModule>(CudaModule::of(*driftscope_cuda_table()));
}

std::vector<TokenId> tokens(std::initializer_list<int> ids) {
  std::vector<TokenId> result;
  for (const int id : ids) result.push_back(TokenId{id});
  return result;
}

class WholeModel : public testing::TestWithParam<parity::ModelCase> {
 protected:
  void TearDown() override {
    for (const std::string& fault : simt::faults()) ADD_FAILURE() << fault;
    EXPECT_EQ(simt::memory_in_use(), 0U) << "device memory is left behind";
    simt::clear_faults();
  }
};

TEST_P(WholeModel, TheDeviceGivesTheHostsBits) {
  const parity::ModelResult result = parity::run_case(GetParam(), simt_module());
  EXPECT_GT(result.values, 5000U);
  EXPECT_EQ(result.equal, result.values) << result.name;
}
INSTANTIATE_TEST_SUITE_P(Configurations, WholeModel, testing::ValuesIn(parity::model_cases()));

TEST_F(WholeModel, AGraphIsCapturedAndReplayed) {
  const auto checkpoint = random_checkpoint({});
  CudaResources cuda(simt_module());
  const auto backend = cuda.open(checkpoint, config_of("backend=cuda cuda_graph=true"));
  ASSERT_TRUE(backend);
  static_cast<void>(parity::transcript(**backend));
  EXPECT_THAT((*backend)->plans(), testing::Contains(HasSubstr("CUDA graph: 2 rows")));
  EXPECT_THAT((*backend)->plans(), testing::Contains(HasSubstr("decode q_proj m=2 n=32 k=32: "
                                                               "lanes=32 split_k=1")));
}

TEST_F(WholeModel, WhatDoesNotFitIsNamed) {
  const auto checkpoint = random_checkpoint({});
  CudaResources cuda(simt_module());
  simt::set_memory_limit(20000);  // less than the weights
  const auto backend = cuda.open(checkpoint, config_of("backend=cuda"));
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().kind, ErrorKind::engine);
  EXPECT_THAT(backend.error().message, HasSubstr("out of device memory: the weights of layer"));
  simt::set_memory_limit(std::size_t{1} << 20U);
  const auto fits = cuda.open(checkpoint, config_of("backend=cuda"));
  ASSERT_TRUE(fits) << fits.error().message;
  const auto cache = (*fits)->create_cache(1 << 20U);
  ASSERT_FALSE(cache);
  EXPECT_THAT(cache.error().message, HasSubstr("the KV cache of 1048576 tokens needs"));
  EXPECT_TRUE((*fits)->create_cache(8)) << "memory can still be had";
  simt::set_memory_limit(std::size_t{1} << 40U);
}

TEST_F(WholeModel, AStoppedCallLeavesTheCachesAsTheyWere) {
  const auto checkpoint = random_checkpoint({});
  CudaResources cuda(simt_module());
  const auto backend = cuda.open(checkpoint, config_of("backend=cuda"));
  ASSERT_TRUE(backend);
  auto cache = *(*backend)->create_cache(8);
  const auto prompt = tokens({1, 2, 3});
  const std::vector<BatchSequence> sequences{{cache.get(), prompt, 1, false}};
  std::stop_source source;
  source.request_stop();
  const auto done = (*backend)->forward({.sequences = sequences}, source.get_token());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, ErrorKind::interrupted);
  EXPECT_EQ(cache->length(), 0);
  EXPECT_TRUE((*backend)->forward({.sequences = sequences}, {}));
  EXPECT_EQ(cache->length(), 3);
}

TEST(CudaSession, AFailedDeviceSaysSoFromThenOn) {
  auto session = CudaSession::open(simt_module(), 1);
  ASSERT_TRUE(session);
  CudaSession& device = **session;
  EXPECT_TRUE(device.status());
  float outside = 0;
  device.run(device.table().round, DeviceRound{&outside, 4, Dtype::bf16});  // no device memory
  const auto first = device.status();
  ASSERT_FALSE(first);
  EXPECT_THAT(first.error().message, HasSubstr("rounding: unspecified launch failure"));
  device.call(device.table().synchronize);
  const auto later = device.status();
  ASSERT_FALSE(later);
  EXPECT_THAT(later.error().message, HasSubstr("the device failed earlier, in rounding"));
  EXPECT_FALSE(device.allocate("more", 16));
  simt::clear_faults();
}

TEST(CudaSession, AMissingDriverOrDeviceIsNamed) {
  CudaTable table = *driftscope_cuda_table();
  table.get_versions = [](CudaVersions* versions, CudaMessage*) {
    *versions = {.driver = 0, .runtime = 13000};
    return 0;
  };
  const auto no_driver =
      CudaSession::open(std::make_shared<const CudaModule>(CudaModule::of(table)), 1);
  ASSERT_FALSE(no_driver);
  EXPECT_THAT(no_driver.error().message, HasSubstr("no CUDA driver"));
  table.get_versions = driftscope_cuda_table()->get_versions;
  table.device_count = [](int* count, CudaMessage*) {
    *count = 0;
    return 0;
  };
  const auto no_device =
      CudaSession::open(std::make_shared<const CudaModule>(CudaModule::of(table)), 1);
  ASSERT_FALSE(no_device);
  EXPECT_THAT(no_device.error().message, HasSubstr("no CUDA device"));
}

TEST(CudaBackend, WhatAGraphCannotHoldIsNamed) {
  parity::RandomModel mixture;
  mixture.moe.experts = 4;
  mixture.moe.chosen = 2;
  mixture.moe.intermediate = 8;
  CudaResources cuda(simt_module());
  const auto backend =
      cuda.open(random_checkpoint(mixture), config_of("backend=cuda cuda_graph=true"));
  ASSERT_FALSE(backend);
  EXPECT_THAT(backend.error().message, HasSubstr("knob cuda_graph: in a mixture of experts"));
}

TEST(CudaVendor, AModuleWithoutCublasSaysSo) {
  const auto checkpoint = random_checkpoint({});
  CudaResources cuda(simt_module());
  const auto backend = cuda.open(checkpoint, config_of("backend=cuda matmul_policy=vendor"));
  ASSERT_TRUE(backend);
  auto cache = *(*backend)->create_cache(8);
  const auto prompt = tokens({1, 2, 3});
  const std::vector<BatchSequence> sequences{{cache.get(), prompt, 1, false}};
  const auto done = (*backend)->forward({.sequences = sequences}, {});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("built without cuBLAS"));
}

TEST(CudaVendor, QuantisedWeightsAreRefusedByName) {
  CudaResources cuda(simt_module());
  const auto backend =
      cuda.open(random_checkpoint({}),
                config_of("backend=cuda matmul_policy=vendor quantisation=fp8_tensor"));
  ASSERT_FALSE(backend);
  EXPECT_THAT(backend.error().message, HasSubstr("knob matmul_policy: vendor"));
}

}  // namespace
}  // namespace driftscope
