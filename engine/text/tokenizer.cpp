// SPDX-License-Identifier: Apache-2.0
#include "engine/text/tokenizer.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "engine/model/checkpoint.h"
#include "engine/model/files.h"
#include "engine/text/tokenizer_file.h"
#include "kernels/base/display_text.h"
#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxTokenizerBytes = std::size_t{64} << 20U;

// One call of encode(): words seen before are not encoded again.
class WordEncoder {
 public:
  explicit WordEncoder(const WordModel& model) : m_model(model) {}

  void encode(const TextPiece& word, std::vector<EncodedToken>& tokens) {
    const std::string_view text = word.text();
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = m_model.part_end(text, begin);
      const std::size_t offset = word.begin + begin;
      for (const WordToken& token : lookup(text.substr(begin, end - begin))) {
        const ByteSpan span = word.source->span(offset + token.begin, offset + token.end);
        tokens.push_back({TokenId{token.id}, span.begin, span.end});
      }
      begin = end;
    }
  }

 private:
  static constexpr std::size_t kMaxCachedBytes = 64;
  static constexpr std::size_t kMaxCachedWords = 65536;

  const std::vector<WordToken>& lookup(std::string_view word) {
    if (word.size() > kMaxCachedBytes || m_cache.size() >= kMaxCachedWords) {
      const auto found = m_cache.find(word);
      if (found != m_cache.end()) return found->second;
      m_scratch.clear();
      m_model.encode_word(word, m_scratch);
      return m_scratch;
    }
    const auto [slot, inserted] = m_cache.try_emplace(word);
    if (inserted) m_model.encode_word(word, slot->second);
    return slot->second;
  }

  const WordModel& m_model;
  std::unordered_map<std::string_view, std::vector<WordToken>> m_cache;  // views into the arena
  std::vector<WordToken> m_scratch;
};

class ModelTokenizer final : public Tokenizer {
 public:
  ModelTokenizer(TokenizerParts parts, std::string sha256)
      : m_parts(std::move(parts)), m_sha256(std::move(sha256)) {}
  Result<void> prepare_pieces();

  Result<std::vector<EncodedToken>> encode(std::string_view text,
                                           const EncodeOptions& options) const override;
  std::string piece(TokenId id) const override {
    return entry(id) == nullptr ? std::string() : m_pieces[static_cast<std::size_t>(id.value)];
  }
  std::string decode(std::span<const TokenId> ids, bool skip_special_tokens) const override;
  std::size_t vocabulary_size() const override { return m_parts.tokens.size(); }
  bool is_special(TokenId id) const override {
    const TokenEntry* found = entry(id);
    return found != nullptr && found->special;
  }
  std::string_view kind() const override { return m_parts.model->kind(); }
  std::optional<TokenId> id_of(std::string_view text) const override {
    const auto found = m_parts.ids.find(text);
    if (found == m_parts.ids.end()) return std::nullopt;
    return TokenId{found->second};
  }
  const std::string& sha256() const override { return m_sha256; }

 private:
  [[nodiscard]] const TokenEntry* entry(TokenId id) const {
    if (id.value < 0 || static_cast<std::size_t>(id.value) >= m_parts.tokens.size()) return nullptr;
    const TokenEntry& found = m_parts.tokens[static_cast<std::size_t>(id.value)];
    return found.present ? &found : nullptr;
  }
  Result<void> encode_segment(std::string_view text, std::size_t offset, bool parse_special,
                              TextArena& arena, WordEncoder& words,
                              std::vector<EncodedToken>& tokens) const;

  TokenizerParts m_parts;
  std::string m_sha256;
  std::vector<std::string> m_pieces;  // by id: bytes inside a sequence
};

Result<void> ModelTokenizer::prepare_pieces() {
  m_pieces.reserve(m_parts.tokens.size());
  for (const TokenEntry& token : m_parts.tokens) {
    auto bytes = m_parts.decoder.decode_token(token.text, false, token.added);
    if (!bytes) return tl::unexpected(std::move(bytes.error()));
    m_pieces.push_back(std::move(*bytes));
  }
  return {};
}

// Text between added tokens that are matched in the text as given.
Result<void> ModelTokenizer::encode_segment(std::string_view text, std::size_t offset,
                                            bool parse_special, TextArena& arena,
                                            WordEncoder& words,
                                            std::vector<EncodedToken>& tokens) const {
  auto normalized = m_parts.normalizer.apply(AlignedText::view_of(text, offset));
  if (!normalized) return tl::unexpected(std::move(normalized.error()));
  arena.push_back(std::move(*normalized));
  const AlignedText& source = arena.back();
  for (const AddedSplit& split : m_parts.added_normalized.split(source.text(), parse_special)) {
    if (split.token != nullptr) {
      const ByteSpan span = source.span(split.begin, split.end);
      tokens.push_back({TokenId{split.token->id}, span.begin, span.end});
      continue;
    }
    const auto pieces = m_parts.pre_tokenizer.apply({&source, split.begin, split.end}, arena);
    if (!pieces) return tl::unexpected(pieces.error());
    for (const TextPiece& piece : *pieces) words.encode(piece, tokens);
  }
  return {};
}

Result<std::vector<EncodedToken>> ModelTokenizer::encode(std::string_view text,
                                                         const EncodeOptions& options) const {
  if (text.size() > kMaxTextBytes) {
    return fail(ErrorKind::malformed, fmt::format("text of {} bytes is longer than the {} that can "
                                                  "be tokenised; shorten it",
                                                  text.size(), kMaxTextBytes));
  }
  if (const std::size_t bad = find_invalid_utf8(text); bad != std::string_view::npos) {
    return fail(ErrorKind::malformed,
                fmt::format("text is not valid UTF-8 at byte {} ({}); convert it to UTF-8", bad,
                            escape_for_display(text.substr(bad, 1))));
  }
  TextArena arena;
  WordEncoder words(*m_parts.model);
  std::vector<EncodedToken> tokens;
  if (options.add_special_tokens) {
    for (const std::int32_t id : m_parts.post_processor.before) tokens.push_back({TokenId{id}});
  }
  for (const AddedSplit& split : m_parts.added.split(text, options.parse_special_tokens)) {
    if (split.token != nullptr) {
      tokens.push_back({TokenId{split.token->id}, split.begin, split.end});
      continue;
    }
    auto done = encode_segment(text.substr(split.begin, split.end - split.begin), split.begin,
                               options.parse_special_tokens, arena, words, tokens);
    if (!done) return tl::unexpected(std::move(done.error()));
  }
  if (options.add_special_tokens) {
    for (const std::int32_t id : m_parts.post_processor.after) {
      tokens.push_back({TokenId{id}, text.size(), text.size()});
    }
  }
  return tokens;
}

std::string ModelTokenizer::decode(std::span<const TokenId> ids, bool skip_special_tokens) const {
  std::string joined;
  bool is_first = true;
  for (const TokenId id : ids) {
    const TokenEntry* token = entry(id);
    if (token == nullptr || (skip_special_tokens && token->special)) continue;
    if (is_first) {
      // prepare_pieces() has run the same steps on every token.
      joined += m_parts.decoder.decode_token(token->text, true, token->added).value_or("");
    } else {
      joined += m_pieces[static_cast<std::size_t>(id.value)];
    }
    is_first = false;
  }
  auto finished = m_parts.decoder.finish(joined);
  return finished ? std::move(*finished) : joined;
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> make_tokenizer(TokenizerParts parts, std::string sha256) {
  auto tokenizer = std::make_shared<ModelTokenizer>(std::move(parts), std::move(sha256));
  if (auto prepared = tokenizer->prepare_pieces(); !prepared) {
    return tl::unexpected(std::move(prepared.error()));
  }
  return tokenizer;
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::open(const fs::path& directory) {
  const fs::path path = directory / "tokenizer.json";
  std::error_code error;
  if (!fs::exists(path, error)) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: has no tokenizer.json; download it, or give token ids",
                            display_path(directory)));
  }
  const auto text = read_whole_file(path, kMaxTokenizerBytes);
  if (!text) return tl::unexpected(text.error());
  auto parts = read_tokenizer(*text, display_path(path));
  if (!parts) return tl::unexpected(std::move(parts.error()));
  return make_tokenizer(std::move(*parts), sha256_of_bytes(*text));
}

}  // namespace driftscope
