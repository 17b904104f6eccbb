// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>

#include "analysis/capture/capture.h"
#include "app/cli/command.h"

namespace driftscope::cli {
namespace {

struct RecoverOptions {
  std::string damaged;
  std::string output;
  bool force = false;
};

Result<int> run(const RecoverOptions& options, CommandContext& context) {
  std::error_code code;
  if (!options.force && std::filesystem::exists(options.output, code)) {
    return fail(
        ErrorKind::output,
        fmt::format("{}: exists; give another name, or --force to replace it", options.output));
  }
  auto steps = recover_capture(options.damaged, options.output);
  if (!steps) return tl::unexpected(steps.error());
  auto printed = context.console.print(
      fmt::format("{} steps of all lanes saved in {}\n", *steps, options.output));
  if (!printed) return tl::unexpected(printed.error());
  return 0;
}

}  // namespace

void declare_recover(CLI::App& app, CommandContext& context) {
  auto options = bind_command<RecoverOptions>(app, context, &run);
  app.add_option("damaged", options->damaged, "Capture that was cut off or damaged")->required();
  app.add_option("--output,-o", options->output, "Fresh file")->required();
  app.add_flag("--force", options->force, "Replace an existing file");
}

}  // namespace driftscope::cli
