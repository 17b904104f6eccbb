// SPDX-License-Identifier: Apache-2.0
#include "engine/text/gguf_vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/model/gguf_fields.h"
#include "engine/model/gguf_source.h"
#include "engine/text/byte_token.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

std::vector<std::string> strings(GgufFields& fields, std::string_view key) {
  std::vector<std::string> result;
  for (const std::string_view text : fields.texts(key)) result.emplace_back(text);
  return result;
}

std::optional<bool> flag(GgufFields& fields, std::string_view key) {
  if (!fields.has(key)) return std::nullopt;
  return fields.flag(key, false);
}

std::string bytes_of(GgufFields& fields, std::string_view key) {
  const GgufValue* value = fields.find(key);
  if (value == nullptr) return {};
  if (!value->is_list || (value->type != GgufType::u8 && value->type != GgufType::i8)) {
    fields.refuse(fmt::format("metadata {} at byte {} is {}{}, not a list of u8", key,
                              value->offset, value->is_list ? "a list of " : "",
                              gguf_type_name(value->type)));
    return {};
  }
  return std::string(value->bytes);
}

// A token of type 6 stands for one byte, written <0xNN>.
void check_byte_tokens(GgufFields& fields, const GgufVocabulary& vocabulary) {
  constexpr std::int32_t kByte = 6;
  const std::size_t count = std::min(vocabulary.tokens.size(), vocabulary.token_types.size());
  for (std::size_t id = 0; id < count && fields.good(); ++id) {
    if (vocabulary.token_types[id] != kByte || byte_of_token(vocabulary.tokens[id])) continue;
    fields.refuse(
        fmt::format("metadata tokenizer.ggml.tokens: token {} \"{}\" has the type of a "
                    "byte but is none (<0x00> to <0xFF>); convert the model again",
                    id, escape_for_display(vocabulary.tokens[id].substr(0, 80))));
  }
}

bool is_one_character(std::string_view text) {
  const auto continues = [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80;
  };
  return !text.empty() && std::all_of(text.begin() + 1, text.end(), continues);
}

// The runtime takes a merge to what is no token apart into its characters again. Where both sides
// are characters and no other merge goes on from there, that is as if the merge were not there.
void drop_vain_merges(GgufVocabulary& vocabulary) {
  const std::unordered_set<std::string_view> tokens(vocabulary.tokens.begin(),
                                                    vocabulary.tokens.end());
  std::unordered_set<std::string> parts;
  const auto halves = [](std::string_view merge) {
    const std::size_t space = merge.find(' ', 1);
    return std::pair(merge.substr(0, space),
                     space == std::string_view::npos ? "" : merge.substr(space + 1));
  };
  for (const std::string& merge : vocabulary.merges) {
    parts.emplace(halves(merge).first);
    parts.emplace(halves(merge).second);
  }
  std::erase_if(vocabulary.merges, [&](const std::string& merge) {
    const auto [left, right] = halves(merge);
    const std::string whole = std::string(left) + std::string(right);
    return is_one_character(left) && is_one_character(right) && tokens.contains(left) &&
           tokens.contains(right) && !tokens.contains(whole) && !parts.contains(whole);
  });
}

}  // namespace

Result<std::optional<GgufVocabulary>> read_gguf_vocabulary(const GgufHeader& header,
                                                           const std::string& name) {
  GgufFields fields(header, name);
  GgufVocabulary vocabulary;
  vocabulary.name = name;
  vocabulary.model = fields.text("tokenizer.ggml.model", "none");
  if (!fields.good()) return fields.failure();
  if (vocabulary.model == "none" || vocabulary.model == "no_vocab") return std::nullopt;
  vocabulary.general_name = fields.text("general.name", "");
  vocabulary.pre = fields.text("tokenizer.ggml.pre", "");
  vocabulary.tokens = strings(fields, "tokenizer.ggml.tokens");
  vocabulary.scores = fields.floats("tokenizer.ggml.scores");
  for (const std::int64_t type : fields.integers("tokenizer.ggml.token_type")) {
    vocabulary.token_types.push_back(static_cast<std::int32_t>(type));
  }
  if (vocabulary.model == "llama" || vocabulary.model == "t5")
    check_byte_tokens(fields, vocabulary);
  vocabulary.merges = strings(fields, "tokenizer.ggml.merges");
  drop_vain_merges(vocabulary);
  vocabulary.bos_id = fields.id("tokenizer.ggml.bos_token_id");
  vocabulary.eos_id = fields.id("tokenizer.ggml.eos_token_id");
  vocabulary.unknown_id = fields.id("tokenizer.ggml.unknown_token_id");
  vocabulary.add_bos = flag(fields, "tokenizer.ggml.add_bos_token");
  vocabulary.add_eos = flag(fields, "tokenizer.ggml.add_eos_token");
  vocabulary.add_space_prefix = flag(fields, "tokenizer.ggml.add_space_prefix");
  vocabulary.remove_extra_whitespaces =
      fields.flag("tokenizer.ggml.remove_extra_whitespaces", false);
  vocabulary.precompiled_charsmap = bytes_of(fields, "tokenizer.ggml.precompiled_charsmap");
  if (!fields.good()) return fields.failure();
  return vocabulary;
}

Result<GgufChat> read_gguf_chat(const GgufHeader& header, const std::string& name) {
  GgufFields fields(header, name);
  GgufChat chat;
  if (fields.has("tokenizer.chat_template")) {
    chat.chat_template = fields.text("tokenizer.chat_template");
  }
  const std::vector<std::string_view> tokens = fields.texts("tokenizer.ggml.tokens");
  const auto add = [&](std::string_view key, std::string_view token) {
    const auto id = fields.id(fmt::format("tokenizer.ggml.{}_token_id", key));
    if (!id || static_cast<std::size_t>(*id) >= tokens.size()) return;
    chat.special_tokens.emplace_back(token, tokens[static_cast<std::size_t>(*id)]);
  };
  add("bos", "bos_token");
  add("eos", "eos_token");
  add("unknown", "unk_token");
  add("padding", "pad_token");
  if (!fields.good()) return fields.failure();
  return chat;
}

Result<std::shared_ptr<const Tokenizer>> open_gguf_tokenizer(const std::filesystem::path& path) {
  const auto source = GgufSource::open(path);
  if (!source) return tl::unexpected(source.error());
  const auto vocabulary = read_gguf_vocabulary((*source)->header(), (*source)->name());
  if (!vocabulary) return tl::unexpected(vocabulary.error());
  if (!*vocabulary) return std::shared_ptr<const Tokenizer>();
  return tokenizer_from_gguf(**vocabulary);
}

Result<GgufChat> open_gguf_chat(const std::filesystem::path& path) {
  const auto source = GgufSource::open(path);
  if (!source) return tl::unexpected(source.error());
  return read_gguf_chat((*source)->header(), (*source)->name());
}

}  // namespace driftscope
