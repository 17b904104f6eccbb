// SPDX-License-Identifier: Apache-2.0
// Answers as the samples of prompts.
#pragma once

#include <vector>

#include "analysis/import/response.h"
#include "analysis/responses/populations.h"

namespace driftscope {

// Grouped by custom_id where every response has one, else all are samples of one prompt. Sequences
// are token ids if both sides know them of every answer, else the code points of the texts.
struct SampleSides {
  std::vector<SampleGroup> a, b;
  bool by_token_ids = false;
  bool by_custom_id = false;
};
[[nodiscard]] SampleSides sample_sides(const std::vector<Response>& a,
                                       const std::vector<Response>& b);

}  // namespace driftscope
