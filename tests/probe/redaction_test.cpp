// SPDX-License-Identifier: Apache-2.0
#include "analysis/probe/redaction.h"

#include <gtest/gtest.h>

#include "analysis/probe/base64.h"

namespace driftscope {
namespace {

std::string redacted(std::string text, const std::string& secret) {
  redact_text(text, {secret});
  return text;
}

TEST(Redaction, TakesOutEverySpelling) {
  const std::string secret = "sk/aB+9";
  for (const char* spelled : {
           "sk/aB+9",
           "SK/Ab+9",
           R"(sk\/aB+9)",
           "sk%2FaB%2B9",
           "sk%2faB+9",
           R"(\u0073\u006b\u002f\u0061\u0042\u002b\u0039)",
           R"(sk\u002faB\x2B9)",
           "s&#107;/a&#x42;+9",
           "736b2f61422b39",
           "736B2F61422B39",
       }) {
    EXPECT_EQ(redacted(std::string("<") + spelled + ">", secret), "<[key]>") << spelled;
  }
  EXPECT_EQ(redacted("sk/aB+9sk/aB+9", secret), "[key][key]");
  EXPECT_EQ(redacted("sk/aB+8 sk/aB+", secret), "sk/aB+8 sk/aB+");
  EXPECT_EQ(redacted("sk/aB+9", ""), "sk/aB+9");
}

// Of a longer text in base64 the characters that hold the key's bytes alone are taken out.
TEST(Redaction, TakesOutBase64WhereverItBegins) {
  const std::string secret = "sk-test-0123456789";
  for (const std::string& before : std::vector<std::string>{"", "x", "xy", "xyz"}) {
    const std::string text = redacted(to_base64(before + secret + "tail"), secret);
    EXPECT_NE(text.find("[key]"), std::string::npos) << before;
    EXPECT_EQ(from_base64(text.substr(0, text.find("[key]"))).find("sk-t"), std::string::npos);
  }
}

// RFC 4648, section 10.
TEST(Base64, IsThatOfTheStandard) {
  EXPECT_EQ(to_base64(""), "");
  EXPECT_EQ(to_base64("f"), "Zg==");
  EXPECT_EQ(to_base64("fo"), "Zm8=");
  EXPECT_EQ(to_base64("foo"), "Zm9v");
  EXPECT_EQ(to_base64("foob"), "Zm9vYg==");
  EXPECT_EQ(from_base64("Zm9vYmE="), "fooba");
  EXPECT_EQ(from_base64("Zm9vYmFy"), "foobar");
}

}  // namespace
}  // namespace driftscope
