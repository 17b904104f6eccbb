// SPDX-License-Identifier: Apache-2.0
// The keys "tokenizer.…" of a GGUF file's metadata.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/gguf.h"
#include "engine/text/gguf_tokenizer.h"

namespace driftscope {

// Nothing where the file carries no vocabulary (tokenizer.ggml.model "none", or absent). `name`
// begins messages. Errors: malformed: a key of another type, lists of different lengths.
[[nodiscard]] Result<std::optional<GgufVocabulary>> read_gguf_vocabulary(const GgufHeader& header,
                                                                         const std::string& name);

// What the file brings for chats.
struct GgufChat {
  std::optional<std::string> chat_template;  // tokenizer.chat_template
  // "bos_token" and the like with their texts, as a template sees them.
  std::vector<std::pair<std::string, std::string>> special_tokens;
};
// Errors: malformed, a key of another type.
[[nodiscard]] Result<GgufChat> read_gguf_chat(const GgufHeader& header, const std::string& name);

// Of the file, or of any part of a split one; null where it carries no vocabulary.
[[nodiscard]] Result<std::shared_ptr<const Tokenizer>> open_gguf_tokenizer(
    const std::filesystem::path& path);
[[nodiscard]] Result<GgufChat> open_gguf_chat(const std::filesystem::path& path);

}  // namespace driftscope
