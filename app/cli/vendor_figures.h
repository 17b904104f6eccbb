// SPDX-License-Identifier: Apache-2.0
// What `driftscope vendor` does with a file that holds reported figures instead of an answer.
#pragma once

#include <string_view>

#include "app/cli/command.h"

namespace driftscope::cli {

// Prints what the figures carry. Errors: malformed, output.
[[nodiscard]] Result<int> print_figures(std::string_view text, std::string_view name, bool json,
                                        CommandContext& context);

}  // namespace driftscope::cli
