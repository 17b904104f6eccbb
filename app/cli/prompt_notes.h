// SPDX-License-Identifier: Apache-2.0
// What is odd about a prompt as it stands on the command line.
#pragma once

#include "app/cli/experiment.h"

namespace driftscope::cli {

// A --prompt that is the name of an existing file: the name itself is tokenised, which is seldom
// what was meant.
void note_prompt_naming_a_file(const PromptOptions& options, const Console& console);

}  // namespace driftscope::cli
