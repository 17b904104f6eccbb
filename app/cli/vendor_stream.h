// SPDX-License-Identifier: Apache-2.0
// driftscope vendor of two long files of lines: compared line by line, without holding them.
#pragma once

#include <cstdint>
#include <optional>

#include "app/cli/command.h"
#include "app/cli/vendor_input.h"
#include "app/cli/vendor_policy.h"

namespace driftscope::cli {

struct VendorStreamOptions {
  bool json = false;
  bool steps = false;  // per_step in the JSON document
  bool all = false;    // every pair in the text
  bool population = false;
  int threads = 0;  // 0: all cores
  std::int64_t permutations = 0;
  std::uint64_t seed = 1;
};

// Files of more lines than this on one side are compared line by line.
inline constexpr std::size_t kFewLines = 200;

// Prints what it found and returns the weakest tier. Empty: the files are no files of lines, or
// short ones, and nothing was done. Errors: interrupted after what was compared is printed.
[[nodiscard]] Result<std::optional<ReachedTier>> compare_long_files(
    const VendorInput& a, const VendorInput& b, const VendorStreamOptions& options,
    CommandContext& context);

}  // namespace driftscope::cli
