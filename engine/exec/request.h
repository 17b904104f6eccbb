// SPDX-License-Identifier: Apache-2.0
// One request in flight.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/backend/backend.h"

namespace driftscope {

struct Request {
  std::vector<TokenId> prompt = {};
  std::unique_ptr<KvCache> cache = nullptr;
  // Prompt and continuation. Those that the cache does not hold are to be put in: rows of the
  // prompt, then one token per call.
  std::vector<TokenId> tokens = {};
  std::int64_t output_rows = 1;  // wanted of the prompt's last tokens
  bool in_flight = false;
  bool decoding = false;  // the prompt is in

  // From an empty cache.
  void arrive(std::span<const TokenId> new_prompt, std::int64_t rows);
  void leave();
  // With no room for another token, back to the last token of the prompt.
  void wrap(std::int64_t context);
  [[nodiscard]] Result<Request> clone() const;
};

}  // namespace driftscope
