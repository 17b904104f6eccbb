// SPDX-License-Identifier: Apache-2.0
// driftscope vendor --model: which local configuration gave the vendor's numbers.
#pragma once

#include <CLI/App.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/import/response.h"
#include "app/cli/command.h"
#include "app/cli/experiment.h"

namespace driftscope::cli {

struct LocalOptions {
  std::string model;
  PromptOptions prompt;
  std::vector<std::string> configs;
  std::string configs_file;
  std::int64_t tokens = 256;  // of one answer, at most
  [[nodiscard]] bool given() const { return !model.empty(); }
};
void declare_local(CLI::App& app, LocalOptions& options);
// Errors: usage, where an option of these is given without --model.
[[nodiscard]] Result<void> check_local(const LocalOptions& options);

struct LocalFile {
  std::string name;
  const std::vector<Response>& responses;
};
struct LocalOutcome {
  nlohmann::ordered_json json;
  std::string text;
  int exit_code = 0;  // 3: a file is unobservable
};
// Every answer of a file is scored under every configuration. Each file is ranked on its own, since
// another configuration may have given each; several are then held against each other. Errors:
// usage (no prompt), inconclusive (a single file without anything to score), and of models,
// configurations and the engine; interrupted.
[[nodiscard]] Result<LocalOutcome> rank_locally(const LocalOptions& options,
                                                const std::vector<LocalFile>& files,
                                                CommandContext& context);

}  // namespace driftscope::cli
