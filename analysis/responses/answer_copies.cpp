// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/answer_copies.h"

#include <utility>

namespace driftscope {

bool AnswerCopies::note(std::span<const std::int32_t> prompt, std::span<const std::int32_t> tokens,
                        std::span<const VendorValue> values) {
  std::vector<Value> said;
  for (const VendorValue& value : values) {
    said.emplace_back(value.step, value.token, value.logprob);
  }
  const bool fresh =
      m_said
          .insert({{prompt.begin(), prompt.end()}, {tokens.begin(), tokens.end()}, std::move(said)})
          .second;
  if (!fresh) ++m_copies;
  return !fresh;
}

}  // namespace driftscope
