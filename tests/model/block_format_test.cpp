// SPDX-License-Identifier: Apache-2.0
// Values of the block formats, bit for bit: by hand here, in numbers by block_format_vectors.py.
#include "engine/model/block_formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace driftscope {
namespace {

using ::testing::HasSubstr;

std::vector<float> decode_all(std::string_view format_name, const std::string& bytes) {
  const ElementFormat* format = find_element_format(format_name);
  const auto blocks = static_cast<std::int64_t>(bytes.size() / format->block_bytes);
  const std::int64_t elements = blocks * format->block_elements;
  const TensorView view = view_of_elements(*format, bytes, {elements}, "t");
  std::vector<float> values(static_cast<std::size_t>(elements));
  view.values(0, elements, values.data());
  return values;
}

// A block of zeros but for the given bytes.
std::string block(std::string_view format_name,
                  const std::vector<std::pair<std::size_t, int>>& content) {
  std::string bytes(find_element_format(format_name)->block_bytes, '\0');
  for (const auto& [at, value] : content) bytes[at] = static_cast<char>(value);
  return bytes;
}

// f16: 0x3800 is 0.5, 0x3c00 is 1, 0x4000 is 2, 0xc000 is -2. The low byte, 0, comes first.

TEST(BlockFormatByHand, Q4_0) {
  // d = 0.5; byte 0 of the codes is 0xf1: element 0 has code 1, element 16 has 15.
  const auto values = decode_all("Q4_0", block("Q4_0", {{1, 0x38}, {2, 0xf1}}));
  EXPECT_EQ(values[0], -3.5F);   // (1 - 8) * 0.5
  EXPECT_EQ(values[16], 3.5F);   // (15 - 8) * 0.5
  EXPECT_EQ(values[31], -4.0F);  // (0 - 8) * 0.5
}

TEST(BlockFormatByHand, Q4_1) {
  // d = 0.5, m = -2; byte 15 is 0x3a: element 15 has code 10, element 31 has 3.
  const auto values = decode_all("Q4_1", block("Q4_1", {{1, 0x38}, {3, 0xc0}, {19, 0x3a}}));
  EXPECT_EQ(values[15], 3.0F);   // 10 * 0.5 - 2
  EXPECT_EQ(values[31], -0.5F);  // 3 * 0.5 - 2
  EXPECT_EQ(values[0], -2.0F);
}

TEST(BlockFormatByHand, Q5_0) {
  // d = 2; fifth bits 0x00010001: elements 0 and 16; codes byte 0 is 0x21.
  const auto values = decode_all("Q5_0", block("Q5_0", {{1, 0x40}, {2, 1}, {4, 1}, {6, 0x21}}));
  EXPECT_EQ(values[0], 2.0F);    // (16 + 1 - 16) * 2
  EXPECT_EQ(values[16], 4.0F);   // (16 + 2 - 16) * 2
  EXPECT_EQ(values[1], -32.0F);  // (0 - 16) * 2
}

TEST(BlockFormatByHand, Q5_1) {
  // d = 2, m = 0.5; fifth bit of element 31 only; codes byte 15 is 0xf4.
  const auto values =
      decode_all("Q5_1", block("Q5_1", {{1, 0x40}, {3, 0x38}, {7, 0x80}, {23, 0xf4}}));
  EXPECT_EQ(values[15], 8.5F);   // 4 * 2 + 0.5
  EXPECT_EQ(values[31], 62.5F);  // (16 + 15) * 2 + 0.5
}

TEST(BlockFormatByHand, Q8_0) {
  const auto values = decode_all("Q8_0", block("Q8_0", {{1, 0x38}, {2, 0x80}, {33, 0x7f}}));
  EXPECT_EQ(values[0], -64.0F);  // -128 * 0.5
  EXPECT_EQ(values[31], 63.5F);  // 127 * 0.5
  EXPECT_EQ(values[1], 0.0F);
}

TEST(BlockFormatByHand, Iq4Nl) {
  // Codes of byte 0: 0 for element 0, 15 for element 16.
  const auto values = decode_all("IQ4_NL", block("IQ4_NL", {{1, 0x38}, {2, 0xf0}}));
  EXPECT_EQ(values[0], -63.5F);  // -127 * 0.5
  EXPECT_EQ(values[16], 56.5F);  // 113 * 0.5
}

TEST(BlockFormatByHand, Mxfp4) {
  // Exponent 128: 2^1. Code 7 is 6, code 9 is -0.5.
  const auto values = decode_all("MXFP4", block("MXFP4", {{0, 128}, {1, 0x97}}));
  EXPECT_EQ(values[0], 12.0F);
  EXPECT_EQ(values[16], -1.0F);
}

TEST(BlockFormatByHand, Q2_K) {
  // Element 130: second half, group 0, lane 2, so bits 0 and 1 of byte 16 + 32 + 2; scales in byte
  // 130 / 16 = 8: scale 3, minimum 5. d = 2, dmin = 0.5.
  const auto values =
      decode_all("Q2_K", block("Q2_K", {{81, 0x40}, {83, 0x38}, {8, 0x53}, {50, 2}}));
  EXPECT_EQ(values[130], 9.5F);   // (2 * 3) * 2 - 0.5 * 5
  EXPECT_EQ(values[131], -2.5F);  // code 0
  EXPECT_EQ(values[0], 0.0F);     // scale and minimum 0
}

TEST(BlockFormatByHand, Q3_K) {
  // Element 33: first half, group 1, lane 1: bits 2 and 3 of byte 32 + 1, high bit 1 of byte 1;
  // scale 2: low nibble of byte 96 + 2, two bits 0 and 1 of byte 104 + 2. d = 0.5.
  const auto values = decode_all(
      "Q3_K", block("Q3_K", {{109, 0x38}, {33, 3 << 2}, {1, 1 << 1}, {98, 5}, {106, 2}}));
  EXPECT_EQ(values[33], 7.5F);    // 0.5 * (5 + 32 - 32) * 3
  EXPECT_EQ(values[34], -10.0F);  // the same scale, code 0 without its high bit: -4
  EXPECT_EQ(values[0], 64.0F);    // 0.5 * (0 - 32) * -4
}

TEST(BlockFormatByHand, Q4_K) {
  // Element 40: sub-block 1, high nibble of byte 16 + 8. Its scale is byte 4 + 1, its minimum byte
  // 4 + 5. Element 200: sub-block 6, low nibble of byte 16 + 96 + 8; its scale has the low nibble
  // of byte 4 + 10 and the top bits of byte 4 + 2. d = 2, dmin = 0.5.
  const auto values = decode_all(
      "Q4_K",
      block(
          "Q4_K",
          {{1, 0x40}, {3, 0x38}, {5, 3}, {9, 4}, {24, 0x70}, {14, 0x21}, {6, 0x80}, {120, 0x05}}));
  EXPECT_EQ(values[40], 40.0F);    // (2 * 3) * 7 - 0.5 * 4
  EXPECT_EQ(values[200], 329.0F);  // (2 * (1 + 2 * 16)) * 5 - 0.5 * 2
}

TEST(BlockFormatByHand, Q5_K) {
  // As Q4_K with the codes at byte 48; the fifth bit of element 40 is bit 1 of byte 16 + 8.
  const auto values = decode_all(
      "Q5_K", block("Q5_K", {{1, 0x40}, {3, 0x38}, {5, 3}, {9, 4}, {56, 0x70}, {24, 2}}));
  EXPECT_EQ(values[40], 136.0F);  // (2 * 3) * (16 + 7) - 0.5 * 4
  EXPECT_EQ(values[41], -2.0F);
}

TEST(BlockFormatByHand, Q6_K) {
  // Element 70: first half, group 2, lane 6: high nibble of byte 6, bits 4 and 5 of byte 128 + 6;
  // scale 4 is byte 196. d = 0.5.
  const auto values =
      decode_all("Q6_K", block("Q6_K", {{209, 0x38}, {6, 0xf0}, {134, 0x30}, {196, 0xfe}}));
  EXPECT_EQ(values[70], -31.0F);  // 0.5 * -2 * (15 + 48 - 32)
  EXPECT_EQ(values[71], 32.0F);   // 0.5 * -2 * -32
}

TEST(BlockFormatByHand, Iq4Xs) {
  // Element 48: sub-block 1, high nibble of byte 8 + 16; scale: high nibble of byte 4, bits 2 and 3
  // of the u16 at byte 2. d = 0.5.
  const auto values =
      decode_all("IQ4_XS", block("IQ4_XS", {{1, 0x38}, {2, 2 << 2}, {4, 0x30}, {24, 0x80}}));
  EXPECT_EQ(values[48], 1.5F);     // 0.5 * (3 + 32 - 32) * 1
  EXPECT_EQ(values[47], -190.5F);  // 0.5 * 3 * -127
}

int hex_digit(char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; }

std::string from_hex(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<char>(hex_digit(text[i]) * 16 + hex_digit(text[i + 1])));
  }
  return bytes;
}

struct Vector {
  std::string format;
  std::string bytes;
  std::vector<std::uint32_t> bits;
};

std::vector<Vector> read_vectors() {
  std::ifstream file(DRIFTSCOPE_SOURCE_DIR "/tests/model/block_format_vectors.txt");
  std::vector<Vector> vectors;
  std::string format;
  std::string block_hex;
  std::string value_hex;
  while (file >> format >> block_hex >> value_hex) {
    Vector vector{.format = format, .bytes = from_hex(block_hex), .bits = {}};
    for (std::size_t i = 0; i < value_hex.size(); i += 8) {
      vector.bits.push_back(
          static_cast<std::uint32_t>(std::stoul(value_hex.substr(i, 8), nullptr, 16)));
    }
    vectors.push_back(std::move(vector));
  }
  return vectors;
}

TEST(BlockFormats, EveryValueHasTheBitsOfTheDefinition) {
  std::set<std::string> formats;
  for (const Vector& vector : read_vectors()) {
    formats.insert(vector.format);
    const auto values = decode_all(vector.format, vector.bytes);
    ASSERT_EQ(values.size(), vector.bits.size()) << vector.format;
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]), vector.bits[i])
          << vector.format << " element " << i << ": " << values[i] << ", expected "
          << std::bit_cast<float>(vector.bits[i]);
    }
  }
  for (const ElementFormat& format : element_formats()) {
    if (format.decode != nullptr) {
      EXPECT_TRUE(formats.contains(std::string(format.name))) << format.name;
    }
  }
}

TEST(BlockFormats, AnyStretchGivesTheSameValues) {
  std::string bytes;
  for (const Vector& vector : read_vectors()) {
    if (vector.format == "Q5_K") bytes += vector.bytes;
  }
  const auto whole = decode_all("Q5_K", bytes);
  const auto elements = static_cast<std::int64_t>(whole.size());
  const TensorView view = view_of_elements(*find_element_format("Q5_K"), bytes, {elements}, "t");
  for (const std::int64_t first : {0, 1, 255, 256, 300, 511}) {
    for (const std::int64_t count : {0, 1, 2, 256, 257, 500}) {
      std::vector<float> part(static_cast<std::size_t>(count));
      view.values(first, count, part.data());
      for (std::int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(part[static_cast<std::size_t>(i)], whole[static_cast<std::size_t>(first + i)])
            << "element " << i << " of " << count << " from " << first;
      }
    }
  }
}

TEST(BlockFormats, PlainElementsStayWhereTheyAre) {
  const std::string bytes(8, '\0');
  const TensorView view = view_of_elements(*find_element_format("BF16"), bytes, {2, 2}, "t");
  EXPECT_EQ(view.data, bytes.data());
  EXPECT_EQ(view.dtype, Dtype::bf16);
  EXPECT_EQ(view.decoder, nullptr);
}

TEST(BlockFormats, NamesWhatIsSupported) {
  EXPECT_EQ(find_element_format(99U), nullptr);
  EXPECT_FALSE(find_element_format("IQ2_XXS")->supported());
  EXPECT_THAT(supported_element_formats(), HasSubstr("Q4_K"));
  EXPECT_THAT(supported_element_formats(), ::testing::Not(HasSubstr("IQ2")));
}

}  // namespace
}  // namespace driftscope
