// SPDX-License-Identifier: Apache-2.0
// Strided views against index arithmetic by hand.
#include "engine/model/tensor_transforms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <utility>

namespace driftscope {
namespace {

using ::testing::ElementsAre;

// 0, 1, 2 …, so that a value is its own place in the file.
struct Counted {
  explicit Counted(std::vector<std::int64_t> shape) {
    view.shape = std::move(shape);
    values.resize(static_cast<std::size_t>(view.elements()));
    std::iota(values.begin(), values.end(), 0.0F);
    view.data = values.data();
    view.name = "counted";
  }
  std::vector<float> values;
  TensorView view;
};

std::vector<float> values_of(const TensorView& view) {
  std::vector<float> values(static_cast<std::size_t>(view.elements()));
  view.values(0, view.elements(), values.data());
  return values;
}

// Every way of cutting a tensor into two reads gives the same values.
void expect_same_in_pieces(const TensorView& view) {
  const std::vector<float> whole = values_of(view);
  for (std::int64_t cut = 0; cut <= view.elements(); ++cut) {
    std::vector<float> pieces(whole.size());
    view.values(0, cut, pieces.data());
    view.values(cut, view.elements() - cut, pieces.data() + cut);
    EXPECT_EQ(pieces, whole) << cut;
  }
}

TEST(StridedView, RowsOfAPlainTensorAreAPointerIntoIt) {
  const Counted counted({5, 3});
  StridedView strided(counted.view);
  strided.slice(2, 2);
  const TensorView view = std::move(strided).finish({2, 3});
  EXPECT_EQ(view.data, counted.values.data() + 6);
  EXPECT_EQ(view.decoder, nullptr);
  EXPECT_THAT(values_of(view), ElementsAre(6, 7, 8, 9, 10, 11));
}

TEST(StridedView, TransposesAndSlicesColumns) {
  const Counted counted({2, 4});  // [inputs, outputs]
  StridedView strided(counted.view);
  strided.transpose();
  strided.slice(1, 2);  // outputs 1 and 2
  const TensorView view = std::move(strided).finish({2, 2});
  EXPECT_THAT(values_of(view), ElementsAre(1, 5, 2, 6));
  EXPECT_EQ(view.decoder->format(), "f32, transposed");
  EXPECT_EQ(view.decoder->stored_bytes(), 16U);
  expect_same_in_pieces(view);
}

TEST(StridedView, TakesEverySecondColumnOfOneExpert) {
  const Counted counted({2, 3, 4});  // [expert, inputs, gate and up in turns]
  for (const std::int64_t turn : {0, 1}) {
    StridedView strided(counted.view);
    strided.pick(1);
    strided.transpose();
    strided.every_second(turn);
    const TensorView view = std::move(strided).finish({2, 3});
    const auto first = static_cast<float>(12 + turn);
    EXPECT_THAT(values_of(view),
                ElementsAre(first, first + 4, first + 8, first + 2, first + 6, first + 10));
    expect_same_in_pieces(view);
  }
}

TEST(StridedView, UnpairsTheRowsOfEachHead) {
  const Counted counted({8, 1});  // two heads of four rows
  StridedView strided(counted.view);
  strided.unpair_rows(4);
  const TensorView view = std::move(strided).finish({8, 1});
  EXPECT_THAT(values_of(view), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  expect_same_in_pieces(view);
}

TEST(StridedView, AddsOneInF32WhateverTheFileHolds) {
  const std::vector<std::uint16_t> halves{0x3F80, 0xBF00};  // bf16: 1 and -0.5
  StridedView strided({.data = halves.data(), .dtype = Dtype::bf16, .shape = {2}, .name = "norm"});
  strided.add_one();
  const TensorView view = std::move(strided).finish({2});
  EXPECT_EQ(view.dtype, Dtype::f32);
  EXPECT_THAT(values_of(view), ElementsAre(2.0F, 0.5F));
}

TEST(StridedView, TwoTransposesAreTheFileAgain) {
  const Counted counted({2, 3, 4});
  StridedView outer(counted.view);
  outer.transpose(1);
  StridedView inner(std::move(outer).finish({2, 4, 3}));
  inner.pick(1);
  inner.transpose();
  const TensorView view = std::move(inner).finish({3, 4});
  EXPECT_EQ(view.data, counted.values.data() + 12);  // no decoder is left
  EXPECT_EQ(view.decoder, nullptr);
}

TEST(StridedView, ReadsThroughADecoderOfAnotherFormat) {
  class Squares final : public TensorDecoder {
   public:
    void decode(std::int64_t first, std::int64_t count, float* values) const override {
      for (std::int64_t i = 0; i < count; ++i) {
        values[i] = static_cast<float>((first + i) * (first + i));
      }
    }
    std::string format() const override { return "squares"; }
    std::size_t stored_bytes() const override { return 60; }
  };
  StridedView strided({.shape = {3, 2}, .name = "squares", .decoder = std::make_shared<Squares>()});
  strided.transpose();
  strided.slice(1, 1);
  const TensorView view = std::move(strided).finish({1, 3});
  EXPECT_THAT(values_of(view), ElementsAre(1, 9, 25));
  EXPECT_EQ(view.decoder->format(), "squares, transposed");
  EXPECT_EQ(view.decoder->stored_bytes(), 30U);  // half of the elements
}

}  // namespace
}  // namespace driftscope
