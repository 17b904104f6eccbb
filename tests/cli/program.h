// SPDX-License-Identifier: Apache-2.0
// Runs the headless program as a person would and keeps what it said.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace driftscope::test {

struct ProgramResult {
  int exit_code = -1;  // -signal where a signal ended it
  std::string out;
  std::string err;
};

// Starts `driftscope` with these arguments in `directory`, standard input empty.
[[nodiscard]] ProgramResult run_program(const std::vector<std::string>& arguments,
                                        const std::filesystem::path& directory);

// A fresh folder, removed with its contents at the end.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return m_path; }
  [[nodiscard]] std::string file(const std::string& name) const { return (m_path / name).string(); }

 private:
  std::filesystem::path m_path;
};

[[nodiscard]] std::string sample_model();  // path of samples/model
[[nodiscard]] std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, const std::string& bytes);
// A copy of the sample model's folder.
void copy_model(const std::filesystem::path& target);

}  // namespace driftscope::test
