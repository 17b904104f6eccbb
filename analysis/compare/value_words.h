// SPDX-License-Identifier: Apache-2.0
// The words for what a comparison's numbers are: logits, or log probabilities where sides were read
// from files that hold those; and how much of the sides was compared.
#pragma once

#include <string>
#include <string_view>

#include "analysis/compare/comparison.h"

namespace driftscope {

// The values of both sides are of one kind, so that their differences mean something. Metrics that
// need this are NaN where it is false. Always true of runs.
[[nodiscard]] bool numbers_comparable(const Comparison& comparison);
// Ids stand for places in a list of the pieces that occur, not in the model's vocabulary.
[[nodiscard]] bool interned(const Comparison& comparison);

// Both sides are files that say that their values are log probabilities, or whose probabilities
// became those.
[[nodiscard]] bool of_log_probabilities(const Comparison& comparison);

// A text about logits ("Largest logit difference", "logits") in the words that fit the comparison:
// "Largest log probability difference". Unchanged where the values are logits, or nobody says what
// they are.
[[nodiscard]] std::string in_fitting_words(const Comparison& comparison, std::string_view text);

// The unit of differences and margins: "logit", or "nat" of log probabilities.
[[nodiscard]] std::string_view value_unit(const Comparison& comparison);
// The metric's own unit, with value_unit() in the place of "logit".
[[nodiscard]] std::string_view metric_unit(const Comparison& comparison, const MetricSpec& spec);

// A metric of this step that is NaN was not measured, rather than measured as NaN: a side was read
// from a file, and either no NaN or infinity in its rows accounts for it, or the metric is one that
// files cannot give (tie_ulps, what needs a reference lane, differences of numbers of two kinds).
[[nodiscard]] bool not_known(const Comparison& comparison, const StepComparison& step,
                             const MetricSpec& spec, double value);

// Of runs "38 of 60 planned". Of files, where nothing was planned: how many steps were compared,
// how many each side holds, and why the others were not compared.
[[nodiscard]] std::string describe_steps(const Comparison& comparison);

}  // namespace driftscope
