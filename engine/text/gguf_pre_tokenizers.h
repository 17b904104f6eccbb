// SPDX-License-Identifier: Apache-2.0
// Pre-tokenisers by the names that GGUF files give them. A name stands for a published
// tokenizer; the patterns are those of its tokenizer.json (tiktoken's for the GPT family).
#pragma once

#include <span>
#include <string_view>

namespace driftscope {

struct GgufPreTokenizer {
  std::string_view name;
  std::span<const std::string_view> patterns;  // each cuts what the ones before it left
  bool ignore_merges = false;                  // a word that is a token as a whole is that token
  bool adds_bos = false;                       // where the file does not say
};

[[nodiscard]] std::span<const GgufPreTokenizer> gguf_pre_tokenizers();
[[nodiscard]] const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name);

}  // namespace driftscope
