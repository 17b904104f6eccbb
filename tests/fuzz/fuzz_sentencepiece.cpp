// SPDX-License-Identifier: Apache-2.0
// Any bytes as tokenizer.model, which then reads a fixed text: refused with one line, or ids that
// are in the vocabulary.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/text/sentencepiece_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::string_view kText = "The 12 na\xC3\xAFve <s> \xF0\x9F\x98\x80's e\xCC\x81\n\n  x";
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto file = driftscope::read_sentencepiece_file(bytes, "tokenizer.model");
  if (!file) {
    if (file.error().message.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  const nlohmann::json none = nlohmann::json::object();
  auto parts = driftscope::sentencepiece_tokenizer(std::move(*file), none, none, "tokenizer.model",
                                                   "tokenizer_config.json");
  if (!parts) return 0;
  const auto tokenizer = driftscope::make_tokenizer(std::move(*parts), "");
  if (!tokenizer) return 0;
  const auto tokens = (*tokenizer)->encode(kText, {});
  if (!tokens) return 0;
  for (const driftscope::EncodedToken& token : *tokens) {
    const bool inside = token.begin <= token.end && token.end <= kText.size();
    const auto id = static_cast<std::size_t>(token.id.value);
    if (!inside || id >= (*tokenizer)->vocabulary_size()) std::abort();
  }
  return 0;
}
