// SPDX-License-Identifier: Apache-2.0
// Text to token ids and back, as the checkpoint's tokenizer.json or tokenizer.model says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.h"
#include "kernels/base/types.h"

namespace driftscope {

struct EncodedToken {
  TokenId id{};
  std::size_t begin = 0;  // byte offsets into the given text; begin == end for inserted tokens
  std::size_t end = 0;
};

struct EncodeOptions {
  bool add_special_tokens = true;    // the post-processor's (usually a BOS)
  bool parse_special_tokens = true;  // "<|bos|>" inside the text becomes one id
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // Reads DIR/tokenizer.json; where there is none, DIR/tokenizer.model with
  // tokenizer_config.json. Errors: malformed, naming the file and the field.
  [[nodiscard]] static Result<std::shared_ptr<const Tokenizer>> open(
      const std::filesystem::path& directory);

  [[nodiscard]] virtual Result<std::vector<EncodedToken>> encode(
      std::string_view text, const EncodeOptions& options) const = 0;
  // The bytes a token stands for when it stands alone in a stream; may be part of a UTF-8
  // character. Special tokens give their text. Unknown ids give nothing.
  [[nodiscard]] virtual std::string piece(TokenId id) const = 0;
  // Bytes of a sequence, by the tokenizer's decoder (strips a leading space where it says so).
  [[nodiscard]] virtual std::string decode(std::span<const TokenId> ids,
                                           bool skip_special_tokens) const = 0;
  [[nodiscard]] virtual std::size_t vocabulary_size() const = 0;  // highest id + 1
  [[nodiscard]] virtual bool is_special(TokenId id) const = 0;
  [[nodiscard]] virtual std::string_view kind() const = 0;  // "byte-level BPE", "SentencePiece
                                                            // BPE", "Unigram"
  [[nodiscard]] virtual std::optional<TokenId> id_of(std::string_view piece) const = 0;
  // SHA-256 of the file, of a GGUF file's tokenizer keys; lower-case hexadecimal.
  [[nodiscard]] virtual const std::string& sha256() const = 0;
};

// Gives out text only in whole UTF-8 characters while tokens arrive one by one.
class StreamDecoder {
 public:
  explicit StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer);
  // Complete characters that the token finished; bytes that cannot become UTF-8 are U+FFFD.
  [[nodiscard]] std::string push(TokenId id);
  [[nodiscard]] std::string finish();  // what is left, invalid bytes replaced

 private:
  std::shared_ptr<const Tokenizer> m_tokenizer;
  std::string m_pending;
  bool m_first = true;
};

}  // namespace driftscope
