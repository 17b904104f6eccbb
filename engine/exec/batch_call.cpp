// SPDX-License-Identifier: Apache-2.0
#include "engine/exec/batch_call.h"

#include <algorithm>

#include "engine/exec/drafter.h"

namespace driftscope {
namespace {

CallEntry prompt_entry(Request& request, std::int64_t most_rows) {
  const std::int64_t put_in = request.cache->length();
  const auto left = static_cast<std::int64_t>(request.prompt.size()) - put_in;
  const std::int64_t taken = most_rows == 0 ? left : std::min(left, most_rows);
  const std::int64_t after = left - taken;
  const auto begin = request.prompt.begin() + put_in;
  return {.request = &request,
          .tokens = {begin, begin + taken},
          .output_rows = std::clamp<std::int64_t>(request.output_rows - after, 0, taken)};
}

CallEntry decode_entry(Request& request, std::int64_t drafts, std::int64_t context) {
  const std::int64_t room = context - request.cache->length() - 1;
  std::vector<TokenId> tokens{request.tokens.back()};
  const auto guesses = draft_tokens(request.tokens, std::clamp<std::int64_t>(drafts, 0, room));
  tokens.insert(tokens.end(), guesses.begin(), guesses.end());
  const auto rows = static_cast<std::int64_t>(tokens.size());
  return {.request = &request, .tokens = std::move(tokens), .output_rows = rows, .decodes = true};
}

void pad(BatchCall& call, std::int64_t rows, std::int64_t context) {
  while (call.rows < rows) {
    const std::int64_t count = std::min(rows - call.rows, context);
    call.entries.push_back(
        {.tokens = std::vector<TokenId>(static_cast<std::size_t>(count)), .output_rows = count});
    call.rows += count;
  }
}

}  // namespace

BatchCall plan_call(const Schedule& schedule, std::span<Request* const> requests,
                    std::int64_t context, CallPurpose purpose) {
  BatchCall call;
  call.phase = purpose == CallPurpose::score ? Phase::score : Phase::decode;
  const std::int64_t limit = schedule.prompt_rows_per_call();
  std::int64_t prompt_rows = 0;
  for (Request* request : requests) {
    if (request->decoding) {
      if (purpose == CallPurpose::score) continue;
      call.entries.push_back(decode_entry(*request, schedule.draft_tokens(), context));
    } else {
      if (limit > 0 && prompt_rows == limit) continue;
      call.entries.push_back(prompt_entry(*request, limit == 0 ? 0 : limit - prompt_rows));
      prompt_rows += static_cast<std::int64_t>(call.entries.back().tokens.size());
      if (purpose == CallPurpose::serve) call.phase = Phase::prefill;
    }
    call.rows += static_cast<std::int64_t>(call.entries.back().tokens.size());
  }
  if (call.phase == Phase::decode) pad(call, schedule.padded_rows(call.rows), context);
  return call;
}

}  // namespace driftscope
