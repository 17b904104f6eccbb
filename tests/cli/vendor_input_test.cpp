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

}  // namespace
}  // namespace driftscope::test
