// SPDX-License-Identifier: Apache-2.0
// A mixture of experts from end to end: a planted change of a router is found as a route flip.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/exec/tiny_checkpoint.h"

namespace driftscope::test {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

const TinyModel kModel{.type = "qwen2_moe"};  // 3 layers, 6 experts, 2 chosen

std::string checkpoint(const ScratchFolder& scratch, const std::string& name,
                       const std::vector<NamedTensor>& tensors) {
  std::filesystem::create_directory(scratch.path() / name);
  write_checkpoint(scratch.path() / name, kModel, tensors);
  return name;
}

TEST(ExpertsFromEndToEnd, APlantedRouterChangeIsNamed) {
  const ScratchFolder scratch;
  auto tensors = random_tensors(kModel);
  const std::string a = checkpoint(scratch, "a", tensors);
  for (NamedTensor& tensor : tensors) {
    if (tensor.name != "model.layers.1.mlp.gate.weight") continue;
    const auto row = tensor.values.begin() + kModel.hidden;
    std::swap_ranges(tensor.values.begin(), row, row);  // experts 0 and 1
  }
  const std::string b = checkpoint(scratch, "b", tensors);
  const auto run = [&](const std::vector<std::string>& models) {
    std::vector<std::string> words{"run", "--prompt-ids", "5,17,33,91,40,8", "--steps", "12",
                                   "-q",  "--json",       "--force",         "-o",      "run.h5"};
    words.insert(words.end(), models.begin(), models.end());
    return run_program(words, scratch.path());
  };

  const auto same = run({"--model", a});
  ASSERT_EQ(same.exit_code, 0) << same.err;
  const Json equal = Json::parse(same.out);
  EXPECT_EQ(equal["verdict"], "bitwise");
  EXPECT_EQ(equal["routes"]["decisions"], 36);
  EXPECT_TRUE(equal["routes"]["flips"].empty());

  const auto changed = run({"--model", a, "--model-b", b});
  ASSERT_FALSE(changed.out.empty()) << changed.err;
  const Json routes = Json::parse(changed.out)["routes"];
  EXPECT_EQ(routes["layers"], Json({0, 1, 2}));
  ASSERT_FALSE(routes["flips"].empty());
  bool in_layer = false;
  for (const Json& flip : routes["flips"]) {
    EXPECT_NE(flip["layer"], 0);
    in_layer = in_layer || flip["layer"] == 1;
  }
  EXPECT_TRUE(in_layer);

  const auto compared = run_program({"compare", "run.h5"}, scratch.path());
  EXPECT_THAT(compared.out, HasSubstr("the router chose expert"));
  const auto inspected = run_program({"inspect", "run.h5", "--step", "1"}, scratch.path());
  ASSERT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_THAT(inspected.out, HasSubstr("routes         3 layers, 2 of 6 experts per token"));
  EXPECT_THAT(inspected.out, HasSubstr("layer   1: experts "));
  EXPECT_EQ(run_program({"inspect", "run.h5", "--verify"}, scratch.path()).exit_code, 0);
}

}  // namespace
}  // namespace driftscope::test
