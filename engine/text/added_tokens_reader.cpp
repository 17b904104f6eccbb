// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "engine/text/json_parts.h"
#include "engine/text/model_reader.h"
#include "engine/text/vocabulary_room.h"

namespace driftscope {

using nlohmann::json;

namespace {

Result<AddedToken> read_added_token(const json& item, const std::string& name) {
  ConfigFields fields(item, name);
  AddedToken token;
  token.content = fields.text("content", "");
  token.special = fields.flag("special", false);
  token.normalized = fields.flag("normalized", !token.special);
  token.single_word = fields.flag("single_word", false);
  token.lstrip = fields.flag("lstrip", false);
  token.rstrip = fields.flag("rstrip", false);
  if (token.content.empty()) fields.refuse("content is missing or empty; fix the tokenizer");
  if (token.content.size() > kMaxAddedTokenBytes) {
    fields.refuse(fmt::format("content has {} bytes, more than {}; fix the tokenizer",
                              token.content.size(), kMaxAddedTokenBytes));
  }
  const json* value = fields.find("id");
  const auto id = value == nullptr ? std::nullopt : integer_in(*value, kMaxTokenId);
  if (!id) {
    fields.refuse(fmt::format("id {} is not an integer from 0 to {}; fix the tokenizer",
                              value == nullptr ? "null" : show_value(*value), kMaxTokenId));
  }
  if (!fields.good()) return fields.failure();
  token.id = static_cast<std::int32_t>(*id);
  return token;
}

// Puts the token into the lists by id and by text; it may be one of the vocabulary.
Result<void> register_token(const AddedToken& token, const std::string& name,
                            TokenizerParts& parts) {
  if (auto room = make_room(name, token.id, parts.ids.size() + 1, parts.tokens); !room) {
    return room;
  }
  TokenEntry& entry = parts.tokens[static_cast<std::size_t>(token.id)];
  if (entry.present && entry.text != token.content) {
    return malformed_part(name, fmt::format("id {} belongs to {} and to {}", token.id,
                                            shown_token(entry.text), shown_token(token.content)));
  }
  const auto [slot, inserted] = parts.ids.emplace(token.content, token.id);
  if (slot->second != token.id) {
    return malformed_part(name, fmt::format("token {} has id {} here and {} in vocab",
                                            shown_token(token.content), token.id, slot->second));
  }
  if (entry.added) {
    return malformed_part(name, fmt::format("token {} is there twice", shown_token(token.content)));
  }
  entry = {.text = token.content, .present = true, .added = true, .special = token.special};
  return {};
}

}  // namespace

Result<void> read_added_tokens(const json& list, const std::string& name, TokenizerParts& parts) {
  if (list.is_null()) return {};
  if (!list.is_array()) return malformed_part(name, "is not a list");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string item_name = fmt::format("{}[{}]", name, i);
    const auto token = read_added_token(list[i], item_name);
    if (!token) return tl::unexpected(token.error());
    if (auto done = register_token(*token, item_name, parts); !done) return done;
    if (!token->normalized) {
      parts.added.add(*token, token->content);
      continue;
    }
    const auto text = parts.normalizer.apply(AlignedText::view_of(token->content, 0));
    if (!text) return tl::unexpected(text.error());
    parts.added_normalized.add(*token, text->text());
  }
  return {};
}

}  // namespace driftscope
