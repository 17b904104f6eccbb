// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/cuda_batch_tables.h"

#include <algorithm>
#include <cassert>
#include <map>

#include "engine/backend/cuda/cuda_kv_cache.h"

namespace driftscope {

Result<void> CudaBatchTables::lay_out(CudaSession& session, const Batch& batch,
                                      const RunConfig& config, int& generation) {
  m_sequences.clear();
  m_ids.clear();
  m_positions.clear();
  m_sequence_of.clear();
  m_outputs.clear();
  m_taps.clear();
  m_tapped_outputs.clear();
  m_tap_of_output.clear();
  m_most_keys = 0;
  for (const BatchSequence& sequence : batch.sequences) {
    if (auto done = add_sequence(sequence, batch); !done) return done;
  }
  add_merge_orders(config);
  return upload(session, generation);
}

Result<void> CudaBatchTables::add_sequence(const BatchSequence& sequence, const Batch& batch) {
  auto& cache = static_cast<CudaKvCache&>(*sequence.cache);
  const auto count = static_cast<std::int64_t>(sequence.tokens.size());
  assert(count > 0 && sequence.output_rows >= 0 && sequence.output_rows <= count);
  const std::int64_t keys = cache.length() + count;
  if (auto done = cache.reserve(keys); !done) return done;
  m_most_keys = std::max(m_most_keys, keys);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = rows();
    m_ids.push_back(sequence.tokens[static_cast<std::size_t>(i)].value);
    m_positions.push_back(static_cast<std::int32_t>(cache.length() + i));
    m_sequence_of.push_back(static_cast<std::int32_t>(m_sequences.size()));
    if (i < count - sequence.output_rows) continue;
    const bool tapped = sequence.taps && batch.taps != TapLevel::logits;
    m_tap_of_output.push_back(tapped ? tap_rows() : -1);
    if (tapped) {
      m_taps.push_back(row);
      m_tapped_outputs.push_back(output_rows());
    }
    m_outputs.push_back(row);
  }
  m_sequences.push_back(cache.sequence(keys));
  return {};
}

// Rows with as many splits share an order.
void CudaBatchTables::add_merge_orders(const RunConfig& config) {
  m_orders.clear();
  m_order_begin.clear();
  if (config.attention_combine != SplitCombine::arrival) return;
  std::map<std::int64_t, std::int32_t> begin_of;
  for (const std::int32_t position : m_positions) {
    const std::int64_t splits = config.attention == AttentionMode::split_kv_size
                                    ? position / config.attention_split_size + 1
                                    : config.attention_splits;
    const auto [known, added] =
        begin_of.try_emplace(splits, static_cast<std::int32_t>(m_orders.size()));
    if (added) {
      // The seed of attention's plan, as in attention_arguments().
      const std::vector<int> order =
          arrival_order(ReductionPlan{}.arrival_seed, static_cast<int>(splits));
      m_orders.insert(m_orders.end(), order.begin(), order.end());
    }
    m_order_begin.push_back(known->second);
  }
}

Result<void> CudaBatchTables::upload(CudaSession& session, int& generation) {
  Result<void> done;
  const auto put = [&](DeviceList& list, const auto& values) {
    if (done) done = list.assign(session, values, generation);
  };
  put(m_device_sequences, m_sequences);
  put(m_device_ids, m_ids);
  put(m_device_positions, m_positions);
  put(m_device_sequence_of, m_sequence_of);
  put(m_device_outputs, m_outputs);
  put(m_device_taps, m_taps);
  put(m_device_tapped_outputs, m_tapped_outputs);
  put(m_device_orders, m_orders);
  put(m_device_order_begin, m_order_begin);
  return done;
}

DeviceRows CudaBatchTables::device_rows(std::int64_t layer) const {
  return {.sequences = m_device_sequences.as<DeviceSequence>(),
          .sequence_of = m_device_sequence_of.as<std::int32_t>(),
          .positions = m_device_positions.as<std::int32_t>(),
          .rows = rows(),
          .layer = layer};
}

}  // namespace driftscope
