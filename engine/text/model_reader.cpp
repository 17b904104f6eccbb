// SPDX-License-Identifier: Apache-2.0
#include "engine/text/model_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/text/bpe.h"
#include "engine/text/byte_alphabet.h"
#include "engine/text/byte_token.h"
#include "engine/text/json_parts.h"
#include "engine/text/sentencepiece_bpe.h"
#include "engine/text/vocabulary_room.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using nlohmann::json;

Result<void> read_vocabulary(const json& vocabulary, const std::string& name,
                             TokenizerParts& parts) {
  if (!vocabulary.is_object() || vocabulary.empty()) {
    return malformed_part(name, "is not an object of tokens and ids");
  }
  parts.ids.reserve(vocabulary.size());
  parts.tokens.reserve(vocabulary.size());
  for (const auto& [token, value] : vocabulary.items()) {
    const auto id = integer_in(value, kMaxTokenId);
    if (!id) {
      return malformed_part(name,
                            fmt::format("token {} has id {}, which is not an integer from 0 to {}",
                                        shown_token(token), show_value(value), kMaxTokenId));
    }
    if (auto room = make_room(name, *id, vocabulary.size(), parts.tokens); !room) return room;
    TokenEntry& entry = parts.tokens[static_cast<std::size_t>(*id)];
    if (entry.present) {
      return malformed_part(name, fmt::format("tokens {} and {} have the same id {}",
                                              shown_token(entry.text), shown_token(token), *id));
    }
    entry.text = token;
    entry.present = true;
    parts.ids.emplace(token, static_cast<std::int32_t>(*id));
  }
  return {};
}

struct MergePair {
  std::string left;
  std::string right;
};

std::optional<MergePair> merge_pair(std::string_view text) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
    return std::nullopt;
  }
  return MergePair{std::string(text.substr(0, space)), std::string(text.substr(space + 1))};
}

// "left right" or ["left", "right"].
std::optional<MergePair> merge_pair(const json& merge) {
  if (merge.is_string()) return merge_pair(std::string_view(merge.get_ref<const std::string&>()));
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return MergePair{merge[0].get<std::string>(), merge[1].get<std::string>()};
  }
  return std::nullopt;
}

// A merge that would join another character with a space marker after it.
bool joins_before_marker(const MergePair& pair) {
  return pair.right.starts_with(kSpaceMarker) && !pair.left.ends_with(kSpaceMarker);
}

// Takes merges in order of their ranks into a model.
class MergeReader {
 public:
  MergeReader(std::size_t count, const std::string& name, const TokenizerParts& parts,
              BpeModel& model)
      : m_name(name), m_parts(parts), m_model(model), m_can_cut(parts.ids.contains(kSpaceMarker)) {
    model.merges = MergeTable(count);
  }

  [[nodiscard]] tl::unexpected<Error> no_pair(const std::string& shown_merge) const {
    return malformed_part(fmt::format("{}[{}]", m_name, m_rank),
                          fmt::format("{} is not a pair of tokens", shown_merge));
  }

  Result<void> add(const MergePair& pair) {
    const std::string merged = pair.left + pair.right;
    std::int32_t ids[3] = {};
    const std::string* texts[3] = {&pair.left, &pair.right, &merged};
    for (int i = 0; i < 3; ++i) {
      const auto found = m_parts.ids.find(*texts[i]);
      if (found == m_parts.ids.end()) {
        return malformed_part(
            fmt::format("{}[{}]", m_name, m_rank),
            fmt::format("token {} is not in the vocabulary", shown_token(*texts[i])));
      }
      ids[i] = found->second;
    }
    m_model.merges.insert(ids[0], ids[1], {m_rank, ids[2]});
    m_can_cut = m_can_cut && !joins_before_marker(pair);
    ++m_rank;
    return {};
  }

  void finish() const {
    if (m_can_cut) m_model.cut_before = kSpaceMarker;
  }

 private:
  const std::string& m_name;
  const TokenizerParts& m_parts;
  BpeModel& m_model;
  bool m_can_cut;
  std::uint32_t m_rank = 0;
};

Result<void> read_merges(const json& merges, const std::string& name, const TokenizerParts& parts,
                         BpeModel& model) {
  if (!merges.is_array()) return malformed_part(name, "is not a list");
  MergeReader reader(merges.size(), name, parts, model);
  for (const json& merge : merges) {
    auto pair = merge_pair(merge);
    if (!pair) return reader.no_pair(show_value(merge));
    if (auto done = reader.add(*pair); !done) return done;
  }
  reader.finish();
  return {};
}

Result<void> read_options(ConfigFields& fields, const TokenizerParts& parts, BpeModel& model) {
  for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const std::string value = fields.text(key, "");
    if (!value.empty())
      fields.refuse(fmt::format("{} {} is not supported", key, shown_token(value)));
  }
  const json* dropout = fields.find("dropout");
  if (dropout != nullptr && *dropout != 0.0) {
    fields.refuse(
        fmt::format("dropout {} is not supported: it makes ids random", show_value(*dropout)));
  }
  model.byte_fallback = fields.flag("byte_fallback", false);
  model.fuse_unknown = fields.flag("fuse_unk", false);
  model.ignore_merges = fields.flag("ignore_merges", false);
  const std::string unknown = fields.text("unk_token", "");
  if (!fields.good()) return fields.failure();
  if (!unknown.empty()) {
    const auto found = parts.ids.find(unknown);
    if (found == parts.ids.end()) {
      return malformed_part(fields.name(),
                            fmt::format("unk_token {} is not in vocab", shown_token(unknown)));
    }
    model.unknown = found->second;
  }
  return {};
}

// What the model looks words and single bytes up in.
void index_model(const TokenizerParts& parts, BpeModel& model) {
  model.byte_level = parts.pre_tokenizer.ends_in_bytes();
  if (model.byte_level || model.ignore_merges) model.cut_before.clear();
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const auto value = static_cast<std::uint8_t>(byte);
    const auto found =
        parts.ids.find(model.byte_level ? byte_to_alphabet(value) : token_of_byte(value));
    model.byte_ids[byte] = found == parts.ids.end() ? -1 : found->second;
  }
  if (!model.byte_level) {
    model.vocabulary = parts.ids;
    return;
  }
  if (!model.ignore_merges) return;  // whole words are not asked for
  for (const auto& [token, id] : parts.ids) {
    if (auto bytes = alphabet_to_bytes(token)) model.vocabulary.emplace(std::move(*bytes), id);
  }
}

}  // namespace

Result<void> read_model(const json& model, const std::string& name, TokenizerParts& parts) {
  const std::string type = part_type(model);
  if (type == "Unigram") return read_unigram_model(model, name, parts);
  // The oldest files have no type; what has merges is BPE.
  const bool untyped_bpe = type.empty() && model.is_object() && model.contains("merges");
  if (type != "BPE" && !untyped_bpe) return unsupported_type(model, name, "BPE and Unigram");
  const auto vocabulary = model.find("vocab");
  const auto merges = model.find("merges");
  if (vocabulary == model.end() || merges == model.end()) {
    return malformed_part(name, "vocab or merges is missing");
  }
  if (auto done = read_vocabulary(*vocabulary, name + ".vocab", parts); !done) return done;
  auto bpe = std::make_unique<BpeModel>();
  if (auto done = read_merges(*merges, name + ".merges", parts, *bpe); !done) return done;
  ConfigFields fields(model, name);
  if (auto done = read_options(fields, parts, *bpe); !done) return done;
  index_model(parts, *bpe);
  parts.model = std::move(bpe);
  return {};
}

Result<void> read_merge_list(std::span<const std::string> merges, bool ignore_merges,
                             const std::string& name, TokenizerParts& parts) {
  auto model = std::make_unique<BpeModel>();
  MergeReader reader(merges.size(), name, parts, *model);
  for (const std::string& merge : merges) {
    const auto pair = merge_pair(std::string_view(merge));
    if (!pair) return reader.no_pair(shown_token(merge));
    if (auto done = reader.add(*pair); !done) return done;
  }
  reader.finish();
  model->ignore_merges = ignore_merges;
  index_model(parts, *model);
  parts.model = std::move(model);
  return {};
}

}  // namespace driftscope
