// SPDX-License-Identifier: Apache-2.0
// Made-up answers as a server's batch file holds them, with differences at known places.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/base/result.h"

namespace driftscope::bench {

struct CorpusShape {
  std::int64_t responses = 5000;  // of each side
  std::int64_t tokens = 500;      // of each answer
  std::int64_t top = 20;          // alternatives of each token
  std::uint64_t seed = 1;
  bool batch = true;         // lines of a batch, with a custom_id; else bare bodies
  bool shuffle = false;      // side B's lines in another order
  std::int64_t prompts = 0;  // above 0: the answers are samples of so many prompts
};

// What the comparison has to find: by the number of the answer modulo 10, 0 to 3 are equal, 4 to 6
// differ in their logprobs only, 7 and 8 part at a near-tie and 9 parts beyond rounding.
struct CorpusTruth {
  std::int64_t equal = 0, drift = 0, near_tie = 0, beyond_rounding = 0;
};
[[nodiscard]] CorpusTruth truth_of(const CorpusShape& shape);
// The token at which answer `number` parts; -1: it does not.
[[nodiscard]] std::int64_t parting_step(const CorpusShape& shape, std::int64_t number);

// Writes A.jsonl and B.jsonl into `folder`, which exists; the same shape gives the same bytes.
// Errors: output.
[[nodiscard]] Result<void> write_corpus(const std::string& folder, const CorpusShape& shape);

}  // namespace driftscope::bench
