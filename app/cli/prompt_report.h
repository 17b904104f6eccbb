// SPDX-License-Identifier: Apache-2.0
// What doctor says of a model's chat template and of a prompt.
#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <string>

#include "app/cli/experiment.h"

namespace driftscope::cli {

struct PromptReportOptions {
  PromptOptions prompt;
  std::optional<std::int32_t> bos;  // of ids without a model, or against the model's own
  std::optional<std::string> vendor_ids;
};
void declare_prompt_report(CLI::App& app, PromptReportOptions& options);

// Lines of the report; empty where there is nothing to say. `model` may be null: then only ids can
// be looked at. Errors: usage, malformed (the prompt cannot be made).
[[nodiscard]] Result<std::string> prompt_report(const PromptReportOptions& options,
                                                const LoadedModel* model);

}  // namespace driftscope::cli
