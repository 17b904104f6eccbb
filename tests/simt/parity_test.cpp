// SPDX-License-Identifier: Apache-2.0
// Scalar = AVX2 = AVX-512 = the .cu sources in the harness, bit for bit.
#include "tests/device/parity.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "engine/backend/cuda/cuda_interface.h"
#include "simt/faults.h"

namespace driftscope {
namespace {

class SimtParity : public testing::Test {
 protected:
  void SetUp() override {
    CudaMessage message{};
    const CudaContextOptions options{};
    m_device.table = driftscope_cuda_table();
    m_device.name = "simt";
    ASSERT_EQ(m_device.table->open(&options, &m_device.context, &message), 0) << message.text;
  }
  void TearDown() override {
    m_device.table->close(m_device.context);
    EXPECT_EQ(simt::memory_in_use(), 0U);
    simt::clear_faults();
  }
  static void expect_same_bits(const parity::Line& line) {
    std::printf("%-26s %-32s %5lld cases\n", line.operation.c_str(), line.variants.c_str(),
                static_cast<long long>(line.cases));
    EXPECT_GT(line.cases, 0);
    EXPECT_EQ(line.equal, line.cases) << line.operation << ": " << line.first_difference;
  }
  void expect_no_faults() {
    for (const std::string& fault : simt::faults()) ADD_FAILURE() << fault;
  }
  parity::Device m_device;
};

TEST_F(SimtParity, Matmul) {
  parity::matmul_lines(m_device, expect_same_bits);
  expect_no_faults();
}

TEST_F(SimtParity, QuantisedMatmul) {
  parity::quantised_lines(m_device, expect_same_bits);
  expect_no_faults();
}

TEST_F(SimtParity, RowOperations) {
  parity::row_lines(m_device, expect_same_bits);
  expect_no_faults();
}

TEST_F(SimtParity, ExpertsAndRanks) {
  parity::expert_and_rank_lines(m_device, expect_same_bits);
  expect_no_faults();
}

TEST_F(SimtParity, Attention) {
  parity::attention_lines(m_device, expect_same_bits);
  expect_no_faults();
}

// Threads of a block run in the opposite order between barriers: no bit may depend on it.
TEST_F(SimtParity, TheOrderOfThreadsDoesNotMatter) {
  simt::set_order(simt::Order::falling);
  parity::attention_lines(m_device, expect_same_bits);
  parity::row_lines(m_device, expect_same_bits);
  parity::expert_and_rank_lines(m_device, expect_same_bits);
  simt::set_order(simt::Order::rising);
  expect_no_faults();
}

}  // namespace
}  // namespace driftscope
