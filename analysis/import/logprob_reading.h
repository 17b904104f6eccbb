// SPDX-License-Identifier: Apache-2.0
// The few ways in which servers write tokens and their logprobs.
#pragma once

#include <vector>

#include "analysis/import/json_document.h"
#include "analysis/import/response.h"

namespace driftscope {

// Number, null, NaN, "-Infinity" as text, sentinel, floor.
[[nodiscard]] Logprob read_logprob(JsonValue value);
// The bytes of a token: the list of bytes where given; else "token_id:N" becomes an id,
// "bytes:\xf0…" (legacy completions) its bytes, and anything else its own text.
[[nodiscard]] TokenText read_token(JsonValue text, JsonValue bytes, JsonValue id);

// [{token, logprob, bytes, top_logprobs, id | token_id}], also with prob and top_probs.
void read_token_objects(JsonValue list, ResponseChannel& channel);
// Reads the alternatives that were left out of a step; `document` is used for it.
void read_left_out(ResponseStep& step, JsonDocument& document);
// {tokens, token_logprobs, top_logprobs, text_offset, token_ids}. `prompt_characters`: tokens that
// begin before it are the prompt's and go to `prompt`; empty text_offset or a negative one: none.
void read_legacy_arrays(JsonValue logprobs, std::size_t prompt_characters,
                        std::vector<ResponseStep>& prompt, ResponseChannel& channel);
// [[logprob, id, text | null], …] with top lists of the same form.
[[nodiscard]] std::vector<ResponseStep> read_triples(JsonValue list, JsonValue top);

[[nodiscard]] std::vector<std::int64_t> read_ids(JsonValue list);
// Ids listed apart from the steps, where they are as many and a step has none yet.
void adopt_ids(const std::vector<std::int64_t>& ids, ResponseChannel& channel);

}  // namespace driftscope
