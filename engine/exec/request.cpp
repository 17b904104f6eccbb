// SPDX-License-Identifier: Apache-2.0
#include "engine/exec/request.h"

namespace driftscope {

void Request::arrive(std::span<const TokenId> new_prompt, std::int64_t rows) {
  cache->truncate(0);
  tokens.assign(new_prompt.begin(), new_prompt.end());
  prompt = tokens;
  output_rows = rows;
  in_flight = true;
  decoding = false;
}

void Request::leave() {
  cache->truncate(0);
  tokens.clear();
  in_flight = false;
  decoding = false;
}

void Request::wrap(std::int64_t context) {
  if (!decoding || cache->length() < context) return;
  cache->truncate(static_cast<std::int64_t>(prompt.size()) - 1);
  tokens = prompt;
}

Result<Request> Request::clone() const {
  auto own = cache->clone();
  if (!own) return tl::unexpected(own.error());
  return Request{.prompt = prompt,
                 .cache = *std::move(own),
                 .tokens = tokens,
                 .output_rows = output_rows,
                 .in_flight = in_flight,
                 .decoding = decoding};
}

}  // namespace driftscope
