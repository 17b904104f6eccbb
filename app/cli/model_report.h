// SPDX-License-Identifier: Apache-2.0
// What a model is: architecture, shapes, stored types, files, memory, and what does not fit.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "app/cli/experiment.h"

namespace driftscope::cli {

// The member "model" of the doctor's document.
[[nodiscard]] nlohmann::ordered_json model_report(const LoadedModel& model);
[[nodiscard]] std::string model_report_text(const nlohmann::ordered_json& report);

}  // namespace driftscope::cli
