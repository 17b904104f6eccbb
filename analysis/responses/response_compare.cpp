// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/response_compare.h"

#include <array>

#include "analysis/responses/response_pair.h"

namespace driftscope {

std::string_view name_of(ResponseAlignment alignment) {
  constexpr std::array<std::string_view, 6> kNames{"none",         "token_ids", "token_bytes",
                                                   "byte_offsets", "positions", "text"};
  return kNames[static_cast<std::size_t>(alignment)];
}

std::string_view name_of(ResponseCause cause) {
  constexpr std::array<std::string_view, 8> kNames{"unknown",         "input",     "version",
                                                   "sampler",         "exact_tie", "near_tie",
                                                   "beyond_rounding", "stopped"};
  return kNames[static_cast<std::size_t>(cause)];
}

ResponseComparison compare_responses(const Response& a, std::size_t choice_a, const Response& b,
                                     std::size_t choice_b) {
  return ResponsePair(a, choice_a, b, choice_b).run();
}

}  // namespace driftscope
