// SPDX-License-Identifier: Apache-2.0
// Samples with the reading that was written down for them by hand: NAME and NAME.expected.json.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace driftscope::testing_golden {

using Json = nlohmann::ordered_json;

[[nodiscard]] std::string file_text(const std::filesystem::path& path);
// Every NAME below the folder that has a NAME.expected.json, sorted.
[[nodiscard]] std::vector<std::filesystem::path> golden_files(const std::filesystem::path& folder);

// What of `expected` is not so in `actual`, a line each; empty: all is. Objects: every member that
// is expected must agree, others may be there. Lists: of the same length. "findings" lists the ids
// that must be found and no others than those of `ignored`; "!id" must not be found.
[[nodiscard]] std::string disagreement(const Json& expected, const Json& actual,
                                       const std::string& where);

}  // namespace driftscope::testing_golden
