// SPDX-License-Identifier: Apache-2.0
#include "tests/import/golden_files.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace driftscope::testing_golden {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kSuffix = ".expected.json";

// Expected findings are ids; what is found has more to each.
std::string finding_disagreement(const Json& expected, const Json& actual,
                                 const std::string& where) {
  std::vector<std::string> found;
  for (const Json& finding : actual) found.push_back(finding["id"]);
  std::vector<std::string> wanted;
  std::string out;
  for (const Json& id : expected) {
    const auto name = id.get<std::string>();
    if (name.starts_with('!')) continue;
    wanted.push_back(name);
    if (std::find(found.begin(), found.end(), name) == found.end()) {
      out += where + ": " + name + " is not found\n";
    }
  }
  const bool only_refused = std::any_of(expected.begin(), expected.end(), [](const Json& id) {
    return id.get<std::string>().starts_with('!');
  });
  for (const std::string& id : found) {
    const bool refused =
        only_refused ? std::find(expected.begin(), expected.end(), "!" + id) != expected.end()
                     : std::find(wanted.begin(), wanted.end(), id) == wanted.end();
    if (refused) out += where + ": " + id + " is found and should not be\n";
  }
  return out;
}

}  // namespace

std::string file_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<fs::path> golden_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().string();
    if (name.ends_with(kSuffix)) files.emplace_back(name.substr(0, name.size() - kSuffix.size()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string disagreement(const Json& expected, const Json& actual, const std::string& where) {
  if (where.ends_with(".findings")) return finding_disagreement(expected, actual, where);
  std::string out;
  if (expected.is_object() && actual.is_object()) {
    for (const auto& [key, value] : expected.items()) {
      const std::string inner = where + "." + key;
      if (!actual.contains(key)) {
        out += inner + ": is missing\n";
      } else {
        out += disagreement(value, actual[key], inner);
      }
    }
    return out;
  }
  if (expected.is_array() && actual.is_array()) {
    if (expected.size() != actual.size()) {
      return where + ": has " + std::to_string(actual.size()) + " entries, not " +
             std::to_string(expected.size()) + ": " + actual.dump() + "\n";
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
      out += disagreement(expected[i], actual[i], where + "[" + std::to_string(i) + "]");
    }
    return out;
  }
  if (expected == actual) return {};
  return where + ": is " + actual.dump() + ", not " + expected.dump() + "\n";
}

}  // namespace driftscope::testing_golden
