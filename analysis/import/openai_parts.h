// SPDX-License-Identifier: Apache-2.0
// Parts of OpenAI-like replies that tell about the prompt. Internal to analysis/import.
#pragma once

#include "analysis/import/json_document.h"
#include "analysis/import/response.h"

namespace driftscope {

// [null, {"<id>": {logprob, rank, decoded_token}}, …] of vLLM. Which entry is the prompt's own
// token is not marked: prompt_token_ids says, or a rank beyond the list's length, or a list of one.
void read_prompt_logprobs(JsonValue list, Response& response);
// {text, logprobs: {tokens, …}} of Together's echo.
void read_together_prompt(JsonValue prompt, Response& response);
// Legacy completions with echo: the prompt's tokens come first and the first has no logprob. Moves
// them to the prompt, where the request's prompt or usage says how many they are; else notes that
// it cannot be told. Needs the request, where the file has one.
void split_echo(Response& response, ResponseChoice& choice);

}  // namespace driftscope
