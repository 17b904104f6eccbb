// SPDX-License-Identifier: Apache-2.0
// What a machine that runs models offers: caches of sequences, and forward passes over batches.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/model/checkpoint.h"
#include "engine/trace/trace.h"
#include "kernels/base/result.h"
#include "kernels/base/types.h"

namespace driftscope {

// Keys and values of one sequence. Belongs to the backend that made it and to those opened from
// the same model and configuration.
class KvCache {
 public:
  virtual ~KvCache() = default;
  [[nodiscard]] virtual std::int64_t length() const = 0;  // tokens held
  // Forgets all tokens but the first `length`; `length` is at most length().
  virtual void truncate(std::int64_t length) = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<KvCache>> clone() const = 0;
};

// What a call is for; shown beside the plans that it used.
enum class Phase : std::uint8_t { prefill, decode, score };
[[nodiscard]] constexpr std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::prefill:
      return "prefill";
    case Phase::decode:
      return "decode";
    case Phase::score:
      return "score";
  }
  return "?";
}

// One sequence's rows in a call.
struct BatchSequence {
  KvCache* cache = nullptr;         // grows by tokens.size(); position 0 is its first token
  std::span<const TokenId> tokens;  // at least one, each below the vocabulary
  std::int64_t output_rows = 0;     // logits are wanted for the last `output_rows` tokens
  bool taps = false;                // and what the tap level asks for, for the same rows
};

// The rows of one forward call, in this order; all are in flight together (M = their number).
struct Batch {
  Phase phase = Phase::decode;
  std::span<const BatchSequence> sequences;
  TapLevel taps = TapLevel::logits;
};

// A model opened under one configuration. One call at a time.
class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual const ModelDescription& model() const = 0;
  // `expected_tokens` sizes the cache up front; it still grows as needed.
  [[nodiscard]] virtual Result<std::unique_ptr<KvCache>> create_cache(
      std::int64_t expected_tokens) = 0;

  // Runs every layer for the rows of the batch, stores their keys and values, and keeps the
  // output rows (those with logits wanted, in batch order) for logits() and taps().
  // Errors: interrupted (stop was requested; the caches are then as before the call), engine.
  [[nodiscard]] virtual Result<void> forward(const Batch& batch, const std::stop_token& stop) = 0;
  // [output rows of the last forward()]
  [[nodiscard]] virtual std::int64_t output_rows() const = 0;
  // Logits of output rows first … first + count - 1, [count, vocabulary], valid until the next
  // call. The plan follows from the number of output rows, not from `count`, so asking in
  // blocks gives the same bits.
  [[nodiscard]] virtual Result<std::span<const float>> logits(std::int64_t first,
                                                              std::int64_t count) = 0;
  // Taps of one output row of the last forward(), in the order of tap_specs(); empty where its
  // sequence asked for none. Valid until the next call.
  [[nodiscard]] virtual std::span<const TensorTap> taps(std::int64_t output_row) = 0;
  // What the routers chose for one output row of the last forward(); empty in dense models. Valid
  // until the next call.
  [[nodiscard]] virtual RouteRow routes(std::int64_t output_row) {
    static_cast<void>(output_row);
    return {};
  }

  // Distinct (phase, operation, shape, plan) that ran so far, as text, in order of first use.
  [[nodiscard]] virtual std::vector<std::string> plans() const = 0;
  // Where the weights lie, e.g. "weights copied to anonymous memory, 988 MiB, huge pages asked".
  [[nodiscard]] virtual std::string storage_note() const = 0;
};

}  // namespace driftscope
