// SPDX-License-Identifier: Apache-2.0
// Finding a model, and what the doctor says of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/model/checkpoint.h"
#include "tests/cli/program.h"
#include "tests/report/schema_check.h"

namespace driftscope::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kCommit = "89abcdef0123456789abcdef0123456789abcdef";

// A hub cache with the sample model as "tiny/sample", for the program that is started.
class Hub : public ::testing::Test {
 protected:
  Hub() {
    const fs::path model = m_scratch.path() / "hub/models--tiny--sample";
    fs::create_directories(model / "refs");
    fs::create_directories(model / "snapshots");
    write_file(model / "refs/main", kCommit);
    copy_model(model / "snapshots" / kCommit);
    ::setenv("HF_HUB_CACHE", (m_scratch.path() / "hub").c_str(), 1);
  }
  ~Hub() override { ::unsetenv("HF_HUB_CACHE"); }
  [[nodiscard]] ProgramResult run(const std::vector<std::string>& words) const {
    return run_program(words, m_scratch.path());
  }
  ScratchFolder m_scratch;
};

TEST_F(Hub, TheDoctorDescribesAModelByItsId) {
  const auto result = run({"doctor", "--model", "tiny/sample", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_EQ(testing::schema_problem(testing::load_schema("doctor.schema.json"), document), "");
  const Json& model = document["model"];
  EXPECT_EQ(model["hub_id"], "tiny/sample");
  EXPECT_EQ(model["commit"], kCommit);
  EXPECT_EQ(model["architecture"]["model_type"],
            Json::parse(read_file(fs::path(sample_model()) / "config.json"))["model_type"]);
  EXPECT_FALSE(model["tokenizer"].is_null());
  for (const Json& file : model["files"]) {
    const fs::path path = fs::path(sample_model()) / file["name"].get<std::string>();
    EXPECT_EQ(file["bytes"], fs::file_size(path));
    EXPECT_EQ(file["sha256"], sha256_of_bytes(read_file(path)));
  }
  const auto text = run({"doctor", "--model", "tiny/sample"});
  EXPECT_THAT(text.out, HasSubstr("tiny/sample, commit 89abcdef"));
  EXPECT_THAT(text.out, HasSubstr("chat template"));
}

TEST_F(Hub, ARunRecordsTheCommit) {
  const auto result = run({"run", "--model", "tiny/sample", "--model-b", "tiny/sample@89ab",
                           "--prompt", "And", "--steps", "2", "-q", "--json", "-o", "x.h5"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out)["verdict"], "bitwise");
  const auto inspected = run({"inspect", "x.h5", "--json"});
  EXPECT_THAT(inspected.out, HasSubstr(kCommit));
}

TEST_F(Hub, WhatIsNotThereIsOneLineWithThePlaceLookedIn) {
  const auto result = run({"doctor", "--model", "tiny/other"});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, HasSubstr((m_scratch.path() / "hub").string()));
  EXPECT_THAT(result.err, HasSubstr("which holds tiny/sample"));
}

}  // namespace
}  // namespace driftscope::test
