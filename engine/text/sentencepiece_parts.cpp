// SPDX-License-Identifier: Apache-2.0
#include "engine/text/sentencepiece_parts.h"

#include <nlohmann/json.hpp>

#include "engine/text/byte_token.h"
#include "engine/text/sentencepiece_bpe.h"

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
  auto done = set_part(normalizer_of(text), name, parts.normalizer);
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

std::unique_ptr<const WordModel> sentencepiece_bpe(const TokenizerParts& parts,
                                                   std::span<const float> scores,
                                                   std::span<const PieceType> types,
                                                   std::optional<std::int32_t> unknown) {
  auto model = std::make_unique<SentencePieceBpe>();
  model->scores.assign(scores.begin(), scores.end());
  model->unused.resize(types.size());
  model->byte_ids.fill(-1);
  model->unknown = unknown;
  for (std::size_t id = 0; id < types.size(); ++id) {
    const auto value = static_cast<std::int32_t>(id);
    const std::string& text = parts.tokens[id].text;
    if (types[id] == PieceType::byte) {
      model->byte_fallback = true;
      if (const auto byte = byte_of_token(text)) model->byte_ids[*byte] = value;
    } else if (types[id] == PieceType::normal || types[id] == PieceType::unused) {
      model->pieces.emplace(text, value);
      model->unused[id] = types[id] == PieceType::unused;
    } else if (types[id] == PieceType::unknown && !model->unknown) {
      model->unknown = value;
    }
  }
  model->index();
  return model;
}

}  // namespace driftscope
