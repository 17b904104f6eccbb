// SPDX-License-Identifier: Apache-2.0
// The command as a person types it, against each way in which a server misbehaves: what it
// concludes, with which exit code, and that the key is in nothing that it leaves behind. Every
// case prints its conclusion.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.h"
#include "tests/probe/loopback_server.h"
#include "tests/report/schema_check.h"

namespace driftscope {
namespace {

using Json = nlohmann::json;

constexpr const char* kKey = "sk-test-abcdefghij0123456789";

struct Case {
  std::string name;
  LoopbackBehaviour behaviour;
  std::vector<std::string> arguments;
  std::string cause;
  int exit_code = 0;
};

std::vector<Case> cases() {
  const std::vector<std::string> none;
  const std::vector<std::string> once{"--attempts", "1", "--timeout", "0.5"};
  return {
      {"steady", {}, none, "none_seen"},
      {"drifts_with_load", {.answer_in_company = "Lyon."}, none, "batch_composition"},
      {"numbers_drift_with_load", {.shift_in_company = -0.02}, none, "batch_composition"},
      {"rarely_drifts_with_load",
       {.answer_in_company = "Lyon.", .odd_in_company = 4},
       none,
       "unresolved",
       3},
      {"swaps_replicas", {.second_fingerprint = "fp_two"}, none, "hidden_backends"},
      {"drifts_alone", {.drifts_alone = true}, none, "unstable_alone"},
      {"samples", {.samples = true}, none, "sampling"},
      {"cuts_answers", {.cuts_answers = true}, once, "not_enough", 3},
      {"cuts_streams", {.cuts_answers = true}, {"--stream", "--attempts", "1"}, "not_enough", 3},
      {"ends_streams_early", {.ends_stream_early = true}, {"--stream"}, "not_enough", 3},
      {"stalls", {.stalls = true}, once, "not_enough", 3},
      {"sends_nan", {.sends_nan = true}, none, "none_seen"},
      {"sends_wrong_utf8", {.sends_bad_utf8 = true}, none, "none_seen"},
      {"sends_huge_lines", {.sends_huge_line = true}, none, "none_seen"},
      {"answers_429", {.too_many_requests = 3}, none, "none_seen"},
      {"answers_500", {.server_errors = 2}, none, "none_seen"},
      {"refuses_logprobs", {.refuses_logprobs = true}, none, "none_seen"},
      {"redirects", {.redirect_to = "http://127.0.0.2:9/v1"}, none, "not_enough", 3},
      {"echoes_the_key", {.echoes = std::string("Bearer ") + kKey}, none, "none_seen"},
  };
}

class ProbeProgram : public ::testing::TestWithParam<Case> {};

Json last_event(const std::string& out) {
  std::istringstream lines(out);
  std::string last;
  const Json schema = testing::load_schema("probe_event.schema.json");
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(testing::schema_problem(schema, Json::parse(line)), "") << line;
    last = line;
  }
  return Json::parse(last);
}

TEST_P(ProbeProgram, ConcludesAndKeepsTheKeyToItself) {
  const Case& c = GetParam();
  LoopbackServer server(c.behaviour);
  const test::ScratchFolder folder;
  test::write_file(folder.path() / "key", std::string(kKey) + "\n");
  std::vector<std::string> arguments{
      "probe",     "--endpoint", server.url(),    "--prompt", "Capital?",
      "--samples", "4",          "--concurrency", "4",        "--first-pause",
      "0.001",     "--key-file", "key",           "-o",       "probe.jsonl",
      "--events",  "-v"};
  arguments.insert(arguments.end(), c.arguments.begin(), c.arguments.end());
  const auto result = test::run_program(arguments, folder.path());
  EXPECT_EQ(result.exit_code, c.exit_code) << result.err;
  const Json done = last_event(result.out);
  ASSERT_EQ(done["event"], "done");
  EXPECT_EQ(done["report"]["cause"], c.cause) << done["report"]["sentence"];
  const auto again =
      test::run_program({"probe", "--from-file", "-o", "probe.jsonl", "--json"}, folder.path());
  EXPECT_EQ(Json::parse(again.out), done["report"]);
  const std::string left =
      result.out + result.err + again.out + test::read_file(folder.path() / "probe.jsonl");
  EXPECT_EQ(left.find(kKey), std::string::npos);
  EXPECT_EQ(server.saw_authorization(), true);
  std::printf("%-24s %s: %s\n", c.name.c_str(), done["report"]["cause"].get<std::string>().c_str(),
              done["report"]["sentence"].get<std::string>().c_str());
}

INSTANTIATE_TEST_SUITE_P(Behaviours, ProbeProgram, ::testing::ValuesIn(cases()),
                         [](const auto& instance) { return instance.param.name; });

// Many servers repeat the header that they refuse.
TEST(ProbeProgramKey, ARefusalThatRepeatsItIsTakenOut) {
  for (const std::string& form :
       {std::string("--events"), std::string("--json"), std::string("-v")}) {
    LoopbackServer server({.refuses_all = 401, .echoes = std::string("Bearer ") + kKey});
    const test::ScratchFolder folder;
    test::write_file(folder.path() / "key", kKey);
    const auto result = test::run_program({"probe", "--endpoint", server.url(), "--prompt", "A",
                                           "--key-file", "key", "-o", "p.jsonl", form},
                                          folder.path());
    EXPECT_EQ(result.exit_code, 4);
    EXPECT_TRUE(server.saw_authorization());
    EXPECT_NE(result.err.find("HTTP 401"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("[key]"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("the key was sent"), std::string::npos) << result.err;
    const std::string left = result.out + result.err + test::read_file(folder.path() / "p.jsonl");
    EXPECT_EQ(left.find(kKey), std::string::npos) << left;
  }
}

TEST(ProbeProgramFiles, AnotherQuestionToTheSameFileIsRefused) {
  LoopbackServer server({});
  const test::ScratchFolder folder;
  std::vector<std::string> arguments{"probe",   "--endpoint",    server.url(), "--prompt",
                                     "A",       "--samples",     "2",          "-o",
                                     "p.jsonl", "--concurrency", "2"};
  EXPECT_EQ(test::run_program(arguments, folder.path()).exit_code, 0);
  arguments[4] = "B";
  const auto refused = test::run_program(arguments, folder.path());
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("messages"), std::string::npos) << refused.err;
}

TEST(ProbeProgramFiles, AnotherFileIsLeftAlone) {
  LoopbackServer server({});
  const test::ScratchFolder folder;
  const std::string precious = R"({"my":"precious results"})";  // without an end of line
  test::write_file(folder.path() / "p.json", precious);
  const auto refused = test::run_program(
      {"probe", "--endpoint", server.url(), "--prompt", "A", "-o", "p.json"}, folder.path());
  EXPECT_EQ(refused.exit_code, 4);
  EXPECT_EQ(test::read_file(folder.path() / "p.json"), precious);
  EXPECT_EQ(server.requests(), 0);
}

// What cannot be written is exit 6 with one line, and no server is asked in vain.
TEST(ProbeProgramFiles, AnOutputThatCannotBeWrittenIsNamed) {
  LoopbackServer server({});
  const test::ScratchFolder folder;
  std::filesystem::create_directory(folder.path() / "folder");
  test::write_file(folder.path() / "file", "");
  std::filesystem::create_directory(folder.path() / "closed");
  std::filesystem::permissions(folder.path() / "closed", std::filesystem::perms::owner_read |
                                                             std::filesystem::perms::owner_exec);
  std::vector<std::string> places{"folder", "none/p.jsonl", "file/p.jsonl"};
  // Who may write everywhere can do so in a closed folder too.
  if (::access(folder.file("closed").c_str(), W_OK) != 0) places.emplace_back("closed/p.jsonl");
  if (std::filesystem::exists("/dev/full")) places.emplace_back("/dev/full");
  for (const std::string& place : places) {
    for (const char* format : {"--json", "--events"}) {
      const auto before = server.requests();
      const auto result = test::run_program({"probe", "--endpoint", server.url(), "--prompt", "A",
                                             "--samples", "2", "-o", place, format},
                                            folder.path());
      EXPECT_EQ(result.exit_code, 6) << place << ' ' << result.err;
      EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
      EXPECT_NE(result.err.find(place + ": cannot be written"), std::string::npos) << result.err;
      // That a device is full shows with the first line that it is given.
      EXPECT_LE(server.requests() - before, place == "/dev/full" ? 1 : 0) << place;
    }
  }
}

TEST(ProbeProgramFiles, NumbersThatMakeNoSenseAreWrongUsage) {
  const test::ScratchFolder folder;
  for (const auto& [option, value] : std::vector<std::pair<std::string, std::string>>{
           {"--timeout", "-1"}, {"--timeout", "nan"}, {"--rate", "-5"}, {"--temperature", "nan"}}) {
    const auto result = test::run_program({"probe", "--endpoint", "http://127.0.0.1:9/v1",
                                           "--prompt", "A", "-o", "p.jsonl", option, value},
                                          folder.path());
    EXPECT_EQ(result.exit_code, 2) << option << ' ' << value << ' ' << result.err;
  }
  test::write_file(folder.path() / "key", "token\n");
  const auto short_key = test::run_program({"probe", "--endpoint", "http://127.0.0.1:9/v1",
                                            "--prompt", "A", "-o", "p.jsonl", "--key-file", "key"},
                                           folder.path());
  EXPECT_EQ(short_key.exit_code, 2);
}

TEST(ProbeProgramFiles, AFileWithoutExchangesIsNamed) {
  const test::ScratchFolder folder;
  const auto result =
      test::run_program({"probe", "--from-file", "-o", "none.jsonl"}, folder.path());
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_NE(result.err.find("none.jsonl"), std::string::npos);
}

}  // namespace
}  // namespace driftscope
