// SPDX-License-Identifier: Apache-2.0
// From what people have on disk to responses: a bare body, a list of bodies, JSON Lines, a batch's
// lines, an SSE or NDJSON stream, output of "curl -i", or a HAR file.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/import/response.h"
#include "kernels/base/result.h"

namespace driftscope {

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

}  // namespace driftscope
