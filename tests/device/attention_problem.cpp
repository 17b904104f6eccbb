// SPDX-License-Identifier: Apache-2.0
#include "tests/device/attention_problem.h"

#include <algorithm>

namespace driftscope::parity {
namespace {

// Per row of the batch: its sequence, its position, and where its order of splits begins.
struct Rows {
  std::vector<std::int32_t> sequence_of, positions, order_begin;
  std::vector<int> orders;
};

Rows rows_of(const Setup& setup) {
  Rows rows;
  for (std::size_t i = 0; i < setup.sequences.size(); ++i) {
    for (std::int64_t r = 0; r < setup.sequences[i].rows; ++r) {
      const std::int64_t position = setup.sequences[i].first_position + r;
      rows.sequence_of.push_back(static_cast<std::int32_t>(i));
      rows.positions.push_back(static_cast<std::int32_t>(position));
      rows.order_begin.push_back(static_cast<std::int32_t>(rows.orders.size()));
      const bool by_size = setup.arguments.kind == AttentionKind::split_kv_size;
      const int splits =
          by_size ? static_cast<int>(position / setup.arguments.tile) + 1 : setup.arguments.splits;
      const std::vector<int> order = arrival_order(setup.arguments.sum_plan.arrival_seed, splits);
      rows.orders.insert(rows.orders.end(), order.begin(), order.end());
    }
  }
  return rows;
}

constexpr std::int64_t kLayers = 2;  // of which the second is used

}  // namespace

Stored stored(KvDtype dtype, const std::vector<float>& values, std::int64_t head_dim) {
  const std::int64_t heads = static_cast<std::int64_t>(values.size()) / head_dim;
  Stored result{std::vector<char>(values.size() * dtype_size(dtype)),
                std::vector<float>(static_cast<std::size_t>(heads))};
  kv_store(dtype, values.data(), heads, head_dim, result.codes.data(), result.scales.data());
  return result;
}

Problem::Problem(const Setup& of) : setup(of) {
  std::uint64_t seed = 20;
  for (const Sequence& sequence : of.sequences) {
    rows += sequence.rows;
    const std::int64_t keys = sequence.first_position + sequence.rows;
    k.push_back(draw(keys * of.kv_heads * of.head_dim, ++seed));
    v.push_back(draw(keys * of.kv_heads * of.head_dim, ++seed));
    k_stored.push_back(stored(of.arguments.kv_dtype, k.back(), of.head_dim));
    v_stored.push_back(stored(of.arguments.kv_dtype, v.back(), of.head_dim));
  }
  q = draw(rows * of.heads * of.head_dim, 19);
  for (float& value : q) value *= 0.5F;
}

std::vector<float> Problem::on_host(Isa isa) const {
  const std::int64_t width = setup.heads * setup.head_dim;
  std::vector<float> y(q.size(), -1.0F);
  std::vector<AttentionSequence> sequences;
  std::int64_t row = 0;
  for (std::size_t i = 0; i < setup.sequences.size(); ++i) {
    sequences.push_back({.q = q.data() + row * width,
                         .q_stride = width,
                         .k = k_stored[i].codes.data(),
                         .v = v_stored[i].codes.data(),
                         .rows = setup.sequences[i].rows,
                         .first_position = setup.sequences[i].first_position,
                         .y = y.data() + row * width,
                         .k_scales = k_stored[i].scales.data(),
                         .v_scales = v_stored[i].scales.data()});
    row += setup.sequences[i].rows;
  }
  AttentionArguments arguments = setup.arguments;
  arguments.sequences = sequences;
  arguments.heads = setup.heads;
  arguments.kv_heads = setup.kv_heads;
  arguments.head_dim = setup.head_dim;
  SerialParallel serial;
  attention(arguments, isa, serial);
  return y;
}

DeviceSequence empty_cache(Case& call, const Setup& setup, std::int64_t keys) {
  const std::int64_t tokens = setup.page == 0 ? keys + 3 : setup.page;
  const auto heads = static_cast<std::size_t>(kLayers * tokens * setup.kv_heads);
  const std::size_t side =
      (heads * static_cast<std::size_t>(setup.head_dim) * dtype_size(setup.arguments.kv_dtype) +
       3) /
      4 * 4;
  const std::vector<char> bytes(2 * side + 2 * heads * sizeof(float), 0x55);
  std::vector<char*> blocks;
  const std::int64_t count = (keys + tokens - 1) / tokens;
  for (std::int64_t i = 0; i < count; ++i) blocks.push_back(call.put(bytes));
  std::reverse(blocks.begin(), blocks.end());  // pages lie in any order
  return {.block = blocks[0],
          .blocks = setup.page == 0 ? nullptr : call.put(blocks),
          .block_tokens = tokens,
          .values_at = static_cast<std::int64_t>(side),
          .key_scales_at = static_cast<std::int64_t>(2 * side),
          .value_scales_at = static_cast<std::int64_t>(2 * side + heads * sizeof(float)),
          .keys = keys};
}

void store_rows(Case& call, const Problem& problem, const DeviceSequence& sequence, std::size_t of,
                std::int64_t first, std::int64_t rows) {
  const Setup& setup = problem.setup;
  if (rows == 0) return;
  std::vector<std::int32_t> positions;
  for (std::int64_t i = 0; i < rows; ++i) {
    positions.push_back(static_cast<std::int32_t>(first + i));
  }
  const auto begin = static_cast<std::size_t>(first * setup.kv_heads * setup.head_dim);
  const auto count = static_cast<std::size_t>(rows * setup.kv_heads * setup.head_dim);
  call.run(&CudaTable::store_kv,
           DeviceStoreKv{.batch = {.sequences = call.put(&sequence, 1),
                                   .sequence_of = call.put(
                                       std::vector<std::int32_t>(static_cast<std::size_t>(rows))),
                                   .positions = call.put(positions),
                                   .rows = rows,
                                   .layer = 1},
                         .k = call.put(problem.k[of].data() + begin, count),
                         .v = call.put(problem.v[of].data() + begin, count),
                         .kv_heads = setup.kv_heads,
                         .head_dim = setup.head_dim,
                         .kv_dtype = setup.arguments.kv_dtype});
}

std::vector<float> Problem::on_device(const Device& device) const {
  Case call(device);
  const AttentionArguments& a = setup.arguments;
  const Rows table = rows_of(setup);
  std::vector<DeviceSequence> sequences;
  for (std::size_t i = 0; i < setup.sequences.size(); ++i) {
    const Sequence& sequence = setup.sequences[i];
    const std::int64_t keys = sequence.first_position + sequence.rows;
    sequences.push_back(empty_cache(call, setup, keys));
    store_rows(call, *this, sequences.back(), i, 0, sequence.first_position);
    store_rows(call, *this, sequences.back(), i, sequence.first_position, sequence.rows);
  }
  const DeviceRows batch{.sequences = call.put(sequences),
                         .sequence_of = call.put(table.sequence_of),
                         .positions = call.put(table.positions),
                         .rows = rows,
                         .layer = 1};
  constexpr std::int64_t kStride = 1024;
  float* y = call.room<float>(q.size());
  call.run(&CudaTable::attention,
           DeviceAttention{
               .batch = batch,
               .q = call.put(q),
               .y = y,
               .heads = setup.heads,
               .kv_heads = setup.kv_heads,
               .head_dim = setup.head_dim,
               .scale = a.scale,
               .window = a.window,
               .kv_dtype = a.kv_dtype,
               .kind = a.kind,
               .tile = a.tile,
               .splits = a.splits,
               .score_plan = call.plan(a.score_plan),
               .sum_plan = call.plan(a.sum_plan),
               .split_combine = a.split_combine,
               .merge_orders = call.put(table.orders),
               .merge_order_begin = call.put(table.order_begin),
               .softmax_dtype = a.softmax_dtype,
               .score_dtype = a.score_dtype,
               .probability_dtype = a.probability_dtype,
               .output_dtype = a.output_dtype,
               .scores = call.room<float>(static_cast<std::size_t>(rows * setup.heads * kStride)),
               .score_stride = kStride});
  return call.get(y, q.size());
}

}  // namespace driftscope::parity
