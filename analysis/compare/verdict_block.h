// SPDX-License-Identifier: Apache-2.0
// The verdict as a block of text for a terminal.
#pragma once

#include <string>

#include "analysis/compare/comparison.h"

namespace driftscope {

// Lines of at most about 100 columns (commands are never broken), each ended by '\n'. Text of
// models is escaped. `colour` adds ANSI sequences and nothing else.
[[nodiscard]] std::string verdict_block(const Comparison& comparison, bool colour);

}  // namespace driftscope
