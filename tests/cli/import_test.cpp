// SPDX-License-Identifier: Apache-2.0
// driftscope import, from files as other programs leave them to a capture that every command opens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/logits/file_bytes.h"

namespace driftscope::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class ImportCommand : public ::testing::Test {
 protected:
  ScratchFolder scratch;
  ProgramResult run(const std::vector<std::string>& arguments) {
    return run_program(arguments, scratch.path());
  }
  void expect_one_line(const std::vector<std::string>& arguments, int exit_code,
                       const std::vector<std::string>& parts) {
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    for (const std::string& part : parts) {
      EXPECT_NE(result.err.find(part), std::string::npos) << part << " in: " << result.err;
    }
    EXPECT_FALSE(fs::exists(scratch.file("out.h5")));
    EXPECT_FALSE(fs::exists(scratch.file("out.h5.part")));
  }
};

constexpr const char* kAnswer =
    R"({"object":"chat.completion","model":"m","system_fingerprint":"fp_1","choices":[{"index":0,)"
    R"("message":{"content":"Hi"},"logprobs":{"content":[{"token":"Hi","logprob":-0.5,)"
    R"("top_logprobs":[{"token":"Hi","logprob":-0.5},{"token":"Yo","logprob":-1.5}]}]},)"
    R"("finish_reason":"stop"}]})";

TEST_F(ImportCommand, MatricesOpenEverywhere) {
  write_file(scratch.file("a.npy"), npy_f32(2, 3, {1, 2, 0, 5, 4, 0}));
  write_file(scratch.file("b.npy"), npy_f32(2, 3, {1, 2, 0, 4, 4.5, 0}));
  const ProgramResult made = run({"import", "a.npy", "b.npy", "-o", "out.h5"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const ProgramResult compared = run({"compare", "out.h5", "--json", "--steps", "all"});
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
  const Json document = Json::parse(compared.out);
  EXPECT_EQ(document["verdict"], "different");
  EXPECT_EQ(document["first_divergence"]["step"], 1);
  EXPECT_EQ(document["metrics"]["max_abs"]["max"], 1.0);
  EXPECT_TRUE(document["config_a"].is_null());
  EXPECT_EQ(run({"compare", "out.h5"}).exit_code, 0);
  EXPECT_EQ(run({"inspect", "out.h5", "--verify", "--step", "0"}).exit_code, 0);
  EXPECT_EQ(run({"inspect", "out.h5", "--json"}).exit_code, 0);
  for (const std::string format : {"csv", "json", "jsonl", "html"}) {
    const ProgramResult exported = run({"export", "out.h5", "--to", format, "-o", "out." + format});
    EXPECT_EQ(exported.exit_code, 0) << format << ": " << exported.err;
  }
}

TEST_F(ImportCommand, AnswersOpenEverywhereAndSayWhatTheyLack) {
  write_file(scratch.file("a.json"), kAnswer);
  std::string other = kAnswer;
  other.replace(other.find("fp_1"), 4, "fp_2");
  write_file(scratch.file("b.json"), other);
  ASSERT_EQ(run({"import", "a.json", "b.json", "-o", "out.h5"}).exit_code, 0);
  const ProgramResult compared = run({"compare", "out.h5", "--json"});
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
  const Json document = Json::parse(compared.out);
  EXPECT_EQ(document["verdict"], "token");
  EXPECT_EQ(document["metrics"]["max_abs"]["count"], 0);
  const auto differs = document["envelope_diff"];
  EXPECT_TRUE(std::any_of(differs.begin(), differs.end(), [](const Json& field) {
    return field["field"] == "system_fingerprint" && field["a"] == "fp_1" && field["b"] == "fp_2";
  })) << differs;
  // What the lists cannot carry is not known, and that is no pass.
  EXPECT_EQ(run({"compare", "out.h5", "--fail-on", "tolerance"}).exit_code, 3);
  EXPECT_EQ(run({"compare", "out.h5", "--fail-on", "token"}).exit_code, 0);
  EXPECT_EQ(run({"inspect", "out.h5", "--verify", "--step", "0"}).exit_code, 0);
  for (const std::string format : {"csv", "json", "jsonl", "html"}) {
    const ProgramResult exported = run({"export", "out.h5", "--to", format, "-o", "out." + format});
    EXPECT_EQ(exported.exit_code, 0) << format << ": " << exported.err;
  }
}

TEST_F(ImportCommand, OtherQuestionsAreOtherTasks) {
  const auto exchange = [](const std::string& question) {
    return R"({"request":{"model":"m","messages":[{"role":"user","content":")" + question +
           R"("}]},"response":)" + kAnswer + "}";
  };
  write_file(scratch.file("a.json"), exchange("one"));
  write_file(scratch.file("b.json"), exchange("two"));
  ASSERT_EQ(run({"import", "a.json", "b.json", "-o", "out.h5"}).exit_code, 0);
  EXPECT_EQ(run({"vendor", "a.json", "b.json"}).exit_code, 3);
  const ProgramResult compared = run({"compare", "out.h5"});
  EXPECT_EQ(compared.exit_code, 3) << "as vendor says";
  EXPECT_NE(compared.out.find("different tasks"), std::string::npos) << compared.out;
  EXPECT_EQ(compared.out.find("prompt is not known"), std::string::npos) << compared.out;
  EXPECT_EQ(compared.out.find(" id "), std::string::npos) << "places in a list are no ids";
}

TEST_F(ImportCommand, NanIsInTheHeadline) {
  write_file(scratch.file("a.npy"), npy_f32(1, 3, {1, 2, 0}));
  write_file(scratch.file("b.npy"), npy_f32(1, 3, {std::nanf(""), 2, 0}));
  ASSERT_EQ(run({"import", "a.npy", "b.npy", "-o", "out.h5"}).exit_code, 0);
  const ProgramResult compared = run({"compare", "out.h5", "--json"});
  EXPECT_EQ(compared.exit_code, 3);
  const Json document = Json::parse(compared.out);
  EXPECT_NE(document["verdict_text"].get<std::string>().find("NaN in the rows of B"),
            std::string::npos);
  EXPECT_TRUE(document["planned_steps"].is_null());
}

TEST_F(ImportCommand, ScoredLogitsComeBack) {
  const std::vector<std::string> score{"score", "--model", sample_model(), "--text", "In the",
                                       "-q",    "-o"};
  auto npy = score;
  npy.push_back("x.npy");
  auto capture = score;
  capture.push_back("x.h5");
  ASSERT_EQ(run(npy).exit_code, 0);
  ASSERT_EQ(run(capture).exit_code, 0);
  ASSERT_EQ(run({"import", "x.npy", "-o", "imported.h5"}).exit_code, 0);
  const Json mine = Json::parse(run({"inspect", "imported.h5", "--json", "--step", "0"}).out);
  const Json theirs = Json::parse(run({"inspect", "x.h5", "--json", "--step", "0"}).out);
  EXPECT_EQ(mine["at_step"]["lanes"][0]["top"], theirs["at_step"]["lanes"][0]["top"]);
}

TEST_F(ImportCommand, BadInput) {
  write_file(scratch.file("a.npy"), npy_f32(1, 2, {1, 2}));
  write_file(scratch.file("a.json"), kAnswer);
  write_file(scratch.file("cut.npy"), npy_f32(1, 2, {1, 2}).substr(0, 60));
  write_file(scratch.file("two.jsonl"), std::string(kAnswer) + "\n" + kAnswer + "\n");
  write_file(scratch.file("text"), "whatever");
  expect_one_line({"import", "-o", "out.h5"}, 2, {"one or two files"});
  expect_one_line({"import", "a.npy", "a.npy", "a.npy", "-o", "out.h5"}, 2, {"two lanes"});
  expect_one_line({"import", "a.npy", "a.json", "-o", "out.h5"}, 3, {"whole rows"});
  expect_one_line({"import", "cut.npy", "-o", "out.h5"}, 4, {"cut.npy"});
  expect_one_line({"import", "text", "-o", "out.h5"}, 4, {"text"});
  expect_one_line({"import", "none.npy", "-o", "out.h5"}, 4, {"none.npy"});
  expect_one_line({"import", "two.jsonl", "-o", "out.h5"}, 2, {"2 answers", "--answer"});
  expect_one_line({"import", "two.jsonl", "--answer", "2", "-o", "out.h5"}, 2, {"holds 2"});
  expect_one_line({"vendor", "a.npy", "a.npy"}, 2, {"driftscope import A B -o"});
  ASSERT_EQ(run({"import", "two.jsonl", "--answer", "1", "-o", "one.h5"}).exit_code, 0);
  // One lane is no comparison; the line says how to make one.
  expect_one_line({"compare", "one.h5"}, 3,
                  {"driftscope compare one.h5 OTHER.h5", "driftscope import A B -o PAIR.h5"});
  EXPECT_EQ(run({"compare", "one.h5"}).out, "");
  EXPECT_EQ(run({"compare", "one.h5", "one.h5"}).exit_code, 0);
}

TEST_F(ImportCommand, VendorReadsFigures) {
  write_file(scratch.file("t.csv"), "model,bf16_b1_vs_b8,bf16_b1_rerun\nx,0.5,0.0\n");
  const ProgramResult text = run({"vendor", "t.csv"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("rounding that depends on the batch"), std::string::npos) << text.out;
  const Json document = Json::parse(run({"vendor", "t.csv", "--json"}).out);
  EXPECT_FALSE(document["figures"].empty());
}

}  // namespace
}  // namespace driftscope::test
