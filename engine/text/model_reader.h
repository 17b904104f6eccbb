// SPDX-License-Identifier: Apache-2.0
// The "model" and "added_tokens" of tokenizer.json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "engine/text/tokenizer_file.h"

namespace driftscope {

// Fills tokens, ids and model. Needs parts.pre_tokenizer.
[[nodiscard]] Result<void> read_model(const nlohmann::json& model, const std::string& name,
                                      TokenizerParts& parts);
[[nodiscard]] Result<void> read_unigram_model(const nlohmann::json& model, const std::string& name,
                                              TokenizerParts& parts);
// The byte-level BPE model with merges "left right" in order of rank. Needs parts.pre_tokenizer,
// parts.tokens and parts.ids.
[[nodiscard]] Result<void> read_merge_list(std::span<const std::string> merges, bool ignore_merges,
                                           const std::string& name, TokenizerParts& parts);
// Fills tokens, ids and the matchers. Needs parts.normalizer; after read_model.
[[nodiscard]] Result<void> read_added_tokens(const nlohmann::json& list, const std::string& name,
                                             TokenizerParts& parts);
}  // namespace driftscope
