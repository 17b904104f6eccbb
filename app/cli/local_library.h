// SPDX-License-Identifier: Apache-2.0
// Configurations that a vendor's numbers are held against.
#pragma once

#include <string>
#include <vector>

#include "engine/config/run_config.h"
#include "kernels/base/result.h"

namespace driftscope::cli {

struct LibraryEntry {
  std::string name;
  std::string description;
  RunConfig config;
};

// What the presets and the knobs of weights, KV cache and logits offer.
[[nodiscard]] std::vector<LibraryEntry> default_library();

// `names`: presets, configuration files, or names of the default library. `file`: JSON, a list of
// configurations, each with a "name"; may be empty. Neither: the default library. Errors: usage,
// malformed; two entries of one name.
[[nodiscard]] Result<std::vector<LibraryEntry>> make_library(const std::vector<std::string>& names,
                                                             const std::string& file);

}  // namespace driftscope::cli
