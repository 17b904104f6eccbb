// SPDX-License-Identifier: Apache-2.0
// The "model" and "added_tokens" of tokenizer.json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/text/tokenizer_file.h"

namespace driftscope {

// Fills tokens, ids and model. Needs parts.pre_tokenizer.
[[nodiscard]] Result<void> read_bpe_model(const nlohmann::json& model, const std::string& name,
                                          TokenizerParts& parts);
// Fills tokens, ids and the matchers. Needs parts.normalizer; after read_bpe_model.
[[nodiscard]] Result<void> read_added_tokens(const nlohmann::json& list, const std::string& name,
                                             TokenizerParts& parts);
}  // namespace driftscope
