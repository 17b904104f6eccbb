// SPDX-License-Identifier: Apache-2.0
// Attention over caches of 8-bit types, and over paged caches.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "attention_support.h"

namespace driftscope::testing {
namespace {

constexpr AttentionKind kKinds[] = {AttentionKind::eager, AttentionKind::flash,
                                    AttentionKind::split_kv_count, AttentionKind::split_kv_size};
constexpr KvDtype kTypes[] = {KvDtype::f32, KvDtype::f16, KvDtype::bf16, KvDtype::fp8_e4m3,
                              KvDtype::int8};

// A problem's cache as the values that it reads back, stored as f32.
AttentionProblem widened(const AttentionProblem& problem) {
  AttentionProblem plain = problem;
  const auto read = [&](const std::vector<char>& bytes, const std::vector<float>& scales) {
    const std::int64_t dim = problem.shape.head_dim;
    std::vector<float> values(scales.size() * static_cast<std::size_t>(dim));
    const std::size_t head_bytes =
        static_cast<std::size_t>(dim) * dtype_size(problem.arguments.kv_dtype);
    for (std::size_t head = 0; head < scales.size(); ++head) {
      kv_widen(problem.arguments.kv_dtype, bytes.data() + head * head_bytes, &scales[head],
               values.data() + head * static_cast<std::size_t>(dim), dim);
    }
    return values;
  };
  plain.arguments.kv_dtype = KvDtype::f32;
  plain.set_k(read(problem.k, problem.k_scales));
  plain.set_v(read(problem.v, problem.v_scales));
  return plain;
}

// Odd head sizes, several heads, more keys than one chunk.
TEST(AttentionCache, CodedCachesGiveTheBitsOfTheirValues) {
  for (const std::int64_t head_dim : {8, 20, 64}) {
    for (const KvDtype type : {KvDtype::fp8_e4m3, KvDtype::int8}) {
      AttentionProblem problem(
          {.rows = 5, .first_position = 70, .heads = 4, .kv_heads = 2, .head_dim = head_dim}, type,
          21);
      problem.arguments.tile = 16;
      for (const AttentionKind kind : kKinds) {
        problem.arguments.kind = kind;
        for (const Accumulator accumulator : {Accumulator::f32, Accumulator::kahan}) {
          problem.arguments.score_plan.accumulator = accumulator;
          const std::vector<float> expected = widened(problem).run(Isa::scalar);
          for (const AttentionVariant& variant : attention_variants()) {
            if (!isa_supported(variant.isa)) continue;
            EXPECT_EQ(bit_difference(problem.run(variant.isa), expected), "")
                << variant.name << " " << dtype_name(type) << " head_dim " << head_dim;
          }
        }
      }
    }
  }
}

// One key: the output is its value, here after rounding to the cache's type.
TEST(AttentionCache, OneKeyByHand) {
  for (const AttentionVariant& variant : attention_variants()) {
    if (!isa_supported(variant.isa)) continue;
    AttentionProblem fp8({.rows = 1, .head_dim = 4}, KvDtype::fp8_e4m3, 1);
    fp8.set_v({1.0625F, 500.0F, -3.3F, 0x1p-9F});
    EXPECT_EQ(fp8.run(variant.isa), (std::vector<float>{1.0F, 448.0F, -3.25F, 0x1p-9F}));
    AttentionProblem int8({.rows = 1, .head_dim = 4}, KvDtype::int8, 1);
    int8.set_v({254.0F, 3.0F, -101.5F, 0.0F});  // scale 2
    EXPECT_EQ(int8.run(variant.isa), (std::vector<float>{254.0F, 4.0F, -102.0F, 0.0F}));
  }
}

TEST(AttentionCache, NanInACodedCacheComesOut) {
  for (const KvDtype type : {KvDtype::fp8_e4m3, KvDtype::int8}) {
    AttentionProblem problem({.rows = 1, .first_position = 2, .head_dim = 20}, type, 3);
    std::vector<float> v(3 * 20, 1.0F);
    v[25] = std::nanf("");
    problem.set_v(v);
    for (const AttentionVariant& variant : attention_variants()) {
      if (!isa_supported(variant.isa)) continue;
      EXPECT_TRUE(std::isnan(problem.run(variant.isa)[5])) << variant.name;
    }
  }
}

// The cache of a problem cut into pages that lie in memory in falling order.
class Pages {
 public:
  Pages(const AttentionProblem& problem, std::int64_t page) : m_page(page) {
    const auto heads = static_cast<std::size_t>(problem.shape.kv_heads);
    const std::size_t token_bytes = heads * static_cast<std::size_t>(problem.shape.head_dim) *
                                    dtype_size(problem.arguments.kv_dtype);
    const std::size_t tokens = problem.k.size() / token_bytes;
    const auto size = static_cast<std::size_t>(page);
    const std::size_t pages = (tokens + size - 1) / size;
    const auto scatter = [&](const auto& from, auto& memory, auto& table, std::size_t unit) {
      memory.resize(pages * size * unit);
      table.resize(pages);
      for (std::size_t i = 0; i < pages; ++i) {
        auto* target = memory.data() + (pages - 1 - i) * size * unit;
        const std::size_t count = std::min(size, tokens - i * size);
        std::copy_n(from.data() + i * size * unit, count * unit, target);
        table[i] = target;
      }
    };
    scatter(problem.k, m_k, m_k_table, token_bytes);
    scatter(problem.v, m_v, m_v_table, token_bytes);
    scatter(problem.k_scales, m_k_scales, m_k_scale_table, heads);
    scatter(problem.v_scales, m_v_scales, m_v_scale_table, heads);
  }
  void point(AttentionSequence& sequence) const {
    sequence.k = sequence.v = nullptr;
    sequence.k_scales = sequence.v_scales = nullptr;
    sequence.block_tokens = m_page;
    sequence.k_blocks = m_k_table.data();
    sequence.v_blocks = m_v_table.data();
    sequence.k_scale_blocks = m_k_scale_table.data();
    sequence.v_scale_blocks = m_v_scale_table.data();
  }

 private:
  std::int64_t m_page;
  std::vector<char> m_k, m_v;
  std::vector<float> m_k_scales, m_v_scales;
  std::vector<const void*> m_k_table, m_v_table;
  std::vector<const float*> m_k_scale_table, m_v_scale_table;
};

TEST(AttentionCache, PagesChangeNoBit) {
  for (const KvDtype type : kTypes) {
    AttentionProblem problem(
        {.rows = 7, .first_position = 90, .heads = 6, .kv_heads = 2, .head_dim = 20}, type, 5);
    for (const AttentionKind kind : kKinds) {
      problem.arguments.kind = kind;
      for (const AttentionVariant& variant : attention_variants()) {
        if (!isa_supported(variant.isa)) continue;
        const std::vector<float> expected = problem.run(variant.isa);
        for (const std::int64_t page : {1, 5, 16, 64, 200}) {
          const Pages pages(problem, page);
          std::vector<float> y(expected.size());
          AttentionSequence sequence{.q = problem.q.data(),
                                     .q_stride = 6 * 20,
                                     .rows = 7,
                                     .first_position = 90,
                                     .y = y.data()};
          pages.point(sequence);
          AttentionArguments call = problem.arguments;
          call.sequences = {&sequence, 1};
          SerialParallel serial;
          attention(call, variant.isa, serial);
          EXPECT_EQ(bit_difference(y, expected), "")
              << variant.name << " page " << page << " " << dtype_name(type);
        }
      }
    }
  }
}

}  // namespace
}  // namespace driftscope::testing
