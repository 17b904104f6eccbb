// SPDX-License-Identifier: Apache-2.0
// The tiny checkpoints with f64 logits in the shared test data, opened with any configuration.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/model/checkpoint.h"
#include "tests/exec/tiny_checkpoint.h"

#define NEED_SHARED_DATA() \
  if (!std::filesystem::exists(kOracle)) GTEST_SKIP() << "no shared test data at " << kOracle

namespace driftscope::test {

inline const std::filesystem::path kOracle =
    std::filesystem::path(DRIFTSCOPE_SHARED_DATA) / "oracle" / "architectures";

using Model = std::shared_ptr<const ModelCheckpoint>;
using Json = nlohmann::json;

inline Json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  return Json::parse(file);
}

inline Json config_of(const std::string& name) { return read_json(kOracle / name / "config.json"); }

inline Model open(const std::string& name, const Json& config) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "config.json") << config;
  std::filesystem::copy_file(kOracle / name / "model.safetensors",
                             folder.path() / "model.safetensors");
  auto opened = ModelCheckpoint::open(folder.path());  // mapped, so it outlives the folder
  if (!opened) throw std::runtime_error(opened.error().message);
  return *opened;
}

inline std::vector<TokenId> prompt_of(const std::string& name, int prompt) {
  std::vector<TokenId> tokens;
  for (const auto& id : read_json(kOracle / name / fmt::format("prompt{}.ids.json", prompt))) {
    tokens.push_back(TokenId{id.get<std::int32_t>()});
  }
  return tokens;
}

// What the data's manifest suggests for f32, of the longer prompt.
inline double tolerance_of(const std::string& name) {
  return read_json(kOracle /
                   "MANIFEST.json")["models"][name]["prompts"][1]["suggested_tolerance_float32"];
}

}  // namespace driftscope::test
