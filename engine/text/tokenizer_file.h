// SPDX-License-Identifier: Apache-2.0
// tokenizer.json read and checked: the parts a tokenizer is made of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/added_tokens.h"
#include "engine/text/bpe.h"
#include "engine/text/decoder.h"
#include "engine/text/normalizer.h"
#include "engine/text/post_processor.h"
#include "engine/text/pre_tokenizer.h"

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
  BpeModel model;
  PostProcessor post_processor;
  Decoder decoder;
  AddedTokenMatcher added;             // matched in the text as given
  AddedTokenMatcher added_normalized;  // matched in the normalised text
  std::vector<TokenEntry> tokens;      // by id
  StringMap<std::int32_t> ids;         // by text as written in the file
};

// `name` begins the messages. Errors: malformed, with the path of the field.
[[nodiscard]] Result<TokenizerParts> read_tokenizer(std::string_view text, const std::string& name);

}  // namespace driftscope
