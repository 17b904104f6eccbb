// SPDX-License-Identifier: Apache-2.0
// The few ways in which servers write tokens and their logprobs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
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
// {tokens, token_logprobs, top_logprobs, token_ids}, the longest list leads. Whether the first of
// them are an echoed prompt is not seen here.
void read_legacy_arrays(JsonValue logprobs, ResponseChannel& channel);
// {"text": logprob, …}, and lists of objects, of one token's alternatives.
void read_legacy_top(JsonValue entries, std::vector<TokenAlternative>& others);
// [[logprob, id, text | null], …] with top lists of the same form.
[[nodiscard]] std::vector<ResponseStep> read_triples(JsonValue list, JsonValue top);

// "\xf0\x9f" as characters, hexadecimal pairs only. Empty where it is something else.
[[nodiscard]] std::optional<std::string> escaped_bytes(std::string_view text);
// Also digits in quotes, as proto3 writes integers of 64 bits.
[[nodiscard]] std::optional<std::int64_t> integer_of(JsonValue value);
[[nodiscard]] std::optional<double> number_of(JsonValue value);

[[nodiscard]] std::vector<std::int64_t> read_ids(JsonValue list);
// Ids listed apart from the steps, where they are as many, or one more for the end mark.
void adopt_ids(const std::vector<std::int64_t>& ids, ResponseChannel& channel);

}  // namespace driftscope
