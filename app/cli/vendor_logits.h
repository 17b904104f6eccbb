// SPDX-License-Identifier: Apache-2.0
// Two logit files of llama.cpp's --kl-divergence-base.
#pragma once

#include "app/cli/command.h"
#include "app/cli/vendor_input.h"

namespace driftscope::cli {

// Prints the statistics that llama.cpp prints, the base first; returns the exit code.
[[nodiscard]] Result<int> compare_logit_files(const VendorInput& base, const VendorInput& other,
                                              bool json, CommandContext& context);

}  // namespace driftscope::cli
