// SPDX-License-Identifier: Apache-2.0
// Files and words that `driftscope vendor` is given and that are not what was meant.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cli/program.h"

namespace driftscope::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kHeaders =
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-request-id: req_1\r\n";
constexpr const char* kBody =
    R"({"object":"chat.completion","model":"m","choices":[{"index":0,"message":{"content":"Hi"},)"
    R"("finish_reason":"stop"}]})";

class VendorInputs : public ::testing::Test {
 protected:
  ProgramResult vendor(std::vector<std::string> words) const {
    words.insert(words.begin(), "vendor");
    return run_program(words, m_scratch.path());
  }
  void write(const std::string& name, const std::string& text) const {
    write_file(m_scratch.path() / name, text);
  }
  ScratchFolder m_scratch;
};

TEST_F(VendorInputs, HeadersWithoutABodyAreNamed) {
  write("whole.txt", std::string(kHeaders) + "\r\n" + kBody);
  EXPECT_EQ(vendor({"whole.txt"}).exit_code, 0);
  write("cut.txt", kHeaders);
  write("blank.txt", std::string(kHeaders) + "\r\n");
  write("verbose.txt",
        "> GET /v1 HTTP/1.1\n>\n< HTTP/1.1 200 OK\n< content-type: text/plain\n< \n");
  for (const std::string name : {"cut.txt", "blank.txt", "verbose.txt"}) {
    for (const auto& words : {std::vector<std::string>{name}, {"whole.txt", name}}) {
      const auto result = vendor(words);
      EXPECT_EQ(result.exit_code, 4) << name << result.out;
      EXPECT_EQ(result.out, "");
      EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
      EXPECT_THAT(result.err, HasSubstr(name + ": holds the headers of an answer"));
      EXPECT_THAT(result.err, HasSubstr("save the body too"));
    }
  }
  // A refusal without words is an answer.
  write("refused.txt", "HTTP/1.1 503 Service Unavailable\r\nretry-after: 3\r\n\r\n");
  const auto refused = vendor({"refused.txt"});
  EXPECT_EQ(refused.exit_code, 0) << refused.err;
  EXPECT_THAT(vendor({"refused.txt", "--json"}).out, HasSubstr("HTTP 503: the body is empty"));
}

// With checks the pairs are what comes after, without those that are equal or differ as another
// does; what each of them finds in the same words stands once.
TEST_F(VendorInputs, ChecksComeFirstAndPairsOnlyWhereTheyDiffer) {
  const auto line = [](int i, const std::string& total) {
    return R"({"custom_id":"q)" + std::to_string(i) +
           R"(","response":{"object":"chat.completion","model":"m","choices":[{"index":0,)"
           R"("message":{"content":"{\"total\": )" +
           total +
           R"(}"},"finish_reason":"stop"}]}})"
           "\n";
  };
  std::string a, b;
  for (int i = 0; i < 5; ++i) a += line(i, "12.5");
  for (int i = 0; i < 5; ++i) b += line(i, i < 2 ? "12.5" : i < 4 ? "13.0" : "14");
  write("a.jsonl", a);
  write("b.jsonl", b);
  write("c.json", R"({"checks":[{"id":"total","kind":"json_path_equals","path":"$.total",)"
                  R"("value":12.5}]})");
  const auto count = [](const std::string& text, const std::string& part) {
    int found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++found;
    return found;
  };
  const std::string unproven = "Nothing in the answers proves";
  const auto brief = vendor({"a.jsonl", "b.jsonl", "--expect", "c.json"});
  EXPECT_EQ(brief.exit_code, 1) << brief.err;
  EXPECT_EQ(brief.out.find("checks: failed"), 0U) << brief.out;
  EXPECT_THAT(brief.out, HasSubstr("5 pairs: 2 semantic, 3 different"));
  EXPECT_THAT(brief.out, HasSubstr("[q2] different: the answers part at byte 11: \"12.5}\" and "
                                   "\"13.0}\""));
  EXPECT_THAT(brief.out, HasSubstr("as does 1 more: q3\n"));
  EXPECT_THAT(brief.out, HasSubstr("[q4] different"));
  for (const std::string key : {"[q0]", "[q1]", "[q3]"})
    EXPECT_THAT(brief.out, Not(HasSubstr(key)));
  EXPECT_EQ(count(brief.out, unproven), 1) << brief.out;
  EXPECT_THAT(brief.out, HasSubstr("5 of 5 pairs: " + unproven));
  const auto all = vendor({"a.jsonl", "b.jsonl", "--expect", "c.json", "--all"});
  for (const std::string key : {"[q0]", "[q1]", "[q2]", "[q3]", "[q4]"})
    EXPECT_THAT(all.out, HasSubstr(key));
  EXPECT_EQ(count(vendor({"a.jsonl", "b.jsonl"}).out, unproven), 1);
}

// The name of a file is a text as any other, and seldom meant as one.
TEST_F(VendorInputs, APromptThatNamesAFileIsNoted) {
  write("a.json", kBody);
  write("prompt.txt", "And the king");
  const auto note = "--prompt-file prompt.txt reads the file";
  const auto with = [&](const std::string& option, const std::string& value) {
    return vendor({"a.json", "--model", sample_model(), option, value, "--config", "f32"}).err;
  };
  EXPECT_THAT(with("--prompt", "prompt.txt"), HasSubstr(note));
  EXPECT_THAT(with("--prompt", "other.txt"), Not(HasSubstr("--prompt-file")));
  EXPECT_THAT(with("--prompt", "And the king"), Not(HasSubstr("--prompt-file")));
  EXPECT_THAT(with("--prompt-file", "prompt.txt"), Not(HasSubstr("--prompt-file")));
  const auto run =
      run_program({"run", "--model", sample_model(), "--prompt", "prompt.txt", "--steps", "1",
                   "--a", "reference-f32", "--b", "reference-f32", "-o", "x.h5"},
                  m_scratch.path());
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr(note));
  EXPECT_EQ(run.err.find(note), run.err.rfind(note)) << run.err;
}

std::string answer_line(const std::string& id, const std::string& text,
                        const std::string& logprob) {
  return R"({"custom_id":")" + id +
         R"(","response":{"body":{"object":"chat.completion","model":"m",)" +
         R"("choices":[{"index":0,"message":{"content":")" + text +
         R"("},"finish_reason":"stop",)" + R"("logprobs":{"content":[{"token":")" + text +
         R"(","logprob":)" + logprob + R"(,"top_logprobs":[{"token":")" + text + R"(","logprob":)" +
         logprob + "}]}]}}]}}}\n";
}

TEST_F(VendorInputs, TheGateSaysWhyItFails) {
  const std::string first = answer_line("q1", "Yes", "-0.25");
  write("a.jsonl", first + answer_line("q2", "No", "-0.5"));
  write("other.jsonl", first + answer_line("q2", "Maybe", "-0.5"));
  write("short.jsonl", first);
  write("drift.jsonl", first + answer_line("q2", "No", "-0.75"));
  write("other_short.jsonl", answer_line("q1", "Maybe", "-0.25"));
  const struct {
    const char* file;
    const char* tier;
    int exit_code;
    const char* says;
  } cases[] = {
      {"a.jsonl", "tolerance", 0, ""},
      {"a.jsonl", "bitwise", 3, "--fail-on bitwise: cannot be told"},  // answers hold no bits
      {"drift.jsonl", "token", 0, ""},
      {"drift.jsonl", "tolerance", 1, "--fail-on tolerance: not reached; the weakest is token"},
      {"drift.jsonl", "bitwise", 1, "--fail-on bitwise: not reached; the weakest is token"},
      {"other.jsonl", "semantic", 1, "--fail-on semantic: not reached; the weakest is different"},
      {"short.jsonl", "semantic", 3, "--fail-on semantic: cannot be told; an answer is missing"},
      // One that is missing does not hide another that differs.
      {"other_short.jsonl", "semantic", 1, "the weakest is different"},
  };
  for (const auto& one : cases) {
    const auto result = vendor({"a.jsonl", one.file, "--fail-on", one.tier});
    EXPECT_EQ(result.exit_code, one.exit_code) << one.file << ' ' << one.tier << result.out;
    EXPECT_THAT(result.err, HasSubstr(one.says)) << one.file << ' ' << one.tier;
  }
  // Populations have changed or not.
  const auto refused = vendor({"a.jsonl", "a.jsonl", "--population", "--fail-on", "token"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("give --fail-on semantic"));
}

}  // namespace
}  // namespace driftscope::test
