// SPDX-License-Identifier: Apache-2.0
// The tokenizer that a GGUF file carries, from plain data. The definition followed is that of the
// runtime the format belongs to: no Unicode normalisation, a space before every stretch of
// text between special tokens where add_space_prefix says so.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer.h"

namespace driftscope {

// Keys of the file below "tokenizer.ggml."; a list that the file does not have stays empty.
struct GgufVocabulary {
  std::string name = {};          // begins error messages: the file's name
  std::string general_name = {};  // general.name; decides which special tokens take white space
  std::string model = {};  // "llama" (SentencePiece BPE), "gpt2" (byte-level BPE), "t5" (Unigram)
  std::string pre = {};    // gpt2: name of the pre-tokeniser; empty counts as "default"
  std::vector<std::string> tokens = {};        // by id
  std::vector<float> scores = {};              // by id; as many as tokens, or none
  std::vector<std::int32_t> token_types = {};  // by id: 1 normal, 2 unknown, 3 control,
                                               // 4 user-defined, 5 unused, 6 byte
  std::vector<std::string> merges = {};        // gpt2: "left right" in order of rank
  std::optional<std::int64_t> bos_id = {};
  std::optional<std::int64_t> eos_id = {};
  std::optional<std::int64_t> unknown_id = {};
  std::optional<bool> add_bos = {};           // absent: as the runtime does for the model and `pre`
  std::optional<bool> add_eos = {};           // likewise
  std::optional<bool> add_space_prefix = {};  // absent: true for llama, false for t5
  bool remove_extra_whitespaces = false;      // t5
  std::string precompiled_charsmap = {};      // t5: bytes of the array
};

// Errors: malformed, naming the file and the key: unknown model, unknown `pre`, lists whose
// lengths differ, ids outside the list, merges of what is no token.
[[nodiscard]] Result<std::shared_ptr<const Tokenizer>> tokenizer_from_gguf(
    const GgufVocabulary& vocabulary);

// Names that `pre` may have, sorted.
[[nodiscard]] std::vector<std::string_view> gguf_pre_tokenizer_names();

}  // namespace driftscope
