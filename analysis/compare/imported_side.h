// SPDX-License-Identifier: Apache-2.0
// Sides that were read from another program's file: what their envelope says of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "analysis/compare/comparison.h"
#include "analysis/compare/comparison_builder.h"

namespace driftscope {

// ImportedSide::values of files whose numbers are no log probabilities of the model, although they
// are kept as logarithms.
inline constexpr const char* kPlaceholders = "placeholder";   // every value is 0, not measured
inline constexpr const char* kProbabilities = "probability";  // the file has no logarithms
inline constexpr const char* kSampled = "probability_after_samplers";

// The object "import" of a lane's envelope; empty where there is none. Fields of another type count
// as missing.
[[nodiscard]] std::optional<ImportedSide> imported_side(std::string_view envelope_json);

// Type of the numbers that the file holds, "f16"; empty: not known.
[[nodiscard]] std::string imported_element(std::string_view envelope_json);
// "log probabilities", "probabilities of what the samplers left", …: what the file's numbers are.
[[nodiscard]] std::string describe_values(const ImportedSide& side);

// The gaps between the tokens that each side lists at this step are gaps of measured logits or log
// probabilities, on both sides.
[[nodiscard]] bool listed_gaps_mean_something(const Comparison& comparison,
                                              const StepComparison& step);
// "the texts of the prompts differ …": ids, texts, what the requests ask, or how many tokens the
// servers counted, where both sides tell and differ; else empty.
[[nodiscard]] std::string imported_prompt_difference(const ExperimentFacts& facts);
// Some form of the prompt is known of both sides, so that two prompts would be noticed.
[[nodiscard]] bool prompts_known(const ExperimentFacts& facts);

}  // namespace driftscope
