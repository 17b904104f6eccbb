// SPDX-License-Identifier: Apache-2.0
// llama.cpp's --kl-divergence-base files: log probabilities in 16 bits at every scored position.
// Layout: "_logits_", i32 n_ctx, n_vocab, n_chunk, tokens[n_chunk * n_ctx]; then for each chunk
// n_ctx - 1 - n_ctx / 2 records of f32 scale, f32 minimum, u16 code[n_vocab] (one more where
// n_vocab is odd). log p = scale * code + minimum. Host byte order; read as little-endian.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/base/result.h"

namespace driftscope {

// Points into the text it was read from.
struct KldFile {
  std::int64_t context = 0;
  std::int64_t vocabulary = 0;
  std::int64_t chunks = 0;
  std::vector<std::int32_t> tokens;  // [chunks, context]
  [[nodiscard]] std::int64_t rows_of_chunk() const { return context - 1 - context / 2; }
  [[nodiscard]] std::int64_t rows() const { return chunks * rows_of_chunk(); }
  // The token that a row's distribution is scored with.
  [[nodiscard]] std::int32_t scored_token(std::int64_t row) const;
  // log p of every token, [vocabulary].
  void log_probabilities(std::int64_t row, std::span<float> target) const;
  // Smallest value that a row can hold: what is below is not known.
  [[nodiscard]] float floor_of(std::int64_t row) const;

  std::string_view records;
};

[[nodiscard]] bool is_kld_file(std::string_view bytes);
// `name` begins the messages. Errors: malformed, with the field and the offset.
[[nodiscard]] Result<KldFile> read_kld_file(std::string_view bytes, std::string_view name);

}  // namespace driftscope
