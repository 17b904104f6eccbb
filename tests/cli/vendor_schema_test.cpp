// SPDX-License-Identifier: Apache-2.0
// The documents of `vendor --json` and `probe --json`, of every form, follow their schemas.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/report/schema_check.h"

namespace driftscope::test {
namespace {

using Json = nlohmann::json;

// What is wrong with a document of that form; "" where nothing is.
std::string problem_as(const std::string& form, const std::string& document) {
  const Json json = Json::parse(document, nullptr, false);
  if (json.is_discarded()) return "no JSON: " + document.substr(0, 200);
  Json schema = testing::load_schema("vendor.schema.json");
  if (std::string problem = testing::schema_problem(schema, json);
      problem.empty() && form.empty()) {
    return {};
  }
  schema.erase("anyOf");
  schema["$ref"] = "#/$defs/" + form;
  return testing::schema_problem(schema, json);
}

std::string chat(const std::string& text, const std::string& more = "",
                 const std::string& second = " and", const std::string& logprob = "-0.5") {
  return R"({"id":"r1","object":"chat.completion","created":1760000000,"model":"m-1",)"
         R"("system_fingerprint":"fp_1","usage":{"prompt_tokens":4,"completion_tokens":2},)" +
         more + R"("choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant",)" +
         R"("content":")" + text + second + R"("},"logprobs":{"content":[{"token":")" + text +
         R"(","bytes":null,"logprob":)" + logprob + R"(,"top_logprobs":[{"token":")" + text +
         R"(","logprob":-0.5},{"token":"x","logprob":-9999.0}]},{"token":")" + second +
         R"(","logprob":-0.25,"top_logprobs":[]}]}}]})";
}

class VendorSchema : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    write_file(m_scratch.path() / name, text);
  }
  // The document, after a look at the exit code.
  std::string vendor(std::vector<std::string> words, int exit_code) {
    words.insert(words.begin(), "vendor");
    words.insert(words.end(), {"--json", "-q"});
    const auto result = run_program(words, m_scratch.path());
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    return result.out;
  }
  ScratchFolder m_scratch;
};

constexpr const char* kChecks =
    R"({"checks":[{"id":"k","kind":"contains","text":"king"},{"id":"n","kind":"pair_numbers_equal"},
                  {"id":"q","kind":"json","custom_ids":["none"]}]})";

TEST_F(VendorSchema, OneAnswer) {
  write("a.json", chat("king"));
  EXPECT_EQ(problem_as("single", vendor({"a.json"}, 0)), "");
  EXPECT_EQ(problem_as("single", vendor({"a.json", "--steps"}, 0)), "");
  write("c.json", kChecks);
  EXPECT_EQ(problem_as("single", vendor({"a.json", "--expect", "c.json"}, 3)), "");
  write("e.json", R"({"error":{"message":"overloaded","type":"server_error","code":503}})");
  EXPECT_EQ(problem_as("single", vendor({"e.json"}, 0)), "");
}

TEST_F(VendorSchema, Pairs) {
  write("a.json", chat("king"));
  write("b.json", chat("kind", R"("service_tier":"default",)"));
  write("c.json", kChecks);
  EXPECT_EQ(problem_as("pairs", vendor({"a.json", "a.json"}, 0)), "");
  EXPECT_EQ(problem_as("pairs", vendor({"a.json", "b.json", "--steps"}, 0)), "");
  EXPECT_EQ(problem_as("pairs", vendor({"a.json", "b.json", "--expect", "c.json"}, 1)), "");
}

TEST_F(VendorSchema, ManyAndPopulations) {
  write("a.json", chat("king"));
  write("b.json", chat("kind"));
  write("c.json", chat("king", "", " or"));
  EXPECT_EQ(problem_as("many", vendor({"a.json", "b.json", "c.json"}, 0)), "");
  std::string a, b;
  for (int i = 0; i < 8; ++i) {
    a += chat("king") + "\n";
    b += chat(i % 2 == 0 ? "kind" : "king") + "\n";
  }
  write("a.jsonl", a);
  write("b.jsonl", b);
  write("k.json", R"({"checks":[{"id":"k","kind":"contains","text":"king","min_rate":0.5}]})");
  const std::string document =
      vendor({"a.jsonl", "b.jsonl", "--population", "--expect", "k.json"}, 0);
  EXPECT_EQ(problem_as("population", document), "");
  EXPECT_EQ(Json::parse(document)["checks"]["checks"][0]["sides"][1]["passed"], 4);
}

// Other questions, other settings and errors: nothing is said to have changed.
TEST_F(VendorSchema, PopulationsThatCannotBeCompared) {
  const auto asked = [](const char* prompt, const char* temperature, const std::string& text) {
    return std::string(R"({"request":{"messages":[{"role":"user","content":")") + prompt +
           R"("}],"temperature":)" + temperature + R"(},"response":)" + chat(text) + "}\n";
  };
  std::string base, question, settings, errors;
  for (int i = 0; i < 12; ++i) {
    base += asked("p", "1", "king");
    question += asked("q", "1", "kind");
    settings += asked("p", "0.2", "kind");
    errors += i < 10 ? asked("p", "1", "kind") : "{\"error\":{\"message\":\"overloaded\"}}\n";
  }
  write("a.jsonl", base);
  write("b.jsonl", question);
  write("c.jsonl", settings);
  write("d.jsonl", errors);
  write("k.json", R"({"checks":[{"id":"k","kind":"contains","text":"ki"}]})");
  for (const char* other : {"b.jsonl", "c.jsonl", "d.jsonl"}) {
    const std::string document =
        vendor({"a.jsonl", other, "--population", "--expect", "k.json"}, 3);
    EXPECT_EQ(problem_as("population", document), "") << other;
    EXPECT_EQ(Json::parse(document)["verdict"], "inconclusive") << other;
    EXPECT_FALSE(Json::parse(document)["caveats"].empty()) << other;
  }
}

TEST_F(VendorSchema, StandardInputIsOneFileOnly) {
  EXPECT_EQ(run_program({"vendor", "-", "-"}, m_scratch.path()).exit_code, 2);
}

// Compared line by line, with a summary instead of the responses.
TEST_F(VendorSchema, LongFiles) {
  std::string a, b;
  for (int i = 0; i < 250; ++i) {
    a += chat("king") + "\n";
    b += chat(i % 5 == 0 ? "kind" : "king") + "\n";
  }
  write("a.jsonl", a);
  write("b.jsonl", b);
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, std::vector<std::string>{"--steps"}}) {
    std::vector<std::string> words{"a.jsonl", "b.jsonl"};
    words.insert(words.end(), more.begin(), more.end());
    const std::string document = vendor(words, 0);
    EXPECT_EQ(problem_as("pairs", document), "");
    EXPECT_EQ(Json::parse(document)["summary"]["pairs"], 250);
  }
  EXPECT_EQ(problem_as("population", vendor({"a.jsonl", "b.jsonl", "--population"}, 0)), "");
}

// Two chunks of context 4 and vocabulary 3, so two rows of n_ctx - 1 - n_ctx / 2.
std::string logit_file(float scale) {
  std::string bytes = "_logits_";
  const auto add = [&bytes](const auto& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (const std::int32_t value : {4, 3, 2, 0, 1, 2, 1, 2, 0, 1, 0}) add(value);
  for (const std::uint16_t first : {std::uint16_t{8}, std::uint16_t{5}}) {
    add(scale);
    add(-4.0F);
    for (const std::uint16_t code : {first, std::uint16_t{6}, std::uint16_t{0}, std::uint16_t{0}}) {
      add(code);
    }
  }
  return bytes;
}

TEST_F(VendorSchema, LogitFiles) {
  write("a.kld", logit_file(0.5F));
  write("b.kld", logit_file(0.49F));
  EXPECT_EQ(problem_as("logit_files", vendor({"a.kld", "b.kld"}, 0)), "");
}

TEST_F(VendorSchema, ALocalModel) {
  write("a.json", chat("king"));
  const std::vector<std::string> local{"a.json",   "--model", sample_model(), "--prompt", "The",
                                       "--config", "bf16",    "--config",     "int4"};
  EXPECT_EQ(problem_as("single", vendor(local, 3)), "");
}

// A document that lacks something, or has something more, is not valid.
TEST_F(VendorSchema, OtherDocumentsDoNotFit) {
  write("a.json", chat("king"));
  Json document = Json::parse(vendor({"a.json"}, 0));
  document["responses"][0].erase("model");
  EXPECT_EQ(problem_as("single", document.dump()), "/responses/0: lacks \"model\"");
  document["responses"][0]["model"] = nullptr;
  EXPECT_EQ(problem_as("single", document.dump()), "");
  document["responses"][0]["new"] = 1;
  EXPECT_EQ(problem_as("single", document.dump()), "/responses/0: unexpected new");
}

// Files of the shared data, where they are there: what vendors really send.
TEST_F(VendorSchema, EverySample) {
  const std::filesystem::path folder = std::string(DRIFTSCOPE_SHARED_DATA) + "/vendor/samples";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no shared data here";
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".tsv") continue;
    const auto result =
        run_program({"vendor", entry.path().string(), "--json", "--steps", "-q"}, m_scratch.path());
    if (result.out.empty()) continue;  // refused; the tests of importing say whether rightly
    ++seen;
    const bool many = Json::parse(result.out).contains("matrix");
    EXPECT_EQ(problem_as(many ? "many" : "single", result.out), "") << entry.path().filename();
  }
  EXPECT_GT(seen, 40);
}

TEST_F(VendorSchema, AProbesReport) {
  const Json body = Json::parse(chat("king"));
  std::string lines;
  for (int i = 0; i < 4; ++i) {
    lines += Json{{"stage", "alone"},
                  {"replica", 0},
                  {"concurrency", 1},
                  {"index", i},
                  {"url", "http://127.0.0.1/v1/chat/completions"},
                  {"request", "{}"},
                  {"status", 200},
                  {"headers", Json::array()},
                  {"body", body.dump()},
                  {"error", ""},
                  {"attempts", 1},
                  {"seconds", 0.5},
                  {"given_up", Json::array()}}
                 .dump() +
             "\n";
  }
  write("p.jsonl", lines);
  const auto result =
      run_program({"probe", "--from-file", "-o", "p.jsonl", "--json", "-q"}, m_scratch.path());
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_EQ(testing::schema_problem(testing::load_schema("probe.schema.json"), document), "");
  EXPECT_EQ(document["groups"][0]["answered"], 4);
}

}  // namespace
}  // namespace driftscope::test
