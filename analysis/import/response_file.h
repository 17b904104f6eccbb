// SPDX-License-Identifier: Apache-2.0
// From what people have on disk to responses: a bare body, a list of bodies, JSON Lines, a batch's
// lines, an SSE or NDJSON stream, output of "curl -i", or a HAR file.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/import/json_document.h"
#include "analysis/import/response.h"
#include "kernels/base/result.h"

namespace driftscope {

// Format of what holds the headers of an answer and ends where its body begins.
inline constexpr std::string_view kHeadersOnly = "headers";

// Takes the responses one by one, so that a file of many need not be held. An error ends the
// reading and is returned.
using ResponseTaker = std::function<Result<void>(Response&&)>;

// `name` begins the messages and the sources. Errors: malformed, with the line or byte and what
// was expected, where nothing in the text can be read; a single bad line among good ones becomes
// a response with `error`.
[[nodiscard]] Result<void> read_responses(std::string_view text, std::string_view name,
                                          const ResponseTaker& take);
[[nodiscard]] Result<std::vector<Response>> read_responses(std::string_view text,
                                                           std::string_view name);

// One line of a file of lines. It is given as one response or more; where it cannot be read, as
// one with `error`. `document` is used for it and keeps its memory. Errors: only those of `take`.
[[nodiscard]] Result<void> read_response_line(std::string_view line, std::string_view name,
                                              std::int64_t number, JsonDocument& document,
                                              const ResponseTaker& take);
// Whether a line is an event of an answer's stream, not an answer of its own.
[[nodiscard]] bool is_line_of_stream(JsonValue value);

}  // namespace driftscope
