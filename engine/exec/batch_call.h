// SPDX-License-Identifier: Apache-2.0
// The rows of one forward call, as the timetable (schedule.h) asks for them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/exec/request.h"
#include "engine/exec/schedule.h"

namespace driftscope {

struct CallEntry {
  Request* request = nullptr;   // null: padding
  std::vector<TokenId> tokens;  // at least one
  std::int64_t output_rows = 0;
  bool decodes = false;  // tokens[0] is the last token of its sequence, the others are drafts
};

struct BatchCall {
  Phase phase = Phase::decode;
  std::vector<CallEntry> entries;  // in batch order, padding last
  std::int64_t rows = 0;           // M, padding included
};

// What the requests want from a call.
enum class CallPurpose : std::uint8_t {
  serve,  // prompts and decode rows; Phase::prefill if there is a row of a prompt among them
  score,  // prompts only, without padding; Phase::score
};

// requests: those in flight, in batch order. context: positions that a sequence can hold.
// A padding row is token 0; each `context` padding rows make an entry of their own.
[[nodiscard]] BatchCall plan_call(const Schedule& schedule, std::span<Request* const> requests,
                                  std::int64_t context, CallPurpose purpose);

}  // namespace driftscope
