// SPDX-License-Identifier: Apache-2.0
// The decoder of tokenizer.json: tokens back to bytes.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/pattern.h"

namespace driftscope {

class Decoder {
 public:
  [[nodiscard]] static Result<Decoder> read(const nlohmann::json& description,
                                            const std::string& name);
  // The bytes of one token, before tokens are joined. `is_first`: it begins the sequence.
  // `is_added`: not written in the byte alphabet.
  [[nodiscard]] Result<std::string> decode_token(std::string_view token, bool is_first,
                                                 bool is_added) const;
  // What is done to the joined bytes (the leading space of SentencePiece).
  [[nodiscard]] Result<std::string> finish(std::string joined) const;

 private:
  struct Step {
    enum class Kind : std::uint8_t { replace, byte_fallback, byte_level, metaspace, strip };
    Kind kind;
    std::optional<Pattern> pattern = std::nullopt;  // replace
    std::string content = {};  // replace, strip (one character), metaspace (replacement)
    std::size_t start = 0;     // strip: at most so many from the beginning
    std::size_t stop = 0;      // strip: at most so many from the end
    bool drop_first = false;   // metaspace: the first token loses its markers
  };
  struct Reader;
  static Result<std::string> apply_step(const Step& step, std::string text, bool is_first,
                                        bool is_added);
  std::vector<Step> m_token_steps;
  std::vector<Step> m_joined_steps;  // after Fuse
};

}  // namespace driftscope
