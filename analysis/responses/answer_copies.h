// SPDX-License-Identifier: Apache-2.0
// Answers that say the same once more: a server that is asked twice with a temperature of 0, or
// that keeps answers, gives no new evidence.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "analysis/responses/local_ranking.h"

namespace driftscope {

class AnswerCopies {
 public:
  // Whether an answer with the same prompt, tokens and logprobs was noted before; a copy is
  // counted. `values`: steps from the answer's first token.
  bool note(std::span<const std::int32_t> prompt, std::span<const std::int32_t> tokens,
            std::span<const VendorValue> values);
  [[nodiscard]] std::int64_t count() const { return m_copies; }

 private:
  using Value = std::tuple<std::size_t, std::int32_t, double>;
  using Said = std::tuple<std::vector<std::int32_t>, std::vector<std::int32_t>, std::vector<Value>>;
  std::set<Said> m_said;
  std::int64_t m_copies = 0;
};

}  // namespace driftscope
