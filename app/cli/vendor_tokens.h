// SPDX-License-Identifier: Apache-2.0
// A vendor's tokens as ids of a local vocabulary.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/responses/local_ranking.h"
#include "analysis/responses/response_set.h"
#include "engine/text/tokenizer.h"
#include "kernels/base/result.h"
#include "kernels/base/types.h"

namespace driftscope::cli {

enum class TokenMapping : std::uint8_t {
  ids,         // given by the vendor
  bytes,       // each token's bytes are those of one token of the vocabulary
  boundaries,  // the text was tokenised anew: logprobs where a token begins and ends alike
};
[[nodiscard]] std::string_view name_of(TokenMapping mapping);

struct MappedAnswer {
  TokenMapping mapping = TokenMapping::ids;
  std::vector<TokenId> ids;
  std::vector<VendorValue> values;  // steps count from 0 in `ids`
  std::vector<std::string> notes;   // what was lost, for people
};

class VendorVocabulary {
 public:
  // `tokenizer` may be null: then only ids can be mapped. Ids are below `size`.
  VendorVocabulary(const Tokenizer* tokenizer, std::int64_t size);
  // Errors: inconclusive (no tokens and no text, reasoning in front of the answer, no tokenizer,
  // ids or bytes of another vocabulary).
  [[nodiscard]] Result<MappedAnswer> map(const Answer& answer) const;
  // The logprobs that a response lists for its prompt's own tokens; step i is the prompt's token
  // i + 1, since nothing predicts the first. `prompt`: what the model is given. Errors:
  // inconclusive (the tokens are not those of `prompt`, by id or by bytes, at every place).
  [[nodiscard]] Result<std::vector<VendorValue>> map_prompt(const Response& response,
                                                            std::span<const TokenId> prompt) const;

 private:
  [[nodiscard]] std::optional<TokenId> id_of(const TokenText& token, bool by_id) const;
  [[nodiscard]] bool ids_fit(const ResponseChoice& choice) const;
  [[nodiscard]] bool by_ids(const ResponseChoice& choice, MappedAnswer& out) const;
  [[nodiscard]] bool by_bytes(const ResponseChoice& choice, MappedAnswer& out) const;
  [[nodiscard]] Result<void> by_text(const ResponseChoice& choice, MappedAnswer& out) const;
  void add_values(const Response& response, const ResponseStep& step, std::size_t place,
                  MappedAnswer& out) const;
  [[nodiscard]] bool is_token(const ResponseStep& step, TokenId id) const;
  const Tokenizer* m_tokenizer;
  std::int64_t m_size;
  std::unordered_map<std::string, TokenId> m_by_bytes;
};

// Why the numbers of this response are no logprobs of the model; empty: they are.
[[nodiscard]] std::string unusable_numbers(const Response& response);

// Where the prompt's ids that an answer lists are others than those taken for it, from 0; empty:
// the same, or not listed.
[[nodiscard]] std::optional<std::size_t> other_prompt(const Response& response,
                                                      const std::vector<TokenId>& ids);

}  // namespace driftscope::cli
