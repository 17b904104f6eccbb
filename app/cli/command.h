// SPDX-License-Identifier: Apache-2.0
// What a command of the headless program is: a row in the table of commands.cpp.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/console.h"
#include "kernels/base/result.h"

namespace driftscope::cli {

struct CommandContext {
  Console console;
  std::vector<std::string> arguments;   // as typed, the program's name first
  std::function<Result<int>()> action;  // set by the chosen command; returns the exit code
};

struct Command {
  std::string_view name;
  std::string_view summary;
  std::string_view example;
  // Declares options on `app`; the options object lives as long as `app`.
  void (*declare)(CLI::App& app, CommandContext& context);
};

[[nodiscard]] std::span<const Command> commands();

// Binds an options object and its function to a subcommand.
template <class Options>
std::shared_ptr<Options> bind_command(CLI::App& app, CommandContext& context,
                                      Result<int> (*run)(const Options&, CommandContext&)) {
  auto options = std::make_shared<Options>();
  app.callback([options, run, &context] {
    context.action = [options, run, &context] { return run(*options, context); };
  });
  return options;
}

// One per file.
void declare_run(CLI::App& app, CommandContext& context);
void declare_score(CLI::App& app, CommandContext& context);
void declare_tokenize(CLI::App& app, CommandContext& context);
void declare_compare(CLI::App& app, CommandContext& context);
void declare_inspect(CLI::App& app, CommandContext& context);
void declare_export(CLI::App& app, CommandContext& context);
void declare_vendor(CLI::App& app, CommandContext& context);
void declare_probe(CLI::App& app, CommandContext& context);
void declare_import(CLI::App& app, CommandContext& context);
void declare_recover(CLI::App& app, CommandContext& context);
void declare_knobs(CLI::App& app, CommandContext& context);
void declare_metrics(CLI::App& app, CommandContext& context);
void declare_presets(CLI::App& app, CommandContext& context);
void declare_fingerprint(CLI::App& app, CommandContext& context);
void declare_doctor(CLI::App& app, CommandContext& context);
void declare_gui(CLI::App& app, CommandContext& context);
void declare_completion(CLI::App& app, CommandContext& context);

}  // namespace driftscope::cli
