// SPDX-License-Identifier: Apache-2.0
#include "kernels/allreduce/all_reduce.h"

#include <array>
#include <cmath>
#include <limits>

#include "operation_support.h"

namespace driftscope::testing {
namespace {

using Messages = std::vector<std::vector<float>>;  // [ranks][elements]

// What every rank holds afterwards; fails if two ranks hold different bits.
std::vector<float> reduced(AllReduceOrder order, Messages messages, Dtype dtype,
                           Parallel& parallel) {
  std::vector<float*> ranks;
  for (auto& message : messages) ranks.push_back(message.data());
  all_reduce(
      order,
      {.ranks = ranks, .elements = static_cast<std::int64_t>(messages[0].size()), .dtype = dtype},
      parallel);
  for (const auto& message : messages) EXPECT_EQ(bit_difference(message, messages[0]), "");
  return messages[0];
}

std::vector<float> reduced(AllReduceOrder order, const Messages& messages,
                           Dtype dtype = Dtype::f32) {
  SerialParallel serial;
  return reduced(order, messages, dtype, serial);
}

// The same part at every element of a rank's message.
Messages constant(const std::vector<float>& parts, std::size_t elements) {
  Messages messages;
  for (const float part : parts) messages.emplace_back(elements, part);
  return messages;
}

Messages random_messages(std::size_t ranks, std::int64_t elements) {
  Values values(ranks * 7919 + static_cast<std::uint64_t>(elements));
  Messages messages;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    messages.push_back(values.uniform(elements, 4.0F));
  }
  return messages;
}

// 2^24 swallows a 1 that is added to it alone, and keeps a 2: with parts 2^24, 1, 1 the result
// tells whether the ones met first.
constexpr float kLarge = 0x1p+24F;

TEST(AllReduce, OneShotAddsInRankOrder) {
  EXPECT_EQ(reduced(AllReduceOrder::one_shot, {{kLarge}, {1.0F}, {1.0F}}).at(0), kLarge);
  EXPECT_EQ(reduced(AllReduceOrder::one_shot, {{1.0F}, {1.0F}, {kLarge}}).at(0), kLarge + 2.0F);
  EXPECT_EQ(reduced(AllReduceOrder::one_shot, {{1.0F}, {kLarge}, {1.0F}}).at(0), kLarge);
}

// Three ranks, three chunks of two elements. Chunk 0 is ((p1 + p2) + p0), chunk 1 ((p2 + p0) + p1),
// chunk 2 ((p0 + p1) + p2).
TEST(AllReduce, EachRingChunkStartsBehindItsOwnRank) {
  const float two_more = kLarge + 2.0F;
  EXPECT_EQ(reduced(AllReduceOrder::ring, constant({kLarge, 1.0F, 1.0F}, 6)),
            (std::vector{two_more, two_more, kLarge, kLarge, kLarge, kLarge}));
  EXPECT_EQ(reduced(AllReduceOrder::ring, constant({1.0F, kLarge, 1.0F}, 6)),
            (std::vector{kLarge, kLarge, two_more, two_more, kLarge, kLarge}));
  EXPECT_EQ(reduced(AllReduceOrder::ring, constant({1.0F, 1.0F, kLarge}, 6)),
            (std::vector{kLarge, kLarge, kLarge, kLarge, two_more, two_more}));
}

// Four ranks: chunk c is ((p(c+1) + p(c+2)) + p(c+3)) + p(c). Parts 2^24, 1, 1, 1:
// c = 0: 1 + 1 + 1 + 2^24 = 2^24 + 3, a tie, to even: 2^24 + 4.  c = 1: (1 + 1) + 2^24 + 1 =
// 2^24 + 2 + 1 = 2^24 + 3, to even: 2^24 + 4.  c = 2: 1 + 2^24 = 2^24, and so on: 2^24.
// c = 3: 2^24 + 1 …: 2^24.
TEST(AllReduce, RingOfFourByHand) {
  EXPECT_EQ(reduced(AllReduceOrder::ring, constant({kLarge, 1.0F, 1.0F, 1.0F}, 4)),
            (std::vector{kLarge + 4.0F, kLarge + 4.0F, kLarge, kLarge}));
}

// ceil(5 / 3) = 2: chunks of 2, 2 and 1 elements. ceil(2 / 4) = 1: ranks 2 and 3 own no chunk.
TEST(AllReduce, RingChunksAreRoundedUp) {
  EXPECT_EQ(ring_chunk(5, 3), 2);
  EXPECT_EQ(reduced(AllReduceOrder::ring, constant({1.0F, 1.0F, kLarge}, 5)),
            (std::vector{kLarge, kLarge, kLarge, kLarge, kLarge + 2.0F}));
  EXPECT_EQ(reduced(AllReduceOrder::ring, constant({kLarge, 1.0F, 1.0F, 1.0F}, 2)),
            (std::vector{kLarge + 4.0F, kLarge + 4.0F}));
}

// (p0 + p1) + (p2 + p3); a fourth rank that is not there leaves (p0 + p1) + p2.
TEST(AllReduce, TreeAddsPairs) {
  const auto tree = AllReduceOrder::tree;
  EXPECT_EQ(reduced(tree, {{kLarge}, {1.0F}, {1.0F}, {1.0F}}).at(0), kLarge + 2.0F);
  EXPECT_EQ(reduced(tree, {{kLarge}, {1.0F}, {1.0F}}).at(0), kLarge);
  EXPECT_EQ(reduced(tree, {{1.0F}, {1.0F}, {kLarge}}).at(0), kLarge + 2.0F);
}

// bf16 keeps 8 bits: 256 + 1 is a tie that goes back to 256, 256 + 2 is kept. One-shot adds in f32
// and rounds once; ring and tree round at each hop.
TEST(AllReduce, EachHopRoundsToTheReduceType) {
  const std::vector<float> parts = {256.0F, 1.0F, 1.0F};
  EXPECT_EQ(reduced(AllReduceOrder::one_shot, constant(parts, 3), Dtype::bf16),
            (std::vector{258.0F, 258.0F, 258.0F}));
  EXPECT_EQ(reduced(AllReduceOrder::ring, constant(parts, 3), Dtype::bf16),
            (std::vector{258.0F, 256.0F, 256.0F}));
  EXPECT_EQ(reduced(AllReduceOrder::tree, constant(parts, 1), Dtype::bf16).at(0), 256.0F);
  // f16 keeps 11 bits: the same with 2048.
  EXPECT_EQ(reduced(AllReduceOrder::ring, constant({2048.0F, 1.0F, 1.0F}, 3), Dtype::f16),
            (std::vector{2050.0F, 2048.0F, 2048.0F}));
}

// 1 + 2^-9 is 1 in bf16, on every rank and also for the rank's own part.
TEST(AllReduce, PartsAreRoundedBeforeTheyAreSent) {
  const float part = 1.0F + 0x1p-9F;
  for (const AllReduceVariant& variant : all_reduce_variants()) {
    EXPECT_EQ(reduced(variant.order, {{part}, {part}}, Dtype::bf16).at(0), 2.0F) << variant.name;
    EXPECT_EQ(reduced(variant.order, {{part}, {part}}).at(0), 2.0F + 0x1p-8F) << variant.name;
    EXPECT_EQ(reduced(variant.order, {{part}}, Dtype::bf16).at(0), part) << variant.name;
  }
}

TEST(AllReduce, SpecialValues) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const AllReduceVariant& variant : all_reduce_variants()) {
    EXPECT_EQ(reduced(variant.order, {{infinity}, {1.0F}, {2.0F}}).at(0), infinity);
    const float nan = reduced(variant.order, {{infinity}, {-infinity}, {2.0F}}).at(0);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(nan), 0x7fc00000U) << variant.name;
    EXPECT_EQ(reduced(variant.order, {{60000.0F}, {60000.0F}}, Dtype::f16).at(0), infinity);
    EXPECT_TRUE(reduced(variant.order, {{}, {}}).empty());
  }
}

// The definitions of the header, element by element.
float by_definition(AllReduceOrder order, const Messages& messages, std::size_t element,
                    Dtype dtype) {
  const std::size_t ranks = messages.size();
  std::vector<float> q;
  for (const auto& message : messages) q.push_back(round_to(dtype, message[element]));
  if (order == AllReduceOrder::one_shot) {
    float sum = q[0];
    for (std::size_t r = 1; r < ranks; ++r) sum = sum + q[r];
    return round_to(dtype, sum);
  }
  if (order == AllReduceOrder::ring) {
    const std::size_t chunk = element / ((messages[0].size() + ranks - 1) / ranks);
    float sum = q[(chunk + 1) % ranks];
    for (std::size_t r = 2; r <= ranks; ++r) sum = round_to(dtype, sum + q[(chunk + r) % ranks]);
    return sum;
  }
  while (q.size() > 1) {
    std::vector<float> pairs;
    for (std::size_t i = 0; i < q.size(); i += 2) {
      pairs.push_back(i + 1 < q.size() ? round_to(dtype, q[i] + q[i + 1]) : q[i]);
    }
    q = pairs;
  }
  return q[0];
}

TEST(AllReduce, MatchesTheDefinitionForAnyThreads) {
  for (const AllReduceVariant& variant : all_reduce_variants()) {
    for (const std::size_t ranks : {2U, 3U, 4U, 5U, 8U}) {
      for (const std::int64_t elements : {1, 7, 512, 513, 20011}) {
        for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16}) {
          const Messages messages = random_messages(ranks, elements);
          std::vector<float> expected;
          for (std::size_t i = 0; i < messages[0].size(); ++i) {
            expected.push_back(by_definition(variant.order, messages, i, dtype));
          }
          SerialParallel serial;
          BackwardParallel backward(3);
          ThreadedParallel threaded(3);
          for (Parallel* parallel : std::array<Parallel*, 3>{&serial, &backward, &threaded}) {
            EXPECT_EQ(bit_difference(reduced(variant.order, messages, dtype, *parallel), expected),
                      "")
                << variant.name << " ranks " << ranks << " elements " << elements;
          }
        }
      }
    }
  }
}

// R - 1 additions and at most R + 1 roundings to the reduce type (parts, hops) of unit roundoff u,
// with the additions' own in f32: errors stay within gamma(2R) of the sum of magnitudes.
TEST(AllReduce, StaysWithinTheRoundingBoundOfTheF64Reference) {
  const Messages messages = random_messages(8, 4001);
  std::vector<const float*> ranks;
  for (const auto& message : messages) ranks.push_back(message.data());
  std::vector<double> exact(4001);
  all_reduce_reference(ranks, 4001, exact.data());
  for (const AllReduceVariant& variant : all_reduce_variants()) {
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16}) {
      const auto sums = reduced(variant.order, messages, dtype);
      const double depth = 16.0 * std::ldexp(1.0, -significand_bits(dtype));
      // Below the least normal number of f16 the error is absolute: half its last place a rounding.
      const double absolute = dtype == Dtype::f16 ? 16.0 * 0x1p-25 : 0.0;
      for (std::size_t i = 0; i < sums.size(); ++i) {
        double magnitude = 0.0;
        for (const float* part : ranks) magnitude += std::fabs(static_cast<double>(part[i]));
        EXPECT_LE(std::fabs(static_cast<double>(sums[i]) - exact[i]),
                  depth / (1.0 - depth) * magnitude + absolute)
            << variant.name << " " << dtype_name(dtype) << " element " << i;
      }
    }
  }
}

// What the table promises: a row's sum is the same wherever the row stands in the message, except
// under `ring`, where it does change.
TEST(AllReduce, PromisesAreKept) {
  constexpr std::size_t kWidth = 96;
  const Messages alone = random_messages(4, kWidth);
  const Messages others = random_messages(4, 5 * kWidth);
  for (const AllReduceVariant& variant : all_reduce_variants()) {
    const auto row = reduced(variant.order, alone);
    bool moved = false;
    for (std::size_t place = 0; place <= 5; ++place) {
      Messages together = others;
      for (std::size_t rank = 0; rank < 4; ++rank) {
        together[rank].insert(together[rank].begin() + static_cast<std::ptrdiff_t>(place * kWidth),
                              alone[rank].begin(), alone[rank].end());
      }
      const auto all = reduced(variant.order, together);
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(place * kWidth);
      const std::vector<float> same_row(begin, begin + kWidth);
      moved = moved || !bit_difference(same_row, row).empty();
    }
    EXPECT_EQ(moved, variant.determinism == Determinism::run_to_run) << variant.name;
    EXPECT_EQ(bit_difference(reduced(variant.order, alone), row), "") << variant.name;
  }
}

}  // namespace
}  // namespace driftscope::testing
