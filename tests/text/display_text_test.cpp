// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/display_text.h"

#include <gtest/gtest.h>

#include <random>

#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

TEST(DisplayText, EscapesControlsByName) {
  EXPECT_EQ(escape_for_display("a\nb\tc\rd\\"), "a\\nb\\tc\\rd\\\\");
  EXPECT_EQ(escape_for_display(std::string_view("\0\x1B[31m\x7F", 7)),
            "\\u{0000}\\u{001b}[31m\\u{007f}");
}

TEST(DisplayText, EscapesWhatHidesOrReorders) {
  EXPECT_EQ(escape_for_display("\xC2\x85"), "\\u{0085}");      // next line
  EXPECT_EQ(escape_for_display("\xE2\x80\xAE"), "\\u{202e}");  // right-to-left override
  EXPECT_EQ(escape_for_display("\xE2\x81\xA6"), "\\u{2066}");  // isolate
  EXPECT_EQ(escape_for_display("\xE2\x80\xA8"), "\\u{2028}");  // line separator
  EXPECT_EQ(escape_for_display("\xEF\xBB\xBF"), "\\u{feff}");
}

TEST(DisplayText, KeepsText) {
  const std::string text = "na\xC3\xAFve \xE4\xBD\xA0 \xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9";
  EXPECT_EQ(escape_for_display(text), text);
}

TEST(DisplayText, ShowsBytesThatAreNotUtf8) {
  EXPECT_EQ(escape_for_display("a\xFFz"), "a\\xffz");
  EXPECT_EQ(escape_for_display("\xE4\xBD"), "\\xe4\\xbd");
  EXPECT_EQ(escape_for_display("\xED\xA0\x80"), "\\xed\\xa0\\x80");
}

TEST(DisplayText, AlwaysGivesOneLineOfUtf8) {
  std::mt19937 random(1);  // NOLINT: a fixed seed on purpose
  for (int round = 0; round < 2'000; ++round) {
    std::string bytes;
    for (int i = 0; i < round % 20; ++i) bytes.push_back(static_cast<char>(random() & 0xFFU));
    const std::string shown = escape_for_display(bytes);
    EXPECT_EQ(find_invalid_utf8(shown), std::string_view::npos);
    for (const char c : shown) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20);
  }
}

// Table 3-8 of the Unicode standard: one replacement per maximal subpart.
TEST(Utf8, MaximalSubparts) {
  const std::string_view text = "\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64";
  std::vector<std::size_t> lengths;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Step step = decode_utf8(text, i);
    lengths.push_back(step.length);
    i += step.length;
  }
  EXPECT_EQ(lengths, (std::vector<std::size_t>{3, 2, 1, 1, 1, 1, 1, 1, 1}));
}

TEST(Utf8, EveryScalarValueComesBack) {
  for (char32_t c = 0; c <= 0x10FFFF; c += c < 0x3000 ? 1 : 97) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string encoded;
    append_utf8(encoded, c);
    const Utf8Step step = decode_utf8(encoded, 0);
    ASSERT_EQ(step.state, Utf8State::valid);
    ASSERT_EQ(step.code_point, c);
    ASSERT_EQ(step.length, encoded.size());
  }
}

}  // namespace
}  // namespace driftscope
