// SPDX-License-Identifier: Apache-2.0
// Where a command may write.
#pragma once

#include <string>

#include "kernels/base/result.h"

namespace driftscope::cli {

// Refuses an empty name, whatever is there and is not a regular file (a device, a directory, a
// symbolic link: replacing it would destroy more than a file), and an existing file unless `force`.
[[nodiscard]] Result<void> check_target(const std::string& path, bool force);

}  // namespace driftscope::cli
