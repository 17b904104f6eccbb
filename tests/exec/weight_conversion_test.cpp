// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/host/weight_conversion.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <vector>

#include "engine/backend/host/thread_pool.h"

namespace driftscope {
namespace {

// Longer than two tasks, with an end inside the third.
constexpr std::int64_t kElements = (std::int64_t{2} << 20) + 12345;

class Counting final : public TensorDecoder {
 public:
  void decode(std::int64_t first, std::int64_t count, float* values) const override {
    for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(first + i);
  }
  [[nodiscard]] std::string format() const override { return "counting"; }
  [[nodiscard]] std::size_t stored_bytes() const override { return 0; }
};

TEST(WeightConversion, ThreadsChangeNoByte) {
  TensorView decoded{.shape = {1, kElements}, .name = "counting"};
  decoded.decoder = std::make_shared<Counting>();
  std::vector<std::uint16_t> stored(kElements);
  for (std::size_t i = 0; i < stored.size(); ++i) stored[i] = static_cast<std::uint16_t>(i * 7);
  TensorView plain{
      .data = stored.data(), .dtype = Dtype::bf16, .shape = {1, kElements}, .name = "plain"};
  ThreadPool pool(3);
  for (const TensorView* view : std::initializer_list<const TensorView*>{&decoded, &plain}) {
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
      std::vector<std::byte> expected(static_cast<std::size_t>(kElements) * dtype_size(dtype));
      std::vector<std::byte> actual(expected.size());
      view->convert(dtype, expected.data());
      convert_weights(*view, dtype, actual.data(), &pool);
      EXPECT_TRUE(actual == expected) << view->name << " as " << dtype_name(dtype);
    }
  }
  std::vector<float> values(kElements);
  convert_weights(decoded, Dtype::f32, reinterpret_cast<std::byte*>(values.data()), nullptr);
  EXPECT_EQ(values[kElements - 1], static_cast<float>(kElements - 1));
}

}  // namespace
}  // namespace driftscope
