// SPDX-License-Identifier: Apache-2.0
// Thresholds of a comparison as flags, and the exit code that a verdict gives.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "analysis/compare/comparison.h"
#include "kernels/base/result.h"

namespace driftscope::cli {

struct PolicyOptions {
  ComparePolicy policy;
  std::string fail_on;  // a tier: exit 1 when the verdict is not at least as strong
};
void declare_policy(CLI::App& app, PolicyOptions& options);
[[nodiscard]] Result<ComparePolicy> make_policy(const PolicyOptions& options);
// 3 where the verdict is inconclusive; 1 where --fail-on asks for more than the verdict; else 0.
[[nodiscard]] int verdict_exit_code(const Comparison& comparison, const PolicyOptions& options);

}  // namespace driftscope::cli
