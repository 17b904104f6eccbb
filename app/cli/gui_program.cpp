// SPDX-License-Identifier: Apache-2.0
#include "app/cli/gui_program.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

extern char** environ;  // NOLINT: POSIX

namespace driftscope::cli {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> no_gui() {
  return fail(
      ErrorKind::engine,
      "driftscope-gui is not installed beside driftscope; build it (Qt 6 and QCustomPlot are "
      "needed) or set DRIFTSCOPE_GUI to its path");
}

std::vector<char*> argument_pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> command_words(const std::string& program,
                                       const std::vector<std::string>& arguments) {
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

}  // namespace

std::optional<std::string> find_gui() {
  if (const char* chosen = std::getenv("DRIFTSCOPE_GUI"); chosen != nullptr && *chosen != '\0') {
    return std::string(chosen);
  }
  std::error_code code;
  const fs::path self = fs::read_symlink("/proc/self/exe", code).parent_path();
  std::vector<fs::path> candidates{self / "driftscope-gui",
                                   self.parent_path() / "gui" / "driftscope-gui"};
  if (const char* path = std::getenv("PATH"); path != nullptr) {
    const std::string_view list(path);
    for (std::size_t begin = 0; begin <= list.size();) {
      const auto end = std::min(list.find(':', begin), list.size());
      if (end > begin)
        candidates.push_back(fs::path(list.substr(begin, end - begin)) / "driftscope-gui");
      begin = end + 1;
    }
  }
  for (const fs::path& candidate : candidates) {
    if (access(candidate.c_str(), X_OK) == 0 && fs::is_regular_file(candidate, code)) {
      return candidate.string();
    }
  }
  return std::nullopt;
}

Result<int> run_gui(const std::vector<std::string>& arguments) {
  const auto program = find_gui();
  if (!program) return no_gui();
  auto words = command_words(*program, arguments);
  auto pointers = argument_pointers(words);
  pid_t child = 0;
  if (const int error =
          posix_spawn(&child, program->c_str(), nullptr, nullptr, pointers.data(), environ);
      error != 0) {
    return fail(ErrorKind::engine,
                fmt::format("{}: cannot start ({})", *program, std::strerror(error)));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return fail(ErrorKind::engine, fmt::format("{}: ended by signal {}", *program, WTERMSIG(status)));
}

Result<int> become_gui(const std::vector<std::string>& arguments) {
  const auto program = find_gui();
  if (!program) return no_gui();
  auto words = command_words(*program, arguments);
  auto pointers = argument_pointers(words);
  execv(program->c_str(), pointers.data());
  return fail(ErrorKind::engine,
              fmt::format("{}: cannot start ({})", *program, std::strerror(errno)));
}

}  // namespace driftscope::cli
