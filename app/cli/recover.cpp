// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>

#include "analysis/capture/capture.h"
#include "app/cli/command.h"
#include "app/cli/output_file.h"

namespace driftscope::cli {
namespace {

struct RecoverOptions {
  std::string damaged;
  std::string output;
  bool force = false;
};

Result<int> run(const RecoverOptions& options, CommandContext& context) {
  if (auto target = check_target(options.output, options.force); !target) {
    return tl::unexpected(target.error());
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
