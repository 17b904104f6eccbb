// SPDX-License-Identifier: Apache-2.0
#include "app/cli/output_file.h"

#include <fmt/format.h>

#include <filesystem>

namespace driftscope::cli {

Result<void> check_target(const std::string& path, bool force) {
  namespace fs = std::filesystem;
  if (path.empty() || path == "-") {
    return fail(ErrorKind::usage,
                fmt::format("--output: \"{}\" is not a file name; give a path", path));
  }
  std::error_code code;
  const fs::file_status status = fs::symlink_status(path, code);
  if (!fs::exists(status)) return {};
  if (fs::is_directory(status)) {
    return fail(ErrorKind::output, fmt::format("{}: is a directory; give a file name", path));
  }
  if (fs::is_symlink(status)) {
    return fail(ErrorKind::output,
                fmt::format("{}: is a symbolic link; give the name of the file itself", path));
  }
  if (!fs::is_regular_file(status)) {
    return fail(ErrorKind::output,
                fmt::format("{}: is not a regular file; give another name", path));
  }
  if (!force) {
    return fail(ErrorKind::output,
                fmt::format("{}: exists; give another name, or --force to replace it", path));
  }
  return {};
}

}  // namespace driftscope::cli
