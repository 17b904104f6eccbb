// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "tests/device/attention_problem.h"

namespace driftscope::parity {
namespace {

Dtype element_of(KvDtype dtype) { return plain_dtype(dtype).value_or(Dtype::f32); }

void add_case(Tally& tally, const Device& device, const Setup& setup) {
  const Problem problem(setup);
  std::vector<std::vector<float>> results;
  for (const Isa isa : host_isas()) results.push_back(problem.on_host(isa));
  results.push_back(problem.on_device(device));
  const AttentionArguments& a = setup.arguments;
  tally.add(
      results,
      fmt::format("sequences={} tile={} splits={} window={} kv={} page={} softmax={} combine={} {}",
                  setup.sequences.size(), a.tile, a.splits, a.window, dtype_name(a.kv_dtype),
                  setup.page, dtype_name(a.softmax_dtype), name_of(a.split_combine),
                  to_string(a.score_plan)));
}

const std::vector<std::vector<Sequence>>& batches() {
  static const std::vector<std::vector<Sequence>> all{
      {{0, 1}}, {{0, 5}}, {{36, 1}, {3, 2}}, {{70, 1}, {0, 3}, {11, 1}}};
  return all;
}

void add_kind(Tally& tally, const Device& device, AttentionArguments arguments,
              std::int64_t page = 0) {
  for (const auto& batch : batches()) {
    for (const std::int64_t window : {0, 9}) {
      arguments.window = window;
      add_case(tally, device, {.sequences = batch, .page = page, .arguments = arguments});
    }
  }
}

Line eager_line(const Device& device) {
  Tally tally("attention, eager", device);
  for (const KvDtype kv : {KvDtype::f32, KvDtype::f16, KvDtype::bf16}) {
    for (const Dtype softmax : {Dtype::f32, Dtype::f64, Dtype::bf16, Dtype::f16}) {
      for (const int lanes : {4, 32, 64}) {
        const Dtype half = element_of(kv);
        add_kind(tally, device,
                 {.sequences = {},
                  .scale = 0.25F,
                  .kv_dtype = kv,
                  .kind = AttentionKind::eager,
                  .score_plan = {.lanes = lanes},
                  .sum_plan = {.lanes = lanes, .split_k = lanes == 4 ? 3 : 1},
                  .softmax_dtype = softmax,
                  .score_dtype = half,
                  .probability_dtype = half,
                  .output_dtype = half});
      }
    }
  }
  return tally.line();
}

Line flash_line(const Device& device) {
  Tally tally("attention, flash", device);
  for (const KvDtype kv : {KvDtype::f32, KvDtype::f16, KvDtype::bf16}) {
    for (const Dtype softmax : {Dtype::f32, Dtype::f64, Dtype::bf16, Dtype::f16}) {
      for (const std::int64_t tile : {1, 7, 64}) {
        add_kind(tally, device,
                 {.sequences = {},
                  .scale = 0.25F,
                  .kv_dtype = kv,
                  .kind = AttentionKind::flash,
                  .tile = tile,
                  .score_plan = {.lanes = tile == 7 ? 8 : 32},
                  .softmax_dtype = softmax,
                  .output_dtype = element_of(kv)});
      }
    }
  }
  // Tiles larger than what shared memory holds at a time; wide heads; every accumulator.
  for (const Accumulator accumulator : {Accumulator::f32, Accumulator::f64, Accumulator::kahan}) {
    Setup setup{
        .sequences = {{700, 1}, {290, 2}},
        .heads = 2,
        .kv_heads = 1,
        .head_dim = 130,
        .arguments = {.sequences = {},
                      .scale = 0.1F,
                      .kind = AttentionKind::flash,
                      .tile = 600,
                      .score_plan = {.lanes = 32, .split_k = 2, .accumulator = accumulator}}};
    add_case(tally, device, setup);
  }
  return tally.line();
}

Line split_line(const Device& device, AttentionKind kind, const std::string& name) {
  Tally tally("attention, " + name, device);
  for (const Dtype softmax : {Dtype::f32, Dtype::f64, Dtype::bf16, Dtype::f16}) {
    for (const auto combine :
         {SplitCombine::sequential, SplitCombine::tree, SplitCombine::arrival}) {
      for (const int splits : {1, 4, 7}) {  // 7 splits of one key: some see nothing
        for (const KvDtype kv : {KvDtype::f32, KvDtype::bf16}) {
          add_kind(tally, device,
                   {.sequences = {},
                    .scale = 0.25F,
                    .kv_dtype = kv,
                    .kind = kind,
                    .tile = 4 * splits - 3,
                    .splits = splits,
                    .score_plan = {.lanes = 16},
                    .sum_plan = {.arrival_seed = 5},
                    .split_combine = combine,
                    .softmax_dtype = softmax});
        }
      }
    }
  }
  return tally.line();
}

// Every type of cache, in one block and in pages, under every kind.
Line cache_line(const Device& device) {
  Tally tally("attention, caches", device);
  for (const KvDtype kv :
       {KvDtype::f32, KvDtype::f16, KvDtype::bf16, KvDtype::fp8_e4m3, KvDtype::int8}) {
    for (const std::int64_t page : {0, 1, 7, 16}) {
      if (page == 0 && plain_dtype(kv)) continue;  // the other lines have it
      for (const AttentionKind kind :
           {AttentionKind::eager, AttentionKind::flash, AttentionKind::split_kv_count,
            AttentionKind::split_kv_size}) {
        add_kind(tally, device,
                 {.sequences = {},
                  .scale = 0.25F,
                  .kv_dtype = kv,
                  .kind = kind,
                  .tile = 16,
                  .splits = 3,
                  .score_plan = {.lanes = 8}},
                 page);
      }
    }
  }
  return tally.line();
}

// The bytes of a stored row, against kv_store(): every size of value, and what has no code.
Line store_line(const Device& device) {
  Tally tally("storing keys and values", device);
  for (const KvDtype kv :
       {KvDtype::f32, KvDtype::f16, KvDtype::bf16, KvDtype::fp8_e4m3, KvDtype::int8}) {
    for (const std::int64_t head_dim : {1, 8, 33, 70}) {
      Setup setup{.sequences = {{0, 6}}, .kv_heads = 3, .head_dim = head_dim, .arguments = {}};
      setup.arguments.kv_dtype = kv;
      Problem problem(setup);
      std::vector<float>& k = problem.k[0];
      for (std::size_t i = 0; i < k.size(); ++i) {
        k[i] *= std::ldexp(1.0F, static_cast<int>(i / 3 % 40) - 20);
      }
      const auto row = static_cast<std::size_t>(3 * head_dim);
      k[0] = std::numeric_limits<float>::infinity();
      k[row] = std::numeric_limits<float>::quiet_NaN();
      for (std::size_t i = 0; i < row; ++i) k[2 * row + i] = 0.0F;
      for (std::size_t i = 0; i < row; ++i) k[3 * row + i] = problem.v[0][i] * 0x1p-143F;
      Case call(device);
      const DeviceSequence cache = empty_cache(call, setup, 6);
      store_rows(call, problem, cache, 0, 0, 6);
      const auto heads = static_cast<std::size_t>(cache.block_tokens * setup.kv_heads);
      const std::size_t scales_at = heads * sizeof(float);  // of layer 1
      const std::size_t codes_at = heads * static_cast<std::size_t>(head_dim) * dtype_size(kv);
      const std::array sides{
          std::pair{&problem.k[0], std::pair{std::int64_t{0}, cache.key_scales_at}},
          std::pair{&problem.v[0], std::pair{cache.values_at, cache.value_scales_at}}};
      for (const auto& [values, at] : sides) {
        const Stored expected = stored(kv, *values, head_dim);
        const auto codes = call.get(cache.block + at.first + codes_at, expected.codes.size());
        tally.add<char>({expected.codes, codes}, fmt::format("{} codes", dtype_name(kv)));
        if (kv != KvDtype::int8) continue;
        const auto* scales = reinterpret_cast<const float*>(cache.block + at.second + scales_at);
        tally.add<float>({expected.scales, call.get(scales, expected.scales.size())},
                         fmt::format("{} scales", dtype_name(kv)));
      }
    }
  }
  return tally.line();
}

}  // namespace

void attention_lines(const Device& device, const OnLine& on_line) {
  on_line(store_line(device));
  on_line(eager_line(device));
  on_line(flash_line(device));
  on_line(split_line(device, AttentionKind::split_kv_count, "split by count"));
  on_line(split_line(device, AttentionKind::split_kv_size, "split by size"));
  on_line(cache_line(device));
}

}  // namespace driftscope::parity
