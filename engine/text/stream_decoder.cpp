// SPDX-License-Identifier: Apache-2.0
#include "engine/text/tokenizer.h"
#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

// Moves whole characters from the front of `pending`; stops inside an unfinished one.
std::string take_characters(std::string& pending) {
  std::string text;
  std::size_t position = 0;
  while (position < pending.size()) {
    const Utf8Step step = decode_utf8(pending, position);
    if (step.state == Utf8State::truncated) break;
    if (step.state == Utf8State::valid) {
      text.append(pending, position, step.length);
    } else {
      text += kReplacementCharacter;
    }
    position += step.length;
  }
  pending.erase(0, position);
  return text;
}

}  // namespace

StreamDecoder::StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer)
    : m_tokenizer(std::move(tokenizer)) {}

std::string StreamDecoder::push(TokenId id) {
  if (m_first) {
    const std::string piece = m_tokenizer->piece(id);
    if (!piece.empty()) {
      m_first = false;
      m_pending += m_tokenizer->decode(std::span<const TokenId>(&id, 1), false);
    }
  } else {
    m_pending += m_tokenizer->piece(id);
  }
  return take_characters(m_pending);
}

std::string StreamDecoder::finish() {
  std::string text = take_characters(m_pending);
  if (!m_pending.empty()) text += kReplacementCharacter;
  m_pending.clear();
  m_first = true;
  return text;
}

}  // namespace driftscope
