// SPDX-License-Identifier: Apache-2.0
// Attention over batches of sequences, on the host and on a device whose keys and values are stored
// by the device itself.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/quant/kv_codec.h"
#include "tests/device/parity.h"

namespace driftscope::parity {

struct Sequence {
  std::int64_t first_position;
  std::int64_t rows;
};

struct Setup {
  std::vector<Sequence> sequences;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t head_dim = 16;
  std::int64_t page = 0;         // tokens of a page on the device; 0: one block
  AttentionArguments arguments;  // all but the sequences and sizes
};

// Keys or values as the host stores them.
struct Stored {
  std::vector<char> codes;
  std::vector<float> scales;
};
[[nodiscard]] Stored stored(KvDtype dtype, const std::vector<float>& values, std::int64_t head_dim);

// Inputs of a setup, and the host's view of them.
struct Problem {
  const Setup& setup;
  std::int64_t rows = 0;
  std::vector<float> q;                  // [rows, heads, head_dim]
  std::vector<std::vector<float>> k, v;  // per sequence [keys, kv_heads, head_dim]
  std::vector<Stored> k_stored, v_stored;

  explicit Problem(const Setup& of);
  [[nodiscard]] std::vector<float> on_host(Isa isa) const;
  [[nodiscard]] std::vector<float> on_device(const Device& device) const;
};

// An empty cache of two layers, its bytes set to something that is no zero.
[[nodiscard]] DeviceSequence empty_cache(Case& call, const Setup& setup, std::int64_t keys);
// Rows [first, first + rows) of sequence `of`, stored in layer 1 by the device.
void store_rows(Case& call, const Problem& problem, const DeviceSequence& sequence, std::size_t of,
                std::int64_t first, std::int64_t rows);

}  // namespace driftscope::parity
