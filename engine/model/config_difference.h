// SPDX-License-Identifier: Apache-2.0
// Which fields of two checkpoints' configurations differ.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/model/checkpoint.h"

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

// Fields of two descriptions, for checkpoints of different formats: "rope_theta", "window of layer
// 3", in the order of their names.
[[nodiscard]] std::vector<ConfigFieldDifference> description_difference(const ModelDescription& a,
                                                                        const ModelDescription& b);

// Of the files where both are directories, else of the descriptions.
[[nodiscard]] std::vector<ConfigFieldDifference> config_difference(const ModelCheckpoint& a,
                                                                   const ModelCheckpoint& b);

// "config.json rope_theta: 10000 and 500000; …", at most five fields and the number of others;
// empty where none differ.
[[nodiscard]] std::string describe(const std::vector<ConfigFieldDifference>& differences);

}  // namespace driftscope
