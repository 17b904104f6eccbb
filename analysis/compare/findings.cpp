// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/conclusion.h"

namespace driftscope {

std::vector<Finding> collect_findings(const RunContext&) { return {}; }

}  // namespace driftscope
