// SPDX-License-Identifier: Apache-2.0
// What two answers say about which version gave them, and what each kind of evidence can prove.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/compare/comparison.h"
#include "analysis/import/response.h"

namespace driftscope {

enum class EvidenceGrade : std::uint8_t {
  none,    // the same for every version, or random
  weak,    // a name that its owner may point elsewhere
  medium,  // names a build or a backend, not the weights
  good,    // names the weights or a dated snapshot
};
[[nodiscard]] std::string_view name_of(EvidenceGrade grade);

struct VersionEvidence {
  std::string field;  // "model", "system_fingerprint", …
  std::string value;
  EvidenceGrade grade = EvidenceGrade::none;
  std::string meaning;  // what an equal or another value can prove
};

// What one answer tells, strongest first.
[[nodiscard]] std::vector<VersionEvidence> version_evidence(const Response& response);
// Fields that both have and that differ.
[[nodiscard]] std::vector<FieldDifference> version_differences(const Response& a,
                                                               const Response& b);
// "model gpt-4o-2024-08-06 and gpt-4o-2024-11-20"; empty for none.
[[nodiscard]] std::string describe_versions(const std::vector<FieldDifference>& differences);
// Temperature and top_p where both are known and differ; empty: they do not.
[[nodiscard]] std::string setting_differences(const Response& a, const Response& b);
[[nodiscard]] std::vector<Finding> version_findings(const Response& a, const Response& b);

}  // namespace driftscope
