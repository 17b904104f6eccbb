// SPDX-License-Identifier: GPL-3.0-or-later
// The tokens of two answers side by side: what stands above what in the ribbons, and over which
// positions the plots run.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/responses/response_compare.h"
#include "ui/models/token_ribbon.h"

namespace driftscope::ui {

enum class ColumnState : std::uint8_t {
  equal,    // the same token on both sides, after the same tokens
  split,    // the same text, cut into other tokens
  differs,  // behind the first divergence, or one side had ended
  joined,   // the texts run together again; what came before differs
};
struct ResponseColumn {
  std::int64_t a = -1;  // index into steps_a; -1: nothing of A stands here
  std::int64_t b = -1;
  ColumnState state = ColumnState::equal;
};
enum class ColumnUnit : std::uint8_t {
  tokens,
  words,   // a side lists no tokens: pieces of its text stand for them
  prompt,  // there are no answers, but the prompts' tokens have logprobs
};
struct ResponseColumns {
  ColumnUnit unit = ColumnUnit::tokens;
  std::vector<ResponseStep> steps_a, steps_b;
  std::vector<ResponseColumn> columns;
  std::int64_t divergence = -1;  // column; -1: none
  std::int64_t joined = -1;      // column at which the texts run together again; -1: never
};
[[nodiscard]] ResponseColumns response_columns(const Response& a, std::size_t choice_a,
                                               const Response& b, std::size_t choice_b,
                                               const ResponseComparison& comparison);

// One answer alone: its tokens, or its text in words where it lists none; nothing of B.
[[nodiscard]] ResponseColumns columns_of_one(const Response& response, std::size_t choice);

// "Paris", " Paris", "\n", "#30" where only the id is known, "(empty)".
[[nodiscard]] QString response_token(const ResponseStep& step);
// The same between quotes, ids without them.
[[nodiscard]] QString quoted_response_token(const ResponseStep& step);
// For the ribbons, one item per column.
[[nodiscard]] TokenRibbon response_ribbon(const ResponseColumns& columns);
// Columns at which a stretch of differences begins, rising.
[[nodiscard]] std::vector<std::int64_t> difference_starts(const ResponseColumns& columns);
[[nodiscard]] std::optional<std::int64_t> next_difference(const ResponseColumns& columns,
                                                          std::int64_t column);
[[nodiscard]] std::optional<std::int64_t> previous_difference(const ResponseColumns& columns,
                                                              std::int64_t column);

}  // namespace driftscope::ui
