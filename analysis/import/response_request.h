// SPDX-License-Identifier: Apache-2.0
// What was asked for, where a file holds the request beside the response. Internal to
// analysis/import.
#pragma once

#include "analysis/import/json_document.h"
#include "analysis/import/response.h"

namespace driftscope {

// An object, or a text that holds one: model, temperature, top_p, seed, number of alternatives,
// prompt. Fills what the response itself does not say, and keeps what was asked in
// `response.request`.
void note_request(JsonValue request, Response& response);

}  // namespace driftscope
