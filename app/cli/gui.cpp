// SPDX-License-Identifier: Apache-2.0
#include "app/cli/command.h"
#include "app/cli/gui_program.h"

namespace driftscope::cli {
namespace {

struct GuiOptions {
  std::string file;
};

Result<int> run(const GuiOptions& options, CommandContext&) {
  std::vector<std::string> arguments;
  if (!options.file.empty()) arguments.push_back(options.file);
  return become_gui(arguments);
}

}  // namespace

void declare_gui(CLI::App& app, CommandContext& context) {
  auto options = bind_command<GuiOptions>(app, context, &run);
  app.add_option("file", options->file, "Capture to open");
}

}  // namespace driftscope::cli
