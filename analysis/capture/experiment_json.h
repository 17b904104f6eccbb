// SPDX-License-Identifier: Apache-2.0
// ExperimentFacts as JSON: the experiment's envelope in a capture, and the event `started`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "analysis/capture/capture.h"
#include "analysis/compare/comparison_builder.h"

namespace driftscope {

// Everything of `facts` but the function `piece`.
[[nodiscard]] nlohmann::ordered_json experiment_to_json(const ExperimentFacts& facts);
// Errors: malformed, naming `where` and the field. Missing fields keep their defaults.
[[nodiscard]] Result<ExperimentFacts> experiment_from_json(const nlohmann::ordered_json& json,
                                                           std::string_view where);

// What a capture of this experiment starts with. `lanes` get the configuration and envelope of
// their side; the pieces of the whole vocabulary are kept if facts.piece is set.
[[nodiscard]] CaptureHeader capture_header(const ExperimentFacts& facts, std::string_view created,
                                           const std::vector<Lane>& lanes);
// What is known of the experiment from its capture.
[[nodiscard]] Result<ExperimentFacts> experiment_of(const CaptureReader& reader);

}  // namespace driftscope
