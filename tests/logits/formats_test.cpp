// SPDX-License-Identifier: Apache-2.0
// Every reader of logit files: bytes made by hand, and what each must refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <filesystem>
#include <fstream>

#include "analysis/import/logits/logit_formats.h"
#include "analysis/import/logits/token_difr.h"
#include "tests/logits/file_bytes.h"

namespace driftscope {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

Result<LogitFile> read(const std::string& bytes) {
  return read_logit_file({.bytes = bytes, .name = "f", .path = {}});
}

std::vector<float> row_of(const LogitFile& file, std::int64_t row) {
  std::vector<float> values(static_cast<std::size_t>(file.vocabulary));
  EXPECT_TRUE(file.read(row, values));
  return values;
}

void expect_broken(const std::string& bytes, const std::string& part) {
  const auto file = read(bytes);
  ASSERT_FALSE(file) << part;
  EXPECT_EQ(file.error().kind, ErrorKind::malformed);
  EXPECT_THAT(file.error().message, HasSubstr(part));
  EXPECT_EQ(file.error().message.find('\n'), std::string::npos);
}

std::string head(const std::string& descr, const std::string& shape,
                 const std::string& order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

TEST(Npy, F32) {
  const std::string bytes = npy_f32(2, 3, {1.0F, 2.0F, 3.0F, -4.0F, 5.5F, 6.0F});
  const auto file = read(bytes);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->format, "npy");
  EXPECT_EQ(file->rows, 2);
  EXPECT_EQ(file->vocabulary, 3);
  EXPECT_EQ(file->element, "f32");
  EXPECT_EQ(file->values, "not_stated");
  EXPECT_TRUE(file->tokens.empty());
  EXPECT_THAT(row_of(*file, 1), ElementsAre(-4.0F, 5.5F, 6.0F));
}

TEST(Npy, VersionsTwoAndThreeAndOtherElements) {
  const std::string f64 = npy(head("<f8", "(1, 2)"), bytes_of_all<double>({0.5, -2.0}), 2);
  // f16: 1.0 is 0x3c00, -2.0 is 0xc000; bf16: 1.0 is 0x3f80, -2.0 is 0xc000.
  const std::string f16 =
      npy(head("<f2", "(1, 2)"), bytes_of_all<std::uint16_t>({0x3c00, 0xc000}), 3);
  const std::string bf16 =
      npy(head("|V2", "(1, 2)"), bytes_of_all<std::uint16_t>({0x3f80, 0xc000}));
  const std::string u16 =
      npy(head("<u2", "(1, 1, 2)"), bytes_of_all<std::uint16_t>({0x3f80, 0xc000}));
  EXPECT_THAT(row_of(*read(f64), 0), ElementsAre(0.5F, -2.0F));
  EXPECT_THAT(row_of(*read(f16), 0), ElementsAre(1.0F, -2.0F));
  for (const std::string& bytes : {bf16, u16}) {
    const auto file = read(bytes);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->element, "bf16");
    EXPECT_THAT(row_of(*file, 0), ElementsAre(1.0F, -2.0F));
    ASSERT_EQ(file->findings.size(), 1U);
    EXPECT_EQ(file->findings[0].id, "bf16_assumed");
  }
}

TEST(Npy, Refused) {
  const std::string data = bytes_of_all<float>({1.0F, 2.0F});
  expect_broken(npy(head("<f4", "(1, 2)", "True"), data), "column by column");
  expect_broken(npy(head(">f4", "(1, 2)"), data), "\">f4\"");
  expect_broken(npy(head("<c8", "(1, 1)"), data), "\"<c8\"");
  expect_broken(npy(head("<i4", "(1, 2)"), data), "no logits");
  expect_broken(npy(head("<f4", "(2,)"), data), "[positions, vocabulary]");
  expect_broken(npy(head("<f4", "(3, 2)"), data), "the shape needs 24");
  expect_broken(npy(head("<f4", "(1, 1)"), data), "8 bytes of elements where the shape needs 4");
  expect_broken(npy(head("<f4", "(4294967296, 4294967296)"), data), "cut short");
  expect_broken(npy(head("<f4", "(0, 2)"), ""), "0 rows of 2");
  expect_broken(npy(head("<f4", "(1, 2)"), data, 4), "version 4");
  expect_broken(npy("{'descr': '<f4', 'shape': (1, 2), }", data), "dictionary");
  expect_broken(npy("__import__('os')", data), "dictionary");
  expect_broken(std::string("\x93NUMPY\x01\x00\xff\xff", 10), "does not fit");
  expect_broken(std::string("\x93NUMPY\x01", 7), "no NumPy array");
}

TEST(Npz, StoredAndDeflatedWithTokens) {
  const std::string rows = npy_f32(2, 3, {1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F});
  const std::string ids = npy(head("<i8", "(2,)"), bytes_of_all<std::int64_t>({2, 0}));
  for (const bool deflate : {false, true}) {
    const std::string bytes = zip({{"tokens.npy", ids, deflate}, {"logits.npy", rows, deflate}});
    const auto file = read(bytes);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->format, "npz");
    EXPECT_EQ(file->values, "logit");
    EXPECT_THAT(file->tokens, ElementsAre(2, 0));
    EXPECT_THAT(row_of(*file, 0), ElementsAre(1.0F, 2.0F, 3.0F));
    EXPECT_THAT(row_of(*file, 1), ElementsAre(4.0F, 5.0F, 6.0F));
  }
}

TEST(Npz, TheIdsOfATextScoreTheRowBefore) {
  const std::string bytes =
      zip({{"logprobs.npy", npy_f32(2, 3, {1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}), false},
           {"input_ids.npy", npy(head("<i4", "(2,)"), bytes_of_all<std::int32_t>({2, 1})), false}});
  const auto file = read(bytes);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->values, "log_probability");
  EXPECT_THAT(file->tokens, ElementsAre(1, -1));
}

TEST(Npz, Refused) {
  const std::string rows = npy_f32(1, 2, {1.0F, 2.0F});
  const std::string good = zip({{"logits.npy", rows, true}});
  expect_broken(good.substr(0, good.size() - 30), "directory");
  std::string flipped = good;
  flipped[good.find("\x93NUMPY") + 72] ^= 1;  // in the elements
  expect_broken(flipped, "CRC-32");
  std::string claimed = good;  // uncompressed size in the directory: offset 24 of its entry
  claimed.replace(good.find("PK\x01\x02") + 24, 4, bytes_of(std::uint32_t{0xfffffff0U}));
  expect_broken(claimed, "cannot be made of");
  std::string method = good;
  method[good.find("PK\x01\x02") + 10] = 12;
  expect_broken(method, "compression method 12");
  std::string away = good;
  away.replace(good.find("PK\x01\x02") + 42, 4, bytes_of(std::uint32_t{0x7fffffffU}));
  expect_broken(away, "where its directory says");
  expect_broken(zip({{"x.npy", rows, false}, {"y.npy", rows, false}}), "logits.npy");
  expect_broken(zip({{"logits.npy", rows, false},
                     {"tokens.npy", npy(head("<i4", "(1,)"), bytes_of(std::int32_t{7})), false}}),
                "token 7 is outside of the vocabulary of 2");
}

TEST(Safetensors, LogitsInBf16WithTokens) {
  const std::string bytes =
      safetensors(R"({"logits":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]},)"
                  R"("tokens":{"dtype":"I32","shape":[2],"data_offsets":[8,16]}})",
                  bytes_of_all<std::uint16_t>({0x3f80, 0x4000, 0xc000, 0x0000}) +
                      bytes_of_all<std::int32_t>({1, 0}));
  const auto file = read(bytes);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->format, "safetensors");
  EXPECT_EQ(file->element, "bf16");
  EXPECT_THAT(file->tokens, ElementsAre(1, 0));
  EXPECT_THAT(row_of(*file, 0), ElementsAre(1.0F, 2.0F));
  EXPECT_THAT(row_of(*file, 1), ElementsAre(-2.0F, 0.0F));
}

TEST(Safetensors, ACheckpointIsNoLogits) {
  expect_broken(safetensors(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                            R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                            std::string(8, '\0')),
                "driftscope run --model");
}

TEST(Results, RowsLieByPositionWhateverTheExtentsSay) {
  const std::vector<float> logits{1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F};  // two rows of three
  for (const auto& extents : {std::vector<std::uint64_t>{2, 3}, std::vector<std::uint64_t>{3, 2}}) {
    const std::string bytes = results_gguf({2, 1}, logits, extents);
    const auto file = read(bytes);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->format, "llama-results");
    EXPECT_EQ(file->model, "m.gguf");
    EXPECT_EQ(file->rows, 2);
    EXPECT_EQ(file->vocabulary, 3);
    EXPECT_THAT(row_of(*file, 1), ElementsAre(4.0F, 5.0F, 6.0F));
    EXPECT_THAT(file->tokens, ElementsAre(1, -1));  // the row of a token scores the next one
  }
}

TEST(Results, DecodeStepsAddRows) {
  // 2 tokens and 1 decode step: 2 + 1 + 2 + 1 rows.
  const std::string bytes = results_gguf({1, 0}, std::vector<float>(12, 0.5F), {6, 2}, 1);
  const auto file = read(bytes);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->rows, 6);
  EXPECT_THAT(file->tokens, ElementsAre(0, -1, -1, -1, -1, -1));
}

TEST(Results, Refused) {
  expect_broken(results_gguf({2, 1}, std::vector<float>(12), {4, 3}), "do not fit 2 tokens");
  expect_broken(results_gguf({2, 3}, std::vector<float>(6), {2, 3}), "token 3 is outside");
  const std::string good = results_gguf({2, 1}, std::vector<float>(6), {2, 3});
  expect_broken(good.substr(0, good.size() - 4), "f");
}

TEST(Kld, CodesBecomeLogProbabilities) {
  // Context 4: one record, of the token at place 4 / 2 + 1 = 3.
  const std::string bytes = kld_file({0, 1, 2, 3}, 4, 0.5F, -8.0F, {0, 16, 4, 2});
  const auto file = read(bytes);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->format, "kld-base");
  EXPECT_EQ(file->values, "log_probability");
  EXPECT_EQ(file->rows, 1);
  EXPECT_THAT(file->tokens, ElementsAre(3));
  EXPECT_THAT(row_of(*file, 0), ElementsAre(-8.0F, 0.0F, -6.0F, -7.0F));
  expect_broken(bytes.substr(0, bytes.size() - 2), "cut off");
}

// ---- HDF5 ----

class OwnHdf5 : public testing::Test {
 protected:
  void SetUp() override {
    m_path = std::filesystem::path(testing::TempDir()) /
             (std::string("own_") + testing::UnitTest::GetInstance()->current_test_info()->name() +
              ".h5");
  }
  void TearDown() override { std::filesystem::remove(m_path); }

  hid_t create() { return H5Fcreate(m_path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT); }
  static void put(hid_t file, const char* name, hid_t type, std::vector<hsize_t> shape,
                  const void* data, const char* dtype = nullptr) {
    const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
    const hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (data != nullptr) H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
    if (dtype != nullptr) put_text(set, "dtype", dtype);
    H5Dclose(set);
    H5Sclose(space);
  }
  static void put_text(hid_t object, const char* name, const std::string& text) {
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, text.size());
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(attribute, type, text.data());
    H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
  }
  Result<LogitFile> read_it() {
    std::ifstream stream(m_path, std::ios::binary);
    m_bytes.assign(std::istreambuf_iterator<char>(stream), {});
    return read_logit_file({.bytes = m_bytes, .name = "f", .path = m_path});
  }
  std::filesystem::path m_path;
  std::string m_bytes;
};

TEST_F(OwnHdf5, F32WithTokens) {
  const hid_t file = create();
  const std::vector<float> rows{1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F};
  const std::vector<std::int64_t> tokens{2, 0};
  put(file, "logits", H5T_IEEE_F32LE, {2, 3}, rows.data());
  put(file, "tokens", H5T_STD_I64LE, {2}, tokens.data());
  put_text(file, "values", "log_probability");
  put_text(file, "tokens_are", "generated");
  put_text(file, "model", "mine");
  H5Fclose(file);
  const auto read = read_it();
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->format, "hdf5");
  EXPECT_EQ(read->values, "log_probability");
  EXPECT_EQ(read->model, "mine");
  EXPECT_FALSE(read->scored);
  EXPECT_THAT(read->tokens, ElementsAre(2, 0));
  EXPECT_THAT(row_of(*read, 1), ElementsAre(4.0F, 5.0F, 6.0F));
}

TEST_F(OwnHdf5, Bf16AsBits) {
  const hid_t file = create();
  const std::vector<std::uint16_t> rows{0x3f80, 0xc000};
  put(file, "logits", H5T_STD_U16LE, {1, 2}, rows.data(), "bf16");
  H5Fclose(file);
  const auto read = read_it();
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->element, "bf16");
  EXPECT_THAT(row_of(*read, 0), ElementsAre(1.0F, -2.0F));
}

TEST_F(OwnHdf5, Refused) {
  const auto refuses = [&](const std::string& part) {
    const auto read = read_it();
    ASSERT_FALSE(read) << part;
    EXPECT_EQ(read.error().kind, ErrorKind::malformed);
    EXPECT_THAT(read.error().message, HasSubstr(part));
  };
  const std::vector<std::uint16_t> bits{1, 2};
  hid_t file = create();
  put(file, "other", H5T_STD_U16LE, {1, 2}, bits.data());
  H5Fclose(file);
  refuses("/logits");
  file = create();
  put(file, "logits", H5T_STD_U16LE, {1, 2}, bits.data());
  H5Fclose(file);
  refuses("dtype");
  file = create();
  put(file, "logits", H5T_IEEE_F32BE, {1, 1}, bits.data());
  H5Fclose(file);
  refuses("little-endian");
  file = create();  // declared, never written: no byte of it is in the file
  put(file, "logits", H5T_IEEE_F32LE, {1 << 20, 1 << 20}, nullptr);
  H5Fclose(file);
  refuses("cannot hold");
  file = create();
  H5Lcreate_external("elsewhere.h5", "/logits", file, "logits", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  refuses("link to elsewhere");
  file = create();
  put_text(file, "format", "driftscope-capture");
  H5Fclose(file);
  refuses("is a capture already");
}

// ---- Token-DiFR ----

TEST(TokenDifr, SamplesBecomeAnswersOfIds) {
  const std::string text =
      R"({"config": {"model": "m", "temperature": 0.0, "seed": 42},)"
      R"( "samples": [{"prompt_token_ids": [1, 2], "outputs": [{"token_ids": [4, 5]},)"
      R"( {"token_ids": [6]}]}, {"prompt_token_ids": [], "outputs": [{"token_ids": []}]}]})";
  ASSERT_TRUE(is_token_difr(text));
  const auto responses = read_token_difr(text, "f");
  ASSERT_TRUE(responses) << responses.error().message;
  ASSERT_EQ(responses->size(), 2U);
  EXPECT_EQ((*responses)[0].model, "m");
  EXPECT_EQ((*responses)[0].seed, "42");
  EXPECT_THAT((*responses)[0].prompt_ids, ElementsAre(1, 2));
  ASSERT_EQ((*responses)[0].choices.size(), 2U);
  EXPECT_THAT((*responses)[0].choices[0].token_ids, ElementsAre(4, 5));
  EXPECT_EQ((*responses)[0].choices[0].content.steps[1].token.id, 5);
  EXPECT_FALSE(is_token_difr(R"({"samples": [1]})"));
  EXPECT_FALSE(
      read_token_difr(R"({"samples": [{"prompt_token_ids": [1.5], "outputs": []}]})", "f"));
}

TEST(Formats, EveryNameOnceAndUnknownBytesRefused) {
  std::vector<std::string_view> names;
  for (const LogitFormat& row : logit_formats()) names.push_back(row.name);
  EXPECT_EQ(names.size(), 6U);
  EXPECT_EQ(find_logit_format("{\"choices\": []}"), nullptr);
  EXPECT_EQ(find_logit_format(""), nullptr);
  expect_broken("whatever", "no logit file");
}

}  // namespace
}  // namespace driftscope
