// SPDX-License-Identifier: Apache-2.0
// driftscope: the headless program. Links no Qt.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iostream>

#include "app/cli/command.h"
#include "kernels/base/display_text.h"

namespace {

using driftscope::cli::Command;
using driftscope::cli::CommandContext;

constexpr const char* kAbout =
    "Finds out why a language model gave a different answer to the same prompt.\n"
    "Exit codes: 0 done, 1 drift beyond the policy, 2 wrong usage, 3 inconclusive, 4 malformed "
    "input,\n"
    "5 engine failure, 6 cannot write output, 130 interrupted (what was captured is kept).";

void declare_all(CLI::App& app, CommandContext& context) {
  app.set_version_flag("--version", std::string("driftscope ") + DRIFTSCOPE_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  app.add_flag("-q,--quiet", context.console.quiet, "No progress and no notes on stderr");
  app.add_flag("-v,--verbose", context.console.verbose, "Library messages behind an error");
  for (const Command& command : driftscope::cli::commands()) {
    CLI::App* sub = app.add_subcommand(std::string(command.name), std::string(command.summary));
    sub->footer(fmt::format("Example:\n  {}", command.example));
    sub->fallthrough();
    command.declare(*sub, context);
  }
}

int usage_error(const CLI::App& app, const CLI::ParseError& error) {
  std::string name = "driftscope";
  for (const CLI::App* sub : app.get_subcommands()) name += " " + sub->get_name();
  std::string message = error.what();
  for (char& c : message) c = c == '\n' ? ' ' : c;
  fmt::print(stderr, "driftscope: {}; see: {} --help\n", message, name);
  return driftscope::exit_code(driftscope::ErrorKind::usage);
}

bool is_command(std::string_view word) {
  const auto commands = driftscope::cli::commands();
  return std::any_of(commands.begin(), commands.end(),
                     [&](const Command& command) { return command.name == word; });
}

// Help and version are results like any other: a full disk is an error.
int print_help(const CLI::App& app, const CLI::ParseError& error) {
  const int code = app.exit(error);
  std::cout.flush();
  if (std::cout && std::fflush(stdout) == 0) return code;
  fmt::print(stderr, "driftscope: stdout: cannot write the help; free space or write elsewhere\n");
  return driftscope::exit_code(driftscope::ErrorKind::output);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is a write error, reported as one
  CommandContext context;
  context.arguments.assign(argv, argv + argc);
  CLI::App app{kAbout, "driftscope"};
  declare_all(app, context);
  if (argc > 1 && argv[1][0] != '-' && !is_command(argv[1])) {
    fmt::print(stderr, "driftscope: unknown command \"{}\"; see: driftscope --help\n",
               driftscope::escape_for_display(argv[1]));
    return driftscope::exit_code(driftscope::ErrorKind::usage);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? print_help(app, error) : usage_error(app, error);
  }
  const auto exit_code = context.action();
  if (!exit_code) {
    (void)context.console.flush();
    context.console.report(exit_code.error());
    return driftscope::exit_code(exit_code.error().kind);
  }
  if (auto flushed = context.console.flush(); !flushed) {
    context.console.report(flushed.error());
    return driftscope::exit_code(flushed.error().kind);
  }
  return *exit_code;
}
