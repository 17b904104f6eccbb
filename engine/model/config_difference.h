// SPDX-License-Identifier: Apache-2.0
// Which fields of two checkpoints' configuration files differ.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace driftscope {

struct ConfigFieldDifference {
  std::string field;  // "config.json rope_scaling/factor"
  std::string a;      // as JSON; "absent" where the side has no such field
  std::string b;
};

// Fields of config.json and generation_config.json in the two folders, in the order of their names.
// A file that cannot be read counts as one without fields: opening the checkpoint reports it.
[[nodiscard]] std::vector<ConfigFieldDifference> config_file_difference(
    const std::filesystem::path& a, const std::filesystem::path& b);

// "config.json rope_theta: 10000 and 500000; …", at most five fields and the number of others;
// empty where none differ.
[[nodiscard]] std::string describe(const std::vector<ConfigFieldDifference>& differences);

}  // namespace driftscope
