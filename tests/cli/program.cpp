// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace driftscope::test {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder() {
  std::string name = (fs::temp_directory_path() / "driftscope-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  m_path = name;
}
ScratchFolder::~ScratchFolder() {
  std::error_code code;
  fs::remove_all(m_path, code);
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
}

std::string sample_model() { return std::string(DRIFTSCOPE_SOURCE_DIR) + "/samples/model"; }

void copy_model(const fs::path& target) {
  fs::copy(sample_model(), target, fs::copy_options::recursive);
}

namespace {

[[noreturn]] void become_program(std::vector<std::string> words, const fs::path& directory,
                                 const fs::path& out, const fs::path& err) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const int null = open("/dev/null", O_RDONLY);
  const int out_file = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int err_file = open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (null < 0 || out_file < 0 || err_file < 0 || chdir(directory.c_str()) != 0) _exit(126);
  dup2(null, 0);
  dup2(out_file, 1);
  dup2(err_file, 2);
  execv(pointers[0], pointers.data());
  _exit(127);
}

}  // namespace

ProgramResult run_program(const std::vector<std::string>& arguments, const fs::path& directory) {
  const ScratchFolder scratch;
  std::vector<std::string> words{DRIFTSCOPE_CLI_PATH};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const fs::path out = scratch.path() / "out";
  const fs::path err = scratch.path() / "err";
  const pid_t child = fork();
  if (child == 0) become_program(std::move(words), directory, out, err);
  int status = 0;
  waitpid(child, &status, 0);
  ProgramResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  result.out = read_file(out);
  result.err = read_file(err);
  return result;
}

}  // namespace driftscope::test
