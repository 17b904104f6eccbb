// SPDX-License-Identifier: Apache-2.0
#include "app/cli/command.h"
#include "app/cli/gui_program.h"

namespace driftscope::cli {
namespace {

struct GuiOptions {
  std::vector<std::string> files;
};

Result<int> run(const GuiOptions& options, CommandContext&) { return become_gui(options.files); }

}  // namespace

void declare_gui(CLI::App& app, CommandContext& context) {
  auto options = bind_command<GuiOptions>(app, context, &run);
  app.add_option("files", options->files,
                 "Capture to open, or saved answers of servers to compare");
}

}  // namespace driftscope::cli
