// SPDX-License-Identifier: Apache-2.0
// Guesses the next tokens of a sequence without a model, for speculative decoding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/base/types.h"

namespace driftscope {

// Prompt lookup: the latest earlier place where the last two tokens stand (else the last one
// alone), and what followed there; where the sequence ends the draft itself goes on, so that a loop
// is continued as a loop. Where nothing is found the last token is repeated.
// sequence: at least one token. Returns exactly `count` tokens.
[[nodiscard]] std::vector<TokenId> draft_tokens(std::span<const TokenId> sequence,
                                                std::int64_t count);

}  // namespace driftscope
