// SPDX-License-Identifier: Apache-2.0
#include "engine/text/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/model/checkpoint.h"
#include "engine/text/bpe.h"
#include "engine/text/byte_token.h"
#include "engine/text/gguf_pre_tokenizers.h"
#include "engine/text/model_reader.h"
#include "engine/text/sentencepiece_parts.h"
#include "engine/text/tokenizer_file.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using nlohmann::json;

enum TokenType : std::int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

tl::unexpected<Error> malformed(const GgufVocabulary& vocabulary, std::string_view what) {
  return fail(ErrorKind::malformed,
              fmt::format("{}: tokenizer.ggml.{}; convert the model again", vocabulary.name, what));
}

std::string shown(std::string_view text) { return escape_for_display(text.substr(0, 80)); }

Result<void> check_lists(const GgufVocabulary& vocabulary) {
  const std::size_t count = vocabulary.tokens.size();
  if (count == 0) return malformed(vocabulary, "tokens is missing or empty");
  if (count > 0x7FFFFFFE) return malformed(vocabulary, "tokens has too many entries");
  const auto check = [&](std::string_view key, std::size_t length) -> Result<void> {
    if (length == 0 || length == count) return {};
    return malformed(vocabulary,
                     fmt::format("{} has {} entries for {} tokens", key, length, count));
  };
  if (auto done = check("scores", vocabulary.scores.size()); !done) return done;
  if (auto done = check("token_type", vocabulary.token_types.size()); !done) return done;
  for (std::size_t id = 0; id < vocabulary.scores.size(); ++id) {
    if (std::isnan(vocabulary.scores[id])) {
      return malformed(vocabulary, fmt::format("scores[{}] is not a number", id));
    }
  }
  const auto check_id = [&](std::string_view key,
                            const std::optional<std::int64_t>& id) -> Result<void> {
    if (!id || (*id >= 0 && static_cast<std::size_t>(*id) < count)) return {};
    return malformed(vocabulary, fmt::format("{} {} is outside the {} tokens", key, *id, count));
  };
  if (auto done = check_id("bos_token_id", vocabulary.bos_id); !done) return done;
  if (auto done = check_id("eos_token_id", vocabulary.eos_id); !done) return done;
  return check_id("unknown_token_id", vocabulary.unknown_id);
}

std::int32_t type_of(const GgufVocabulary& vocabulary, std::size_t id) {
  return vocabulary.token_types.empty() ? std::int32_t{kNormal} : vocabulary.token_types[id];
}

Result<void> read_tokens(const GgufVocabulary& vocabulary, TokenizerParts& parts) {
  parts.tokens.reserve(vocabulary.tokens.size());
  parts.ids.reserve(vocabulary.tokens.size());
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    std::string text = vocabulary.tokens[id];
    // What the format's runtime calls a token without text.
    if (text.empty()) text = fmt::format("[EMPTY_{}]", id);
    const auto [slot, inserted] = parts.ids.emplace(text, static_cast<std::int32_t>(id));
    if (!inserted) {
      return malformed(vocabulary, fmt::format("tokens has \"{}\" twice, as {} and as {}",
                                               shown(text), slot->second, id));
    }
    parts.tokens.push_back({.text = std::move(text), .present = true});
  }
  return {};
}

// Phi-3's special tokens take the white space after them; the file has no field for it, and the
// format's runtime goes by the model's name.
bool takes_space_after(const GgufVocabulary& vocabulary, std::string_view token) {
  std::string name = vocabulary.general_name;
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const bool is_phi3 =
      name.find("phi-3") != std::string::npos || name.find("phi3") != std::string::npos;
  return is_phi3 && token != "<unk>" && token != "<s>" && token != "<|endoftext|>";
}

Result<void> add_special_tokens(const GgufVocabulary& vocabulary, TokenizerParts& parts) {
  const bool spaces_are_marked = vocabulary.model != "gpt2";
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::int32_t type = type_of(vocabulary, id);
    const bool special = type == kControl || type == kUnknown;
    if (!special && type != kUserDefined) continue;
    TokenEntry& entry = parts.tokens[id];
    entry.added = true;
    entry.special = special;
    AddedToken token{.id = static_cast<std::int32_t>(id), .content = entry.text};
    token.special = special;
    token.rstrip = takes_space_after(vocabulary, entry.text);
    if (token.content.size() > kMaxAddedTokenBytes) {
      return malformed(vocabulary,
                       fmt::format("tokens[{}] is special and has {} bytes, more than {}", id,
                                   token.content.size(), kMaxAddedTokenBytes));
    }
    // Files of older converters write the spaces of user-defined tokens as markers.
    parts.added.add(token, spaces_are_marked && !special ? with_spaces(entry.text) : entry.text);
  }
  return {};
}

Result<void> add_ends(const GgufVocabulary& vocabulary, bool add_bos, bool add_eos,
                      std::optional<std::int64_t> bos, std::optional<std::int64_t> eos,
                      TokenizerParts& parts) {
  const auto count = static_cast<std::int64_t>(vocabulary.tokens.size());
  if (vocabulary.add_bos.value_or(add_bos)) {
    if (!bos || *bos >= count) {
      return malformed(vocabulary, "bos_token_id is missing, and a BOS is to be added");
    }
    parts.post_processor.before.push_back(static_cast<std::int32_t>(*bos));
  }
  if (vocabulary.add_eos.value_or(add_eos)) {
    if (!eos || *eos >= count) {
      return malformed(vocabulary, "eos_token_id is missing, and an EOS is to be added");
    }
    parts.post_processor.after.push_back(static_cast<std::int32_t>(*eos));
  }
  return {};
}

json byte_level_split(const GgufPreTokenizer& pre) {
  json steps = json::array();
  for (const std::string_view pattern : pre.patterns) {
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", std::string(pattern)}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
  }
  steps.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}});
  return {{"type", "Sequence"}, {"pretokenizers", steps}};
}

std::string known_pre_tokenizers() {
  return fmt::format("{}", fmt::join(gguf_pre_tokenizer_names(), ", "));
}

// Merges whose parts and result are tokens. The runtime of these files merges texts and splits what
// is no token at the end into bytes again, so that the others change no id, unless a longer token
// is built from them.
std::vector<std::string> usable_merges(const GgufVocabulary& vocabulary,
                                       const TokenizerParts& parts) {
  std::vector<std::string> merges;
  for (const std::string& merge : vocabulary.merges) {
    const std::size_t space = merge.find(' ', 1);
    const bool pair = space != std::string::npos;
    const std::string left = merge.substr(0, space);
    const std::string right = pair ? merge.substr(space + 1) : std::string();
    // What is no pair of texts at all stays, for the reader to refuse.
    if (!pair || right.empty() ||
        (parts.ids.contains(left) && parts.ids.contains(right) &&
         parts.ids.contains(left + right))) {
      merges.push_back(merge);
    }
  }
  return merges;
}

Result<TokenizerParts> byte_level_parts(const GgufVocabulary& vocabulary) {
  const std::string_view pre_name =
      vocabulary.pre.empty() ? std::string_view("default") : std::string_view(vocabulary.pre);
  const GgufPreTokenizer* pre = find_gguf_pre_tokenizer(pre_name);
  if (pre == nullptr) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: tokenizer.ggml.pre \"{}\" is not supported; supported are {}",
                            vocabulary.name, shown(pre_name), known_pre_tokenizers()));
  }
  TokenizerParts parts;
  auto splitter = PreTokenizer::read(byte_level_split(*pre), vocabulary.name);
  if (!splitter) return tl::unexpected(std::move(splitter.error()));
  parts.pre_tokenizer = std::move(*splitter);
  auto decoder = Decoder::read({{"type", "ByteLevel"}}, vocabulary.name);
  if (!decoder) return tl::unexpected(std::move(decoder.error()));
  parts.decoder = std::move(*decoder);
  auto done = read_tokens(vocabulary, parts);
  if (done) {
    done = read_merge_list(usable_merges(vocabulary, parts), pre->ignore_merges,
                           vocabulary.name + ": tokenizer.ggml.merges", parts);
  }
  if (done) done = add_special_tokens(vocabulary, parts);
  if (done) {
    done = add_ends(vocabulary, pre->adds_bos, false, vocabulary.bos_id, vocabulary.eos_id, parts);
  }
  if (!done) return tl::unexpected(std::move(done.error()));
  return parts;
}

PieceType piece_type(std::int32_t type) {
  switch (type) {
    case kUnknown:
      return PieceType::unknown;
    case kControl:
      return PieceType::control;
    case kUserDefined:
      return PieceType::user_defined;
    case kUnused:
      return PieceType::unused;
    case kByte:
      return PieceType::byte;
    default:
      return PieceType::normal;
  }
}

Result<TokenizerParts> sentencepiece_parts(const GgufVocabulary& vocabulary) {
  if (vocabulary.scores.empty()) return malformed(vocabulary, "scores is missing");
  TokenizerParts parts;
  auto done = read_tokens(vocabulary, parts);
  if (!done) return tl::unexpected(std::move(done.error()));
  std::vector<PieceType> types;
  types.reserve(vocabulary.tokens.size());
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    types.push_back(piece_type(type_of(vocabulary, id)));
    if (types.back() == PieceType::byte && !byte_of_token(vocabulary.tokens[id])) {
      return malformed(vocabulary,
                       fmt::format("tokens[{}]: \"{}\" is marked as a byte and names none", id,
                                   shown(vocabulary.tokens[id])));
    }
  }
  std::optional<std::int32_t> unknown;
  if (vocabulary.unknown_id) unknown = static_cast<std::int32_t>(*vocabulary.unknown_id);
  const bool is_unigram = vocabulary.model == "t5";
  const SentencePieceText text{.prefix = vocabulary.add_space_prefix.value_or(!is_unigram)
                                             ? SpacePrefix::every_segment
                                             : SpacePrefix::none,
                               .charsmap = vocabulary.precompiled_charsmap,
                               .remove_extra_whitespaces = vocabulary.remove_extra_whitespaces};
  done = set_sentencepiece_text(text, vocabulary.name, parts);
  if (done) {
    parts.model = is_unigram
                      ? sentencepiece_unigram(vocabulary.tokens, vocabulary.scores, types, unknown)
                      : sentencepiece_bpe(vocabulary.tokens, vocabulary.scores, types, unknown);
  }
  if (done) done = add_special_tokens(vocabulary, parts);
  if (done && is_unigram) {
    done =
        add_ends(vocabulary, false, true, vocabulary.bos_id, vocabulary.eos_id.value_or(1), parts);
  } else if (done) {
    done = add_ends(vocabulary, true, false, vocabulary.bos_id.value_or(1),
                    vocabulary.eos_id.value_or(2), parts);
  }
  if (!done) return tl::unexpected(std::move(done.error()));
  return parts;
}

// Over everything that decides ids, each field with its length before it.
std::string digest_of(const GgufVocabulary& vocabulary) {
  std::string bytes =
      fmt::format("{}\n{}\n{}\n", vocabulary.model, vocabulary.pre, vocabulary.general_name);
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const float score = vocabulary.scores.empty() ? 0.0F : vocabulary.scores[id];
    bytes +=
        fmt::format("{} {:a} {} ", type_of(vocabulary, id), score, vocabulary.tokens[id].size());
    bytes += vocabulary.tokens[id];
  }
  for (const std::string& merge : vocabulary.merges) {
    bytes += fmt::format("{} ", merge.size());
    bytes += merge;
  }
  const auto flag = [](const std::optional<bool>& value) { return value ? int{*value} : -1; };
  bytes += fmt::format("\n{} {} {} {} {} {} {} {} ", vocabulary.bos_id.value_or(-1),
                       vocabulary.eos_id.value_or(-1), vocabulary.unknown_id.value_or(-1),
                       flag(vocabulary.add_bos), flag(vocabulary.add_eos),
                       flag(vocabulary.add_space_prefix), vocabulary.remove_extra_whitespaces,
                       vocabulary.precompiled_charsmap.size());
  bytes += vocabulary.precompiled_charsmap;
  return sha256_of_bytes(bytes);
}

}  // namespace

std::vector<std::string_view> gguf_pre_tokenizer_names() {
  std::vector<std::string_view> names;
  for (const GgufPreTokenizer& row : gguf_pre_tokenizers()) names.push_back(row.name);
  std::ranges::sort(names);
  return names;
}

Result<std::shared_ptr<const Tokenizer>> tokenizer_from_gguf(const GgufVocabulary& vocabulary) {
  if (auto checked = check_lists(vocabulary); !checked) {
    return tl::unexpected(std::move(checked.error()));
  }
  Result<TokenizerParts> parts;
  if (vocabulary.model == "gpt2") {
    parts = byte_level_parts(vocabulary);
  } else if (vocabulary.model == "llama" || vocabulary.model == "t5") {
    parts = sentencepiece_parts(vocabulary);
  } else {
    return fail(ErrorKind::malformed,
                fmt::format("{}: tokenizer.ggml.model \"{}\" is not supported; supported are "
                            "llama, gpt2 and t5",
                            vocabulary.name, shown(vocabulary.model)));
  }
  if (!parts) return tl::unexpected(std::move(parts.error()));
  return make_tokenizer(std::move(*parts), digest_of(vocabulary));
}

}  // namespace driftscope
