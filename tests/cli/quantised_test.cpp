// SPDX-License-Identifier: Apache-2.0
// A plain and B quantised in one command: what of the drift the weights make, and what the
// arithmetic.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/model/quantised_vectors.h"
#include "tests/report/schema_check.h"

namespace driftscope::test {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

std::vector<std::string> run_words(const ScratchFolder& scratch, const std::string& model_a,
                                   const std::string& model_b) {
  return {"run",
          "--model-a",
          scratch.file(model_a),
          "--model-b",
          scratch.file(model_b),
          "--steps",
          "6",
          "--prompt-ids",
          "1,2,3,4",
          "--reference",
          "--a",
          "reference-f32",
          "-q",
          "--json",
          "--force",
          "-o",
          scratch.file("run.h5")};
}

std::string field(const Json& document, const std::string& name, const char* side) {
  for (const Json& entry : document["envelope_diff"]) {
    if (entry["field"] == name) return entry[side].get<std::string>();
  }
  return "";
}

// The twin holds the very values that the quantised file stands for: two files, one computation.
TEST(Quantised, AFileOfTheSameValuesComputesTheSameBits) {
  for (const char* name : {"awq", "gptq4_reordered", "fp8_block", "ct_int4_group"}) {
    SCOPED_TRACE(name);
    const ScratchFolder scratch;
    write_quantised_model(scratch.path() / "q", name);
    write_plain_twin(scratch.path() / "q", scratch.path() / "plain");
    const auto result = run_program(run_words(scratch, "plain", "q"), scratch.path());
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const Json document = Json::parse(result.out);
    EXPECT_EQ(document["verdict"], "bitwise");
    ASSERT_TRUE(document["split"].is_object());
    EXPECT_EQ(document["split"]["weights"]["max_abs"], 0.0);
    EXPECT_EQ(document["split"]["arithmetic_a"], document["split"]["arithmetic_b"]);
    EXPECT_EQ(field(document, "runtime.quantization_method", "a"), "none");
    EXPECT_EQ(field(document, "runtime.scale_files.0.name", "b"), "model.safetensors");
  }
}

// Two quantisations of different weights: the weights make nearly all of it, and the same capture
// says so later.
TEST(Quantised, TheWeightsAreToldFromTheArithmetic) {
  const ScratchFolder scratch;
  write_quantised_model(scratch.path() / "a", "awq");
  write_quantised_model(scratch.path() / "b", "fp8_channel");
  const auto result = run_program(run_words(scratch, "a", "b"), scratch.path());
  const Json document = Json::parse(result.out);
  EXPECT_EQ(testing::schema_problem(testing::load_schema("compare.schema.json"), document), "");
  const Json& split = document["split"];
  EXPECT_EQ(split["steps"], 6);
  EXPECT_GT(split["weights"]["mean_kl"].get<double>(),
            1000 * split["arithmetic_b"]["mean_kl"].get<double>());
  EXPECT_GT(split["arithmetic_a"]["max_abs"].get<double>(), 0.0);
  const auto again = run_program({"compare", scratch.file("run.h5"), "--json"}, scratch.path());
  EXPECT_EQ(Json::parse(again.out)["split"], split);
  const auto block = run_program({"compare", scratch.file("run.h5")}, scratch.path());
  EXPECT_THAT(block.out, HasSubstr("weights differ"));
  EXPECT_THAT(block.out, HasSubstr("arithmetic differs, B"));
}

}  // namespace
}  // namespace driftscope::test
