// SPDX-License-Identifier: Apache-2.0
#include "engine/model/config_difference.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/model/strict_json.h"

namespace driftscope {
namespace {

constexpr std::size_t kMaxConfigBytes = std::size_t{16} << 20U;

// Values by path: {"rope_scaling": {"factor": 8}} gives "rope_scaling/factor" -> "8".
std::map<std::string, std::string> fields_of(const std::filesystem::path& file) {
  std::map<std::string, std::string> fields;
  const auto json = read_strict_json(file, kMaxConfigBytes);
  if (!json || !json->is_object()) return fields;
  const auto flat = json->flatten();
  for (const auto& [path, value] : flat.items()) fields[path.substr(1)] = value.dump();
  return fields;
}

void compare_file(const std::filesystem::path& a, const std::filesystem::path& b, const char* name,
                  std::vector<ConfigFieldDifference>& differences) {
  const auto fields_a = fields_of(a / name);
  const auto fields_b = fields_of(b / name);
  std::set<std::string> paths;
  for (const auto& [path, value] : fields_a) paths.insert(path);
  for (const auto& [path, value] : fields_b) paths.insert(path);
  for (const std::string& path : paths) {
    const auto at_a = fields_a.find(path);
    const auto at_b = fields_b.find(path);
    const std::string value_a = at_a == fields_a.end() ? "absent" : at_a->second;
    const std::string value_b = at_b == fields_b.end() ? "absent" : at_b->second;
    if (value_a == value_b) continue;
    differences.push_back({.field = fmt::format("{} {}", name, path), .a = value_a, .b = value_b});
  }
}

}  // namespace

std::vector<ConfigFieldDifference> config_file_difference(const std::filesystem::path& a,
                                                          const std::filesystem::path& b) {
  std::vector<ConfigFieldDifference> differences;
  compare_file(a, b, "config.json", differences);
  compare_file(a, b, "generation_config.json", differences);
  return differences;
}

std::string describe(const std::vector<ConfigFieldDifference>& differences) {
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < differences.size() && i < kShown; ++i) {
    const ConfigFieldDifference& difference = differences[i];
    text += fmt::format("{}{}: {} and {}", i == 0 ? "" : "; ", difference.field, difference.a,
                        difference.b);
  }
  if (differences.size() > kShown) {
    text += fmt::format("; and {} more fields", differences.size() - kShown);
  }
  return text;
}

}  // namespace driftscope
