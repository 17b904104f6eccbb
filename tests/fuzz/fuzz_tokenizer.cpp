// SPDX-License-Identifier: Apache-2.0
// Any bytes as tokenizer.json, which then reads a fixed text: refused with one line, or tokens
// whose spans lie inside the text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/text/tokenizer_file.h"

namespace {

constexpr std::string_view kText = "The 12 na\xC3\xAFve <s> \xF0\x9F\x98\x80's e\xCC\x81\n\n  x";

void encode_words(const driftscope::TokenizerParts& parts) {
  driftscope::TextArena arena;
  auto normalized = parts.normalizer.apply(driftscope::AlignedText::view_of(kText, 0));
  if (!normalized) return;
  arena.push_back(std::move(*normalized));
  const driftscope::AlignedText& source = arena.back();
  const auto words = parts.pre_tokenizer.apply({&source, 0, source.size()}, arena);
  if (!words) return;
  std::vector<driftscope::WordToken> tokens;
  for (const driftscope::TextPiece& word : *words) {
    tokens.clear();
    parts.model->encode_word(word.text(), tokens);
    for (const driftscope::WordToken& token : tokens) {
      const auto span = word.source->span(word.begin + token.begin, word.begin + token.end);
      if (span.begin > span.end || span.end > kText.size()) std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parts = driftscope::read_tokenizer(text, "tokenizer.json");
  if (!parts) {
    if (parts.error().message.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  encode_words(*parts);
  for (const driftscope::TokenEntry& token : parts->tokens) {
    static_cast<void>(parts->decoder.decode_token(token.text, true, token.added));
  }
  return 0;
}
