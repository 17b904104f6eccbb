// SPDX-License-Identifier: Apache-2.0
// Findings that read the text of the prompt. Internal to the prompt findings.
#pragma once

#include <vector>

#include "engine/text/prompt_findings.h"

namespace driftscope {

// The prompt's text (what was tokenised, else the ids decoded) tokenised with special tokens parsed
// and none added; empty where it cannot be.
[[nodiscard]] std::vector<TokenId> retokenised(const PromptFacts& facts);

void find_template_twice(const PromptFacts& facts, std::vector<PromptFinding>& findings);
void find_trailing_whitespace(const PromptFacts& facts, std::vector<PromptFinding>& findings);

}  // namespace driftscope
