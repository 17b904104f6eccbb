// SPDX-License-Identifier: Apache-2.0
#include "engine/text/sentencepiece_parts.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "engine/text/byte_token.h"
#include "engine/text/sentencepiece_bpe.h"
#include "engine/text/unigram.h"

namespace driftscope {
namespace {

using nlohmann::json;

const std::string kMarker(kSpaceMarker);

template <class Part>
Result<void> set_part(const json& description, const std::string& name, Part& target) {
  auto part = Part::read(description, name);
  if (!part) return tl::unexpected(std::move(part.error()));
  target = std::move(*part);
  return {};
}

json normalizer_of(const SentencePieceText& text) {
  json steps = json::array();
  if (text.prefix == SpacePrefix::every_segment) {
    steps.push_back({{"type", "Prepend"}, {"prepend", kMarker}});
  }
  if (text.prefix != SpacePrefix::first_segment) {
    steps.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kMarker}});
  }
  return {{"type", "Sequence"}, {"normalizers", steps}};
}

json decoder_of(const SentencePieceText& text) {
  json steps = json::array();
  steps.push_back({{"type", "Replace"}, {"pattern", {{"String", kMarker}}}, {"content", " "}});
  steps.push_back({{"type", "ByteFallback"}});
  steps.push_back({{"type", "Fuse"}});
  if (text.prefix != SpacePrefix::none) {
    steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  return {{"type", "Sequence"}, {"decoders", steps}};
}

}  // namespace

std::string with_spaces(std::string_view piece) {
  std::string text;
  for (std::size_t i = 0; i < piece.size();) {
    const bool marker = piece.substr(i).starts_with(kSpaceMarker);
    text += marker ? ' ' : piece[i];
    i += marker ? kSpaceMarker.size() : 1;
  }
  return text;
}

Result<void> set_sentencepiece_text(const SentencePieceText& text, const std::string& name,
                                    TokenizerParts& parts) {
  auto normalizer = Normalizer::sentencepiece(text.charsmap, text.remove_extra_whitespaces, name);
  if (!normalizer) return tl::unexpected(std::move(normalizer.error()));
  Normalizer spaces;
  auto done = set_part(normalizer_of(text), name, spaces);
  normalizer->append(std::move(spaces));
  parts.normalizer = std::move(*normalizer);
  if (done && text.prefix == SpacePrefix::first_segment) {
    const json split{{"type", "Metaspace"},
                     {"replacement", kMarker},
                     {"prepend_scheme", "first"},
                     {"split", false}};
    done = set_part(split, name, parts.pre_tokenizer);
  }
  if (done) done = set_part(decoder_of(text), name, parts.decoder);
  return done;
}

namespace {

// The ids of byte pieces; whether there are any.
bool find_bytes(std::span<const std::string> pieces, std::span<const PieceType> types,
                std::array<std::int32_t, 256>& byte_ids) {
  byte_ids.fill(-1);
  bool any = false;
  for (std::size_t id = 0; id < types.size(); ++id) {
    if (types[id] != PieceType::byte) continue;
    any = true;
    if (const auto byte = byte_of_token(pieces[id])) {
      byte_ids[*byte] = static_cast<std::int32_t>(id);
    }
  }
  return any;
}

std::optional<std::int32_t> unknown_piece(std::span<const PieceType> types) {
  const auto found = std::ranges::find(types, PieceType::unknown);
  if (found == types.end()) return std::nullopt;
  return static_cast<std::int32_t>(found - types.begin());
}

}  // namespace

std::unique_ptr<const WordModel> sentencepiece_bpe(std::span<const std::string> pieces,
                                                   std::span<const float> scores,
                                                   std::span<const PieceType> types,
                                                   std::optional<std::int32_t> unknown) {
  auto model = std::make_unique<SentencePieceBpe>();
  model->scores.assign(scores.begin(), scores.end());
  model->unused.resize(types.size());
  model->byte_fallback = find_bytes(pieces, types, model->byte_ids);
  model->unknown = unknown ? unknown : unknown_piece(types);
  for (std::size_t id = 0; id < types.size(); ++id) {
    if (types[id] != PieceType::normal && types[id] != PieceType::unused) continue;
    model->pieces.emplace(pieces[id], static_cast<std::int32_t>(id));
    model->unused[id] = types[id] == PieceType::unused;
  }
  model->index();
  return model;
}

std::unique_ptr<const WordModel> sentencepiece_unigram(std::span<const std::string> pieces,
                                                       std::span<const float> scores,
                                                       std::span<const PieceType> types,
                                                       std::optional<std::int32_t> unknown) {
  auto model = std::make_unique<UnigramModel>();
  model->scores.assign(scores.begin(), scores.end());
  model->single_precision = true;
  model->byte_fallback = find_bytes(pieces, types, model->byte_ids);
  model->unknown = unknown ? unknown : unknown_piece(types);
  float lowest = 0;
  bool any = false;
  for (std::size_t id = 0; id < types.size(); ++id) {
    if (types[id] != PieceType::normal || pieces[id].empty()) continue;
    model->pieces.insert(pieces[id], static_cast<std::int32_t>(id));
    lowest = any ? std::min(lowest, scores[id]) : scores[id];
    any = true;
  }
  model->unknown_score = static_cast<double>(lowest - static_cast<float>(kUnknownPenalty));
  return model;
}

}  // namespace driftscope
