// SPDX-License-Identifier: Apache-2.0
// driftscope completion bash: words and options of every command, from the declarations themselves.
#include <fmt/format.h>

#include "app/cli/command.h"
#include "engine/config/knob.h"

namespace driftscope::cli {
namespace {

struct CompletionOptions {
  std::string shell;
};

std::string options_of(const Command& command) {
  CLI::App app;
  CommandContext scratch;
  command.declare(app, scratch);
  std::string words = "--help --quiet --verbose";
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      if (name != "help") words += " --" + name;
    }
  }
  return words;
}

Result<int> run(const CompletionOptions& options, CommandContext& context) {
  if (options.shell != "bash") {
    return fail(ErrorKind::usage,
                fmt::format("completion: \"{}\"; only bash is supported", options.shell));
  }
  std::string names;
  std::string cases;
  for (const Command& command : commands()) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", command.name);
    cases += fmt::format("    {}) words=\"{}\" ;;\n", command.name, options_of(command));
  }
  std::string knobs;
  for (const KnobSpec& knob : knob_registry()) knobs += fmt::format("{}= ", knob.id);
  std::string preset_names;
  for (const Preset& preset : presets()) preset_names += fmt::format("{} ", preset.name);
  const std::string script = fmt::format(
      R"(_driftscope() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
  case "$previous" in
    --a|--b|--config) COMPREPLY=($(compgen -W "{}" -- "$current") $(compgen -f -- "$current")); return ;;
    --set|--set-a|--set-b) COMPREPLY=($(compgen -W "{}" -- "$current")); compopt -o nospace; return ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{}" -- "$current")); return
  fi
  case "${{COMP_WORDS[1]}}" in
{}  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
    *) COMPREPLY=($(compgen -f -- "$current")) ;;
  esac
}}
complete -F _driftscope driftscope
)",
      preset_names, knobs, names, cases);
  if (auto printed = context.console.print(script); !printed)
    return tl::unexpected(printed.error());
  return 0;
}

}  // namespace

void declare_completion(CLI::App& app, CommandContext& context) {
  auto options = bind_command<CompletionOptions>(app, context, &run);
  app.add_option("shell", options->shell, "bash")->required();
}

}  // namespace driftscope::cli
