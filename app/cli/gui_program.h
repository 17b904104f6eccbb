// SPDX-License-Identifier: Apache-2.0
// Finds and runs driftscope-gui, which also draws plots without a display.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/base/result.h"

namespace driftscope::cli {

// $DRIFTSCOPE_GUI, beside this program, in the build tree beside it, or in PATH.
[[nodiscard]] std::optional<std::string> find_gui();
// Runs it with these arguments and waits; returns its exit code.
[[nodiscard]] Result<int> run_gui(const std::vector<std::string>& arguments);
// Replaces this process by it.
[[nodiscard]] Result<int> become_gui(const std::vector<std::string>& arguments);

}  // namespace driftscope::cli
