// SPDX-License-Identifier: Apache-2.0
// tokenizer.model: a SentencePiece model (its sentencepiece_model.proto), of type BPE or Unigram.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/sentencepiece_parts.h"

namespace driftscope {

struct SentencePieceFile {
  enum class Model : std::uint8_t { unigram = 1, bpe = 2 };
  Model model = Model::unigram;
  std::vector<std::string> pieces;  // by id, not empty
  std::vector<float> scores;        // by id, finite
  std::vector<PieceType> types;     // by id
  std::string charsmap;             // precompiled; empty: none
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  std::optional<std::int32_t> unknown;  // ids
  std::optional<std::int32_t> bos;
  std::optional<std::int32_t> eos;
};

// `name` begins messages. Errors: malformed: damaged message, piece that is not UTF-8, score that
// is not finite, a model of another type.
[[nodiscard]] Result<SentencePieceFile> read_sentencepiece_file(std::string_view bytes,
                                                                const std::string& name);

// `config` is tokenizer_config.json as an object, `added` added_tokens.json; empty objects where
// there are none. `config_name` begins messages about the former.
[[nodiscard]] Result<TokenizerParts> sentencepiece_tokenizer(SentencePieceFile file,
                                                             const nlohmann::json& config,
                                                             const nlohmann::json& added,
                                                             const std::string& name,
                                                             const std::string& config_name);

}  // namespace driftscope
