// SPDX-License-Identifier: Apache-2.0
// Small tokenizer.json files made in the test, and short ways to ask them.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer.h"

namespace driftscope {

// A BPE model whose vocabulary is `tokens` in order of their ids, and whose merges are
// "left right" in order of their ranks.
[[nodiscard]] nlohmann::json bpe_json(const std::vector<std::string>& tokens,
                                      const std::vector<std::string>& merges);
// All 256 letters of the byte alphabet as ids 0 to 255 by byte value, then the results of
// `merges` (written in the alphabet) from id 256 on; pre-tokeniser and decoder ByteLevel
// without prefix space and with the pattern.
[[nodiscard]] nlohmann::json byte_level_json(const std::vector<std::string>& merges);

[[nodiscard]] Result<std::shared_ptr<const Tokenizer>> open_json(const nlohmann::json& document);
[[nodiscard]] Result<std::shared_ptr<const Tokenizer>> open_text(std::string_view document);
// Fails the test where the document is refused.
[[nodiscard]] std::shared_ptr<const Tokenizer> must_open(const nlohmann::json& document);

[[nodiscard]] std::vector<int> ids_of(const Tokenizer& tokenizer, std::string_view text,
                                      const EncodeOptions& options = {});
// "id[begin,end) …"
[[nodiscard]] std::string spans_of(const Tokenizer& tokenizer, std::string_view text,
                                   const EncodeOptions& options = {});

}  // namespace driftscope
