// SPDX-License-Identifier: Apache-2.0
// What a safetensors file may and may not be.
#include "engine/model/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "engine/model/files.h"
#include "tests/model/checkpoint_builder.h"

namespace driftscope {
namespace {

using ::testing::HasSubstr;

// One tensor "a" of 2 F32 values: a good file to start from.
constexpr const char* kGoodHeader = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";

void expect_refused(const std::string& file, const std::string& reason) {
  const auto result = parse_safetensors(file, "x.safetensors");
  ASSERT_FALSE(result.has_value()) << "accepted, expected: " << reason;
  EXPECT_EQ(result.error().kind, ErrorKind::malformed);
  EXPECT_THAT(result.error().message, HasSubstr("x.safetensors: "));
  EXPECT_THAT(result.error().message, HasSubstr(reason));
  EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
}

std::string with_header(const std::string& header, std::size_t data_bytes) {
  return safetensors_bytes(header, std::string(data_bytes, '\0'));
}

TEST(Safetensors, ReadsNamesShapesAndPlaces) {
  const std::string header = R"({"__metadata__":{"format":"pt"},)"
                             R"("b":{"dtype":"BF16","shape":[2,3],"data_offsets":[8,20]},)"
                             R"("a":{"data_offsets":[0,8],"shape":[2],"dtype":"F32"}})";
  const auto entries = parse_safetensors(with_header(header, 20), "x");
  ASSERT_TRUE(entries.has_value()) << entries.error().message;
  ASSERT_EQ(entries->size(), 2U);
  const std::uint64_t data = 8 + header.size();
  EXPECT_EQ((*entries)[0].name, "a");
  EXPECT_EQ((*entries)[0].begin, data);
  EXPECT_EQ((*entries)[0].end, data + 8);
  EXPECT_EQ((*entries)[1].name, "b");
  EXPECT_EQ((*entries)[1].dtype, "BF16");
  EXPECT_EQ((*entries)[1].shape, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ((*entries)[1].end, data + 20);
}

TEST(Safetensors, AcceptsZeroSizeRankZeroPaddingAndNoTensors) {
  EXPECT_TRUE(
      parse_safetensors(
          with_header(R"({"a":{"dtype":"F32","shape":[0,5],"data_offsets":[0,0]}})", 0), "x")
          .has_value());
  EXPECT_TRUE(parse_safetensors(
                  with_header(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", 4), "x")
                  .has_value());
  EXPECT_TRUE(
      parse_safetensors(with_header(std::string(kGoodHeader) + "     ", 8), "x").has_value());
  EXPECT_TRUE(parse_safetensors(with_header("{}", 0), "x").has_value());
  // Empty whatever the other dimension is: 0 * (2^64 - 1) is 0.
  EXPECT_TRUE(
      parse_safetensors(
          with_header(
              R"({"a":{"dtype":"F32","shape":[0,18446744073709551615],"data_offsets":[0,0]}})", 0),
          "x")
          .has_value());
}

TEST(Safetensors, RefusesWrongHeaderLengths) {
  expect_refused("", "the file is empty");
  expect_refused("1234567", "needs 8 bytes");
  expect_refused(u64_bytes(std::uint64_t{1} << 63U) + "{}", "9223372036854775808");
  expect_refused(u64_bytes(3) + "{}", "cut short");
  expect_refused(u64_bytes(100'000'001) + "{}", "100000001");
  expect_refused(u64_bytes(0), "is empty");
  // The limit is on the number, even where the file is that long (sparse, so that it is quick).
  const TemporaryDirectory directory;
  const auto path = directory.write("long.safetensors", u64_bytes(100'000'001) + "{}");
  std::filesystem::resize_file(path, 100'000'001 + 8);
  const auto mapped = MappedFile::open(path);
  ASSERT_TRUE(mapped.has_value());
  const auto result = parse_safetensors(mapped->bytes(), "x");
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().message, HasSubstr("100000000"));
}

TEST(Safetensors, RefusesHeadersThatAreNotAnObject) {
  expect_refused(with_header("\xFF{}", 0), "0xFF");
  expect_refused(with_header("{", 0), "byte 9");
  expect_refused(with_header("[]", 0), "begins with byte 0x5B");
  expect_refused(with_header(" {}", 0), "begins with byte 0x20");
  expect_refused(with_header("{}x", 0), "not valid JSON");
  expect_refused(with_header(std::string("{}\0\0", 4), 0), "a NUL byte at byte 10");
  expect_refused(with_header(R"({"a":5})", 0), "not an object");
  expect_refused(with_header(R"({"a":[]})", 0), "not an object");
  expect_refused(with_header(R"({"a":{"b":{}}})", 0), "unknown key");
  expect_refused(with_header(R"({"__metadata__":{"a":1}})", 0), "must be strings");
  expect_refused(with_header(R"({"__metadata__":{"a":{}}})", 0), "must be strings");
  expect_refused(with_header("{\"a\":" + std::string(100'000, '['), 0), "not an object");
}

TEST(Safetensors, RefusesIncompleteTensors) {
  expect_refused(with_header(R"({"a":{"dtype":"F32","shape":[2]}})", 8), "data_offsets");
  expect_refused(with_header(R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", 8), "needs dtype");
  expect_refused(with_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", 8),
                 "data_offsets");
  expect_refused(with_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})", 8),
                 "third number");
  expect_refused(with_header(R"({"a":{"dtype":"F99","shape":[2],"data_offsets":[0,8]}})", 8),
                 "F99");
  expect_refused(with_header(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8),
                 "negative");
  expect_refused(with_header(R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", 8),
                 "not an integer");
  expect_refused(with_header(R"({"a":{"dtype":"F32","shape":["2"],"data_offsets":[0,8]}})", 8),
                 "shape");
  expect_refused(
      with_header(R"({"a":{"dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,8]}})",
                  8),
      "not an integer");
}

TEST(Safetensors, RefusesTheSameKeyTwice) {
  expect_refused(with_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                             R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                             8),
                 "tensor a is there twice");
  expect_refused(
      with_header(R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8),
      "key \"dtype\" twice");
  expect_refused(with_header(R"({"__metadata__":{},"__metadata__":{}})", 0), "twice");
  expect_refused(with_header(R"({"__metadata__":{"k":"1","k":"2"}})", 0), "twice");
}

TEST(Safetensors, RefusesDataThatDoesNotFit) {
  expect_refused(with_header(kGoodHeader, 9), "1 bytes follow the last tensor");
  expect_refused(with_header(kGoodHeader, 6), "cut short");
  expect_refused(with_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                             R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                             12),
                 "overlaps");
  expect_refused(with_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                             R"("b":{"dtype":"F32","shape":[2],"data_offsets":[12,20]}})",
                             20),
                 "gap");
  expect_refused(with_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12),
                 "gap");
  expect_refused(with_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8),
                 "end before they begin");
  expect_refused(with_header(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8),
                 "needs 12 bytes");
}

TEST(Safetensors, RefusesProductsThatOverflow) {
  // 2 * (2^64 - 2) elements wrap to 2^64 - 4, which the offsets could be made to agree with.
  expect_refused(
      with_header(R"({"a":{"dtype":"U8","shape":[2,18446744073709551614],"data_offsets":[0,8]}})",
                  8),
      "no size in whole bytes");
  // 2^61 * 8 bytes wrap to 0.
  expect_refused(
      with_header(R"({"a":{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]}})", 0),
      "no size in whole bytes");
  expect_refused(with_header(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2),
                 "no size in whole bytes");
  expect_refused(with_header(R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],)"
                             R"("data_offsets":[0,4]}})",
                             4),
                 "more than 16 dimensions");
}

TEST(Safetensors, NamesAreEscapedInMessages) {
  expect_refused(with_header(R"({"a\nb":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8),
                 "tensor a\\nb:");
}

// Every prefix of a good file is refused, and no byte flip crashes.
TEST(Safetensors, PrefixesAndFlippedBytes) {
  const std::string good = with_header(
      R"({"__metadata__":{"x":"y"},"a":{"dtype":"F16","shape":[2,2],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"I8","shape":[],"data_offsets":[8,9]}})",
      9);
  ASSERT_TRUE(parse_safetensors(good, "x").has_value());
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(parse_safetensors(std::string_view(good).substr(0, length), "x").has_value())
        << length;
  }
  std::mt19937 random(20240611);  // NOLINT: a fixed seed on purpose
  for (int round = 0; round < 20'000; ++round) {
    std::string changed = good;
    for (int flips = 0; flips < 1 + round % 3; ++flips) {
      changed[random() % changed.size()] = static_cast<char>(random() & 0xFFU);
    }
    const auto result = parse_safetensors(changed, "x");
    if (!result) continue;
    // What is accepted lies inside the file.
    for (const SafetensorsEntry& entry : *result) {
      EXPECT_LE(entry.begin, entry.end);
      EXPECT_LE(entry.end, changed.size());
    }
  }
}

}  // namespace
}  // namespace driftscope
