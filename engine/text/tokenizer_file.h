// SPDX-License-Identifier: Apache-2.0
// tokenizer.json read and checked: the parts a tokenizer is made of.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/added_tokens.h"
#include "engine/text/decoder.h"
#include "engine/text/normalizer.h"
#include "engine/text/post_processor.h"
#include "engine/text/pre_tokenizer.h"
#include "engine/text/tokenizer.h"
#include "engine/text/word_model.h"

namespace driftscope {

struct TokenEntry {
  std::string text = {};  // as written in the file; empty where no token has the id
  bool present = false;
  bool added = false;
  bool special = false;
};

struct TokenizerParts {
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::unique_ptr<const WordModel> model;
  PostProcessor post_processor;
  Decoder decoder;
  AddedTokenMatcher added;             // matched in the text as given
  AddedTokenMatcher added_normalized;  // matched in the normalised text
  std::vector<TokenEntry> tokens;      // by id
  StringMap<std::int32_t> ids;         // by text as written in the file
};

// What encodes and decodes with these parts; `sha256` identifies where they came from.
// Errors: malformed, where the decoder cannot read a token.
[[nodiscard]] Result<std::shared_ptr<const Tokenizer>> make_tokenizer(TokenizerParts parts,
                                                                      std::string sha256);

// `name` begins the messages. Errors: malformed, with the path of the field.
[[nodiscard]] Result<TokenizerParts> read_tokenizer(std::string_view text, const std::string& name);

}  // namespace driftscope
