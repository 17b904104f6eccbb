// SPDX-License-Identifier: Apache-2.0
#include "engine/text/tokenizer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <system_error>
#include <utility>

#include "engine/model/checkpoint.h"
#include "engine/model/files.h"
#include "engine/model/strict_json.h"
#include "engine/text/sentencepiece_file.h"
#include "engine/text/tokenizer_file.h"
#include "engine/text/word_cache.h"
#include "kernels/base/display_text.h"
#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBytesPerToken = 3;  // a guess, to reserve by
constexpr std::size_t kMaxTokenizerBytes = std::size_t{64} << 20U;

void encode_piece(const TextPiece& piece, const WordModel& model, WordCache& words,
                  std::vector<EncodedToken>& tokens) {
  const std::string_view text = piece.text();
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = model.part_end(text, begin);
    const std::size_t offset = piece.begin + begin;
    for (const WordToken& token : words.tokens_of(text.substr(begin, end - begin))) {
      const ByteSpan span = piece.source->span(offset + token.begin, offset + token.end);
      tokens.push_back({TokenId{token.id}, span.begin, span.end});
    }
    begin = end;
  }
}

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
                              TextArena& arena, WordCache& words,
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
                                            bool parse_special, TextArena& arena, WordCache& words,
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
    for (const TextPiece& piece : *pieces) encode_piece(piece, *m_parts.model, words, tokens);
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
  WordCache words(*m_parts.model);
  std::vector<EncodedToken> tokens;
  tokens.reserve(text.size() / kBytesPerToken + 2);
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

namespace {

// A file beside tokenizer.model; an empty object where it is not there.
Result<nlohmann::json> read_beside(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return nlohmann::json::object();
  auto document = read_strict_json(path, kMaxTokenizerBytes);
  if (document && !document->is_object()) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: is not an object; fix the tokenizer", display_path(path)));
  }
  return document;
}

Result<std::shared_ptr<const Tokenizer>> open_sentencepiece(const fs::path& path) {
  const auto bytes = read_whole_file(path, kMaxTokenizerBytes);
  if (!bytes) return tl::unexpected(bytes.error());
  const fs::path config_path = path.parent_path() / "tokenizer_config.json";
  const auto config = read_beside(config_path);
  if (!config) return tl::unexpected(config.error());
  const auto added = read_beside(path.parent_path() / "added_tokens.json");
  if (!added) return tl::unexpected(added.error());
  auto file = read_sentencepiece_file(*bytes, display_path(path));
  if (!file) return tl::unexpected(std::move(file.error()));
  auto parts = sentencepiece_tokenizer(std::move(*file), *config, *added, display_path(path),
                                       display_path(config_path));
  if (!parts) return tl::unexpected(std::move(parts.error()));
  return make_tokenizer(std::move(*parts), sha256_of_bytes(*bytes));
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> Tokenizer::open(const fs::path& directory) {
  const fs::path path = directory / "tokenizer.json";
  std::error_code error;
  if (!fs::exists(path, error)) {
    const fs::path model = directory / "tokenizer.model";
    if (fs::exists(model, error)) return open_sentencepiece(model);
    return fail(ErrorKind::malformed,
                fmt::format("{}: has no tokenizer.json and no tokenizer.model; download one, or "
                            "give token ids",
                            display_path(directory)));
  }
  const auto text = read_whole_file(path, kMaxTokenizerBytes);
  if (!text) return tl::unexpected(text.error());
  auto parts = read_tokenizer(*text, display_path(path));
  if (!parts) return tl::unexpected(std::move(parts.error()));
  return make_tokenizer(std::move(*parts), sha256_of_bytes(*text));
}

}  // namespace driftscope
