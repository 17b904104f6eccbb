// SPDX-License-Identifier: Apache-2.0
// tokenizer.model with the settings that lie beside it in tokenizer_config.json.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "engine/model/config_fields.h"
#include "engine/text/model_reader.h"
#include "engine/text/sentencepiece_file.h"
#include "engine/text/vocabulary_room.h"

namespace driftscope {
namespace {

using nlohmann::json;

// Their tokenizers shift the ids of the SentencePiece model; only their tokenizer.json says how.
constexpr std::array<std::string_view, 12> kShiftedClasses{
    "XLMRoberta", "Camembert", "MBart",  "Nllb",        "M2M100",  "Pegasus",
    "XGLM",       "BigBird",   "PLBart", "Speech2Text", "Barthez", "DebertaV2"};

std::string class_of(const json& config) {
  const auto found = config.find("tokenizer_class");
  return found != config.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// "bos_token": "<s>", or an object with its content.
std::optional<std::string> token_text(const json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_object()) return std::nullopt;
  const auto content = found->find("content");
  if (content == found->end() || !content->is_string()) return std::nullopt;
  return content->get<std::string>();
}

class Builder {
 public:
  Builder(SentencePieceFile file, const json& config, const json& added, const std::string& name,
          const std::string& config_name)
      : m_file(std::move(file)),
        m_config(config),
        m_added(added),
        m_name(name),
        m_config_name(config_name) {}

  Result<TokenizerParts> build() {
    auto done = check_class();
    if (done) done = set_text();
    if (done) done = add_pieces();
    if (done) done = add_configured_tokens();
    if (done) done = add_own_tokens();
    if (done) set_model();
    if (done) done = add_ends();
    if (!done) return tl::unexpected(std::move(done.error()));
    return std::move(m_parts);
  }

 private:
  Result<void> check_class() const {
    const std::string name = class_of(m_config);
    const bool shifted = std::ranges::any_of(
        kShiftedClasses, [&](std::string_view prefix) { return name.starts_with(prefix); });
    if (!shifted) return {};
    return fail(ErrorKind::malformed,
                fmt::format("{}: tokenizer_class {} has other ids than {}; download its "
                            "tokenizer.json",
                            m_config_name, shown_token(name), m_name));
  }

  Result<void> set_text() {
    ConfigFields fields(m_config, m_config_name);
    const bool legacy = fields.flag("legacy", true);
    const bool prefix = fields.flag("add_prefix_space", true) && m_file.add_dummy_prefix;
    if (!fields.good()) return fields.failure();
    SentencePieceText text{.charsmap = m_file.charsmap,
                           .remove_extra_whitespaces = m_file.remove_extra_whitespaces};
    text.prefix = !prefix  ? SpacePrefix::none
                  : legacy ? SpacePrefix::every_segment
                           : SpacePrefix::first_segment;
    m_spaces_are_marked = text.prefix != SpacePrefix::first_segment;
    return set_sentencepiece_text(text, m_name, m_parts);
  }

  Result<void> add_pieces() {
    for (std::size_t id = 0; id < m_file.pieces.size(); ++id) {
      const auto [slot, inserted] =
          m_parts.ids.emplace(m_file.pieces[id], static_cast<std::int32_t>(id));
      if (!inserted) {
        return fail(ErrorKind::malformed,
                    fmt::format("{}: pieces {} and {} are the same; download it again", m_name,
                                slot->second, id));
      }
      m_parts.tokens.push_back({.text = m_file.pieces[id], .present = true});
    }
    return {};
  }

  // A token that the configuration puts in the place of a piece.
  void make_way(std::int32_t id, const std::string& content) {
    if (static_cast<std::size_t>(id) >= m_parts.tokens.size()) return;
    TokenEntry& entry = m_parts.tokens[static_cast<std::size_t>(id)];
    if (entry.text == content) return;
    m_parts.ids.erase(entry.text);
    entry = {};
  }

  // added_tokens_decoder {"32000": {"content": …}}, or the older added_tokens.json {"…": 32000}.
  Result<void> add_configured_tokens() {
    json list = json::array();
    const auto decoder = m_config.find("added_tokens_decoder");
    if (decoder != m_config.end() && decoder->is_object()) {
      for (const auto& [key, value] : decoder->items()) {
        json item = value.is_object() ? value : json::object();
        const bool is_number =
            !key.empty() && key.size() <= 10 &&
            std::ranges::all_of(key, [](char digit) { return digit >= '0' && digit <= '9'; });
        item["id"] = is_number ? json(std::stoll(key)) : json(key);
        list.push_back(std::move(item));
      }
    } else {
      for (const auto& [content, id] : m_added.items()) {
        list.push_back({{"id", id}, {"content", content}, {"special", false}});
      }
    }
    const auto id_of = [](const json& item) {
      return integer_in(item.at("id"), kMaxTokenId).value_or(kMaxTokenId);
    };
    std::stable_sort(list.begin(), list.end(),
                     [&](const json& a, const json& b) { return id_of(a) < id_of(b); });
    for (const json& item : list) {
      const auto id = integer_in(item["id"], kMaxTokenId);
      const auto content = token_text(item, "content");
      if (id && content) make_way(static_cast<std::int32_t>(*id), *content);
    }
    return read_added_tokens(list, m_config_name + ": added_tokens_decoder", m_parts);
  }

  // Control and user-defined pieces that the configuration does not name.
  Result<void> add_own_tokens() {
    for (std::size_t id = 0; id < m_file.pieces.size(); ++id) {
      TokenEntry& entry = m_parts.tokens[id];
      const PieceType type = m_file.types[id];
      const bool special = type == PieceType::control || type == PieceType::unknown;
      if (entry.added || entry.text != m_file.pieces[id]) continue;
      if (!special && type != PieceType::user_defined) continue;
      if (entry.text.size() > kMaxAddedTokenBytes) {
        return fail(ErrorKind::malformed,
                    fmt::format("{}: piece {} has {} bytes, more than {}", m_name, id,
                                entry.text.size(), kMaxAddedTokenBytes));
      }
      entry.added = true;
      entry.special = special;
      AddedToken token{.id = static_cast<std::int32_t>(id), .content = entry.text};
      token.special = special;
      if (special) {
        m_parts.added.add(token, entry.text);
      } else {
        // SentencePiece looks for them in the normalised text.
        m_parts.added_normalized.add(token,
                                     m_spaces_are_marked ? entry.text : with_spaces(entry.text));
      }
    }
    return {};
  }

  void set_model() {
    m_parts.model =
        m_file.model == SentencePieceFile::Model::bpe
            ? sentencepiece_bpe(m_file.pieces, m_file.scores, m_file.types, m_file.unknown)
            : sentencepiece_unigram(m_file.pieces, m_file.scores, m_file.types, m_file.unknown);
  }

  Result<void> add_end(bool wanted, const char* key, const std::optional<std::int32_t>& own,
                       std::vector<std::int32_t>& target) const {
    if (!wanted) return {};
    std::optional<std::int32_t> id = own;
    if (const auto text = token_text(m_config, key)) {
      const auto found = m_parts.ids.find(*text);
      if (found == m_parts.ids.end()) {
        return fail(ErrorKind::malformed, fmt::format("{}: {} {} is no token; fix the tokenizer",
                                                      m_config_name, key, shown_token(*text)));
      }
      id = found->second;
    }
    if (id) target.push_back(*id);
    return {};
  }

  Result<void> add_ends() {
    ConfigFields fields(m_config, m_config_name);
    const bool is_t5 = class_of(m_config).starts_with("T5");
    const bool add_bos = fields.flag("add_bos_token", !is_t5);
    const bool add_eos = fields.flag("add_eos_token", is_t5);
    if (!fields.good()) return fields.failure();
    auto done = add_end(add_bos, "bos_token", m_file.bos, m_parts.post_processor.before);
    if (done) done = add_end(add_eos, "eos_token", m_file.eos, m_parts.post_processor.after);
    return done;
  }

  SentencePieceFile m_file;
  const json& m_config;
  const json& m_added;
  const std::string& m_name;
  const std::string& m_config_name;
  TokenizerParts m_parts;
  bool m_spaces_are_marked = true;
};

}  // namespace

Result<TokenizerParts> sentencepiece_tokenizer(SentencePieceFile file, const json& config,
                                               const json& added, const std::string& name,
                                               const std::string& config_name) {
  return Builder(std::move(file), config, added, name, config_name).build();
}

}  // namespace driftscope
