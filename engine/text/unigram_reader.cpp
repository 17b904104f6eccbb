// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/text/byte_token.h"
#include "engine/text/json_parts.h"
#include "engine/text/model_reader.h"
#include "engine/text/unigram.h"
#include "engine/text/vocabulary_room.h"

namespace driftscope {
namespace {

using nlohmann::json;

// [["token", score], …], the id being the position. Of equal tokens the last one counts.
Result<void> read_scored_vocabulary(const json& vocabulary, const std::string& name,
                                    TokenizerParts& parts, UnigramModel& model) {
  if (!vocabulary.is_array() || vocabulary.empty() || vocabulary.size() > kMaxTokenId) {
    return malformed_part(name, "is not a list of tokens and scores");
  }
  double lowest = std::numeric_limits<double>::infinity();
  parts.ids.reserve(vocabulary.size());
  parts.tokens.reserve(vocabulary.size());
  for (const json& entry : vocabulary) {
    const auto id = static_cast<std::int32_t>(parts.tokens.size());
    const bool is_pair =
        entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_number();
    if (!is_pair || !std::isfinite(entry[1].get<double>())) {
      return malformed_part(fmt::format("{}[{}]", name, id),
                            fmt::format("{} is not a token with its score", show_value(entry)));
    }
    const auto& text = entry[0].get_ref<const std::string&>();
    const double score = entry[1].get<double>();
    parts.tokens.push_back({.text = text, .present = true});
    parts.ids[text] = id;
    if (!text.empty()) model.pieces.insert(text, id);
    model.scores.push_back(score);
    lowest = std::min(lowest, score);
  }
  model.unknown_score = lowest - kUnknownPenalty;
  return {};
}

}  // namespace

Result<void> read_unigram_model(const json& description, const std::string& name,
                                TokenizerParts& parts) {
  const auto vocabulary = description.find("vocab");
  if (vocabulary == description.end()) return malformed_part(name, "vocab is missing");
  auto model = std::make_unique<UnigramModel>();
  auto done = read_scored_vocabulary(*vocabulary, name + ".vocab", parts, *model);
  if (!done) return done;
  ConfigFields fields(description, name);
  model->byte_fallback = fields.flag("byte_fallback", false);
  if (!fields.good()) return fields.failure();
  const json* unknown = fields.find("unk_id");
  const auto id = unknown == nullptr ? std::nullopt : integer_in(*unknown, kMaxTokenId);
  if (!id || static_cast<std::size_t>(*id) >= parts.tokens.size()) {
    return malformed_part(name, fmt::format("unk_id {} is not an id of vocab",
                                            unknown == nullptr ? "null" : show_value(*unknown)));
  }
  model->unknown = static_cast<std::int32_t>(*id);
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const auto found = parts.ids.find(token_of_byte(static_cast<std::uint8_t>(byte)));
    model->byte_ids[byte] = found == parts.ids.end() ? -1 : found->second;
  }
  parts.model = std::move(model);
  return {};
}

}  // namespace driftscope
