// SPDX-License-Identifier: Apache-2.0
// Tensor-parallel ranks: shards of one device, and one on each of several devices with something in
// NCCL's place that adds in rank order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/backend/cuda/cuda_backend.h"
#include "simt/faults.h"
#include "tests/device/model_parity.h"

namespace driftscope {

// As the module's NCCL would be, but every bit is known: each part rounded, added in rank order in
// f32, rounded once, which is all_reduce=one_shot.
struct CudaGroup {
  std::vector<CudaContext*> ranks;
};

namespace {

using parity::config_of;
using parity::random_checkpoint;
using testing::Contains;
using testing::HasSubstr;

int open_group(CudaContext* const* ranks, int count, CudaGroup** group, CudaMessage*) {
  *group = new CudaGroup{{ranks, ranks + count}};
  return 0;
}
void close_group(CudaGroup* group) { delete group; }
int group_version(const CudaGroup*) { return 22809; }
int group_sum(CudaGroup* group, const CudaGroupSum* request, CudaMessage* message) {
  const CudaTable& table = *driftscope_cuda_table();
  const auto count = static_cast<std::size_t>(request->count);
  const std::size_t bytes = count * sizeof(float);
  std::vector<float> sum(count);
  std::vector<float> part(count);
  for (std::size_t rank = 0; rank < group->ranks.size(); ++rank) {
    const int status =
        table.download(group->ranks[rank], part.data(), request->parts[rank], bytes, message);
    if (status != 0) return status;
    round_span(request->dtype, part.data(), count);
    for (std::size_t i = 0; i < count; ++i) sum[i] = rank == 0 ? part[i] : sum[i] + part[i];
  }
  round_span(request->dtype, sum.data(), count);
  for (std::size_t rank = 0; rank < group->ranks.size(); ++rank) {
    const int status =
        table.upload(group->ranks[rank], request->parts[rank], sum.data(), bytes, message);
    if (status != 0) return status;
  }
  return 0;
}

class CudaRanks : public testing::Test {
 protected:
  CudaRanks() : m_table(*driftscope_cuda_table()) {
    m_table.open_group = open_group;
    m_table.close_group = close_group;
    m_table.group_version = group_version;
    m_table.group_sum = group_sum;
  }
  void TearDown() override {
    for (const std::string& fault : simt::faults()) ADD_FAILURE() << fault;
    EXPECT_EQ(simt::memory_in_use(), 0U) << "device memory is left behind";
    simt::clear_faults();
    simt::set_devices(1);
  }
  [[nodiscard]] std::shared_ptr<const CudaModule> module_with_nccl() const {
    return std::make_shared<const CudaModule>(CudaModule::of(m_table));
  }
  CudaTable m_table;
};

std::shared_ptr<const CudaModule> simt_module() {
  return std::make_shared<const CudaModule>(CudaModule::of(*driftscope_cuda_table()));
}

TEST_F(CudaRanks, ThatCannotShareTheModelAreNamed) {
  CudaResources cuda(simt_module());
  const auto backend =
      cuda.open(random_checkpoint({}), config_of("backend=cuda tensor_parallel=8"));
  ASSERT_FALSE(backend);
  EXPECT_THAT(backend.error().message, HasSubstr("8 ranks cannot share 4 attention heads"));
}

// With the tree-aligned plans any number of ranks gives the same bits; without them it does not.
TEST_F(CudaRanks, GiveTheSameBitsWhereTheirTreeIsOne) {
  const auto checkpoint = random_checkpoint({});
  CudaResources cuda(simt_module());
  const auto bits = [&](const std::string& settings) {
    const auto backend = cuda.open(checkpoint, config_of("backend=cuda " + settings));
    return parity::transcript(**backend);
  };
  const std::string invariant = " tensor_parallel_invariant=true all_reduce=tree";
  const auto one = bits("tensor_parallel=1" + invariant);
  EXPECT_EQ(one, bits("tensor_parallel=2" + invariant));
  EXPECT_EQ(one, bits("tensor_parallel=4" + invariant));
  EXPECT_NE(bits("tensor_parallel=1"), bits("tensor_parallel=4 all_reduce=ring reduce_dtype=bf16"));
}

TEST_F(CudaRanks, AreInThePlans) {
  const auto checkpoint = random_checkpoint({});
  CudaResources cuda(simt_module());
  const auto backend = cuda.open(
      checkpoint, config_of("backend=cuda tensor_parallel=4 all_reduce=ring reduce_dtype=bf16"));
  ASSERT_TRUE(backend);
  static_cast<void>(parity::transcript(**backend));
  const std::vector<std::string> plans = (*backend)->plans();
  EXPECT_THAT(plans, testing::Contains(HasSubstr("decode q_proj m=2 n=8 k=32 ranks=4: lanes=32")));
  EXPECT_THAT(plans, testing::Contains(HasSubstr("decode all_reduce ring ranks=4 dtype=bf16")));
}

// The shares of o and down run on a GPU each, whose kernels find no other's memory.
TEST_F(CudaRanks, OnAGpuEachGiveTheBitsOfShards) {
  simt::set_devices(4);
  for (const std::string settings :
       {"tensor_parallel=4", "tensor_parallel=2 reduce_dtype=bf16 cuda_streams=3",
        "tensor_parallel=4 reduce_dtype=f16 quantisation=int4_asymmetric quantisation_group=16",
        "tensor_parallel=2 quantisation=int8_w8a8 matmul_split_k=3 split_combine=arrival"}) {
    const auto checkpoint = random_checkpoint({.type = "qwen2"});
    CudaResources shards(simt_module());
    CudaResources gpus(module_with_nccl());
    const auto one = shards.open(checkpoint, config_of("backend=cuda " + settings));
    const auto several =
        gpus.open(checkpoint, config_of("backend=cuda all_reduce=nccl " + settings));
    ASSERT_TRUE(one) << one.error().message;
    ASSERT_TRUE(several) << several.error().message;
    EXPECT_EQ(parity::transcript(**one), parity::transcript(**several)) << settings;
    EXPECT_THAT((*several)->plans(), Contains(HasSubstr("decode all_reduce nccl 2.28.9")));
  }
}

TEST_F(CudaRanks, WithoutNcclOrGpusSaySo) {
  const auto checkpoint = random_checkpoint({});
  const RunConfig config = config_of("backend=cuda tensor_parallel=4 all_reduce=nccl");
  const auto without = CudaResources(simt_module()).open(checkpoint, config);
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().message, HasSubstr("knob all_reduce: this CUDA module was built"));
  simt::set_devices(3);
  const auto too_few = CudaResources(module_with_nccl()).open(checkpoint, config);
  ASSERT_FALSE(too_few);
  EXPECT_THAT(too_few.error().message,
              HasSubstr("nccl needs a GPU for each of the 4 ranks, and this machine has 3"));
}

}  // namespace
}  // namespace driftscope
