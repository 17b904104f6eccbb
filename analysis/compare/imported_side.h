// SPDX-License-Identifier: Apache-2.0
// Sides that were read from another program's file: what their envelope says of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "analysis/compare/comparison.h"
#include "analysis/compare/comparison_builder.h"

namespace driftscope {

// The object "import" of a lane's envelope; empty where there is none. Fields of another type count
// as missing.
[[nodiscard]] std::optional<ImportedSide> imported_side(std::string_view envelope_json);

// "the texts of the prompts differ …", where both are known and differ; else empty.
[[nodiscard]] std::string imported_prompt_difference(const ExperimentFacts& facts);

}  // namespace driftscope
