// SPDX-License-Identifier: Apache-2.0
// Attention over batches of sequences: the keys and values are stored by the device itself.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernels/attention/attention.h"
#include "tests/device/parity.h"

namespace driftscope::parity {
namespace {

struct Sequence {
  std::int64_t first_position;
  std::int64_t rows;
};

struct Setup {
  std::vector<Sequence> sequences;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t head_dim = 16;
  AttentionArguments arguments;  // all but the sequences and sizes
};

KvDtype cached_as(Dtype dtype) {
  if (dtype == Dtype::f16) return KvDtype::f16;
  return dtype == Dtype::bf16 ? KvDtype::bf16 : KvDtype::f32;
}

// Inputs of a setup, and the host's view of them.
struct Problem {
  const Setup& setup;
  std::int64_t rows = 0;
  std::vector<float> q;                  // [rows, heads, head_dim]
  std::vector<std::vector<float>> k, v;  // per sequence [keys, kv_heads, head_dim]
  std::vector<std::vector<char>> k_bytes, v_bytes;

  explicit Problem(const Setup& of) : setup(of) {
    std::uint64_t seed = 20;
    for (const Sequence& sequence : of.sequences) {
      rows += sequence.rows;
      const std::int64_t keys = sequence.first_position + sequence.rows;
      k.push_back(draw(keys * of.kv_heads * of.head_dim, ++seed));
      v.push_back(draw(keys * of.kv_heads * of.head_dim, ++seed));
      k_bytes.push_back(stored(*plain_dtype(of.arguments.kv_dtype), k.back()));
      v_bytes.push_back(stored(*plain_dtype(of.arguments.kv_dtype), v.back()));
    }
    q = draw(rows * of.heads * of.head_dim, 19);
    for (float& value : q) value *= 0.5F;
  }

  [[nodiscard]] std::vector<float> on_host(Isa isa) const {
    const std::int64_t width = setup.heads * setup.head_dim;
    std::vector<float> y(q.size(), -1.0F);
    std::vector<AttentionSequence> sequences;
    std::int64_t row = 0;
    for (std::size_t i = 0; i < setup.sequences.size(); ++i) {
      sequences.push_back({.q = q.data() + row * width,
                           .q_stride = width,
                           .k = k_bytes[i].data(),
                           .v = v_bytes[i].data(),
                           .rows = setup.sequences[i].rows,
                           .first_position = setup.sequences[i].first_position,
                           .y = y.data() + row * width});
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

  [[nodiscard]] std::vector<float> on_device(const Device& device) const;
};

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

std::vector<float> Problem::on_device(const Device& device) const {
  Case call(device);
  const AttentionArguments& a = setup.arguments;
  const std::int64_t kv_width = setup.kv_heads * setup.head_dim;
  const Rows table = rows_of(setup);
  std::vector<DeviceSequence> sequences;
  std::vector<float> new_k;
  std::vector<float> new_v;
  for (std::size_t i = 0; i < setup.sequences.size(); ++i) {
    // Two layers, of which the second is used; the rows of the call are not yet stored.
    const std::int64_t keys = setup.sequences[i].first_position + setup.sequences[i].rows;
    const std::size_t layer = k_bytes[i].size();
    std::vector<char> k_room(2 * layer, 0x55);
    std::vector<char> v_room(2 * layer, 0x55);
    const std::size_t row_bytes = static_cast<std::size_t>(kv_width) * dtype_size(a.kv_dtype);
    const auto known = static_cast<std::size_t>(setup.sequences[i].first_position) * row_bytes;
    std::copy_n(k_bytes[i].begin(), known, k_room.begin() + static_cast<std::ptrdiff_t>(layer));
    std::copy_n(v_bytes[i].begin(), known, v_room.begin() + static_cast<std::ptrdiff_t>(layer));
    sequences.push_back({.k = call.put(k_room),
                         .v = call.put(v_room),
                         .layer_bytes = static_cast<std::int64_t>(layer),
                         .keys = keys});
    const auto first = static_cast<std::ptrdiff_t>(setup.sequences[i].first_position * kv_width);
    new_k.insert(new_k.end(), k[i].begin() + first, k[i].end());
    new_v.insert(new_v.end(), v[i].begin() + first, v[i].end());
  }
  const DeviceRows batch{.sequences = call.put(sequences),
                         .sequence_of = call.put(table.sequence_of),
                         .positions = call.put(table.positions),
                         .rows = rows,
                         .layer = 1};
  call.run(&CudaTable::store_kv, DeviceStoreKv{.batch = batch,
                                               .k = call.put(new_k),
                                               .v = call.put(new_v),
                                               .kv_width = kv_width,
                                               .kv_dtype = *plain_dtype(a.kv_dtype)});
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
               .kv_dtype = *plain_dtype(a.kv_dtype),
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

void add_case(Tally& tally, const Device& device, const Setup& setup) {
  const Problem problem(setup);
  std::vector<std::vector<float>> results;
  for (const Isa isa : host_isas()) results.push_back(problem.on_host(isa));
  results.push_back(problem.on_device(device));
  const AttentionArguments& a = setup.arguments;
  tally.add(
      results,
      fmt::format("sequences={} tile={} splits={} window={} kv={} softmax={} combine={} {}",
                  setup.sequences.size(), a.tile, a.splits, a.window, dtype_name(a.kv_dtype),
                  dtype_name(a.softmax_dtype), name_of(a.split_combine), to_string(a.score_plan)));
}

const std::vector<std::vector<Sequence>>& batches() {
  static const std::vector<std::vector<Sequence>> all{
      {{0, 1}}, {{0, 5}}, {{36, 1}, {3, 2}}, {{70, 1}, {0, 3}, {11, 1}}};
  return all;
}

void add_kind(Tally& tally, const Device& device, AttentionArguments arguments) {
  for (const auto& batch : batches()) {
    for (const std::int64_t window : {0, 9}) {
      arguments.window = window;
      add_case(tally, device, {.sequences = batch, .arguments = arguments});
    }
  }
}

Line eager_line(const Device& device) {
  Tally tally("attention, eager", device);
  for (const Dtype kv : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    for (const Dtype softmax : {Dtype::f32, Dtype::f64, Dtype::bf16, Dtype::f16}) {
      for (const int lanes : {4, 32, 64}) {
        const Dtype half = kv == Dtype::f32 ? Dtype::f32 : kv;
        add_kind(tally, device,
                 {.sequences = {},
                  .scale = 0.25F,
                  .kv_dtype = cached_as(kv),
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
  for (const Dtype kv : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    for (const Dtype softmax : {Dtype::f32, Dtype::f64, Dtype::bf16, Dtype::f16}) {
      for (const std::int64_t tile : {1, 7, 64}) {
        add_kind(tally, device,
                 {.sequences = {},
                  .scale = 0.25F,
                  .kv_dtype = cached_as(kv),
                  .kind = AttentionKind::flash,
                  .tile = tile,
                  .score_plan = {.lanes = tile == 7 ? 8 : 32},
                  .softmax_dtype = softmax,
                  .output_dtype = kv});
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
        for (const Dtype kv : {Dtype::f32, Dtype::bf16}) {
          add_kind(tally, device,
                   {.sequences = {},
                    .scale = 0.25F,
                    .kv_dtype = cached_as(kv),
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

}  // namespace

void attention_lines(const Device& device, const OnLine& on_line) {
  on_line(eager_line(device));
  on_line(flash_line(device));
  on_line(split_line(device, AttentionKind::split_kv_count, "split by count"));
  on_line(split_line(device, AttentionKind::split_kv_size, "split by size"));
}

}  // namespace driftscope::parity
