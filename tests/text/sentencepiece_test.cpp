// SPDX-License-Identifier: Apache-2.0
// tokenizer.model: SentencePiece models of both kinds, written field by field in the test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "kernels/base/utf8.h"
#include "tests/model/temporary_directory.h"
#include "tests/text/tiny_tokenizer.h"

namespace driftscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

const fs::path kShared(DRIFTSCOPE_SHARED_DATA);

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7U) bytes += static_cast<char>((value & 0x7FU) | 0x80U);
  return bytes + static_cast<char>(value);
}
std::string number(unsigned field, std::uint64_t value) {
  return varint(field * 8) + varint(value);
}
std::string bytes_of(unsigned field, const std::string& content) {
  return varint(field * 8 + 2) + varint(content.size()) + content;
}
std::string real(unsigned field, float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  std::string bytes = varint(field * 8 + 5);
  for (unsigned i = 0; i < 4; ++i) bytes += static_cast<char>((bits >> (8 * i)) & 0xFFU);
  return bytes;
}

enum Type : std::uint8_t { normal = 1, unknown, control, user_defined, unused, byte };
enum Model : std::uint8_t { unigram = 1, bpe = 2 };

std::string piece(const std::string& text, float score, Type type = normal) {
  return bytes_of(
      1, bytes_of(1, text) + real(2, score) + (type == normal ? std::string() : number(3, type)));
}
// The first three pieces of nearly every model.
std::string first_pieces() {
  return piece("<unk>", 0, unknown) + piece("<s>", 0, control) + piece("</s>", 0, control);
}
std::string byte_pieces() {
  std::string bytes;
  constexpr const char* kDigits = "0123456789ABCDEF";
  for (unsigned i = 0; i < 256; ++i) {
    bytes += piece(std::string("<0x") + kDigits[i / 16] + kDigits[i % 16] + ">", 0, byte);
  }
  return bytes;
}
std::string ends(Model model, bool prefix = true, bool remove_spaces = false) {
  return bytes_of(2, number(3, model)) +
         bytes_of(3, number(3, prefix ? 1 : 0) + number(4, remove_spaces ? 1 : 0));
}

Result<std::shared_ptr<const Tokenizer>> open_model(const std::string& model,
                                                    const std::string& config = {},
                                                    const std::string& added = {}) {
  const TemporaryDirectory directory;
  directory.write("tokenizer.model", model);
  if (!config.empty()) directory.write("tokenizer_config.json", config);
  if (!added.empty()) directory.write("added_tokens.json", added);
  return Tokenizer::open(directory.path());
}

std::shared_ptr<const Tokenizer> must_open_model(const std::string& model,
                                                 const std::string& config = {},
                                                 const std::string& added = {}) {
  auto opened = open_model(model, config, added);
  if (opened) return *opened;
  ADD_FAILURE() << opened.error().message;
  return must_open(bpe_json({"?"}, {}));
}

void expect_refused(const std::string& model, const std::string& reason,
                    const std::string& config = {}) {
  const auto opened = open_model(model, config);
  ASSERT_FALSE(opened.has_value()) << "accepted, expected: " << reason;
  EXPECT_EQ(opened.error().kind, ErrorKind::malformed);
  EXPECT_THAT(opened.error().message, HasSubstr(reason));
  EXPECT_EQ(opened.error().message.find('\n'), std::string::npos);
}

// 3 ▁, 4 a, 5 b, 6 ab, 7 ▁a
std::string small(Model model, bool prefix = true, bool remove_spaces = false) {
  return first_pieces() + piece("\u2581", -2) + piece("a", -3) + piece("b", -4) + piece("ab", -1) +
         piece("\u2581a", -1.5F) + ends(model, prefix, remove_spaces);
}

TEST(SentencePiece, BpeMergesByScore) {
  const auto t = must_open_model(small(bpe));
  EXPECT_EQ(t->kind(), "SentencePiece BPE");
  EXPECT_EQ(ids_of(*t, "ab a"), (std::vector<int>{1, 3, 6, 7}));  // "ab" before "▁a"
  EXPECT_EQ(t->vocabulary_size(), 8U);
  EXPECT_TRUE(t->is_special(TokenId{1}));
  EXPECT_FALSE(t->is_special(TokenId{4}));
}

TEST(SentencePiece, UnigramTakesTheBestSum) {
  const auto t = must_open_model(small(unigram));
  EXPECT_EQ(t->kind(), "Unigram");
  // ▁ + ab = -3, ▁a + b = -5.5, ▁ + a + b = -9.
  EXPECT_EQ(ids_of(*t, "ab"), (std::vector<int>{1, 3, 6}));
  // Of equal sums the one found first: ▁a (-1.5) against ▁ + a (-5).
  EXPECT_EQ(ids_of(*t, "a"), (std::vector<int>{1, 7}));
  // What no piece spells is one unknown token for the whole run.
  EXPECT_EQ(spans_of(*t, "axyza", {.add_special_tokens = false}), "7[0,1) 0[1,4) 4[4,5)");
}

TEST(SentencePiece, BothKindsFallBackToBytes) {
  for (const Model model : {unigram, bpe}) {
    const auto t = must_open_model(first_pieces() + byte_pieces() + piece("\u2581", -2) +
                                   piece("a", -3) + ends(model));
    EXPECT_EQ(ids_of(*t, "a\u00e9"), (std::vector<int>{1, 259, 260, 3 + 0xC3, 3 + 0xA9}));
    const std::vector<TokenId> ids{TokenId{259}, TokenId{260}, TokenId{3 + 0xC3},
                                   TokenId{3 + 0xA9}};
    EXPECT_EQ(t->decode(ids, false), "a\u00e9");
  }
}

TEST(SentencePiece, UnusedPiecesAreNotGivenOut) {
  const std::string rest = piece("\u2581", -2) + piece("a", -3) + piece("b", -4);
  const std::string joined = piece("ab", -1, unused);
  for (const Model model : {unigram, bpe}) {
    const auto t = must_open_model(first_pieces() + rest + joined + ends(model, false));
    EXPECT_EQ(ids_of(*t, "ab"), (std::vector<int>{1, 4, 5}));
  }
}

TEST(SentencePiece, UserDefinedPiecesAreWholeEverywhere) {
  const std::string pieces = first_pieces() + piece("\u2581", -2) + piece("a", -3) +
                             piece("aa", -1) + piece("\u2581\u2581", 0, user_defined) +
                             piece("a#", 0, user_defined);
  for (const Model model : {unigram, bpe}) {
    const auto t = must_open_model(pieces + ends(model, false));
    // 3 ▁, 4 a, 5 aa, 6 ▁▁, 7 a#
    EXPECT_EQ(ids_of(*t, "aa#  aa", {.parse_special_tokens = false}),
              (std::vector<int>{1, 4, 7, 6, 5}));
  }
}

TEST(SentencePiece, ExtraWhiteSpaceIsRemovedWhereTheModelSaysSo) {
  const auto kept = must_open_model(small(bpe));
  EXPECT_EQ(ids_of(*kept, "  b "), (std::vector<int>{1, 3, 3, 3, 5, 3}));
  const auto removed = must_open_model(small(bpe, true, true));
  EXPECT_EQ(spans_of(*removed, "  b   b "), "1[0,0) 3[2,2) 5[2,3) 3[3,4) 5[6,7)");
  EXPECT_EQ(ids_of(*removed, "   "), (std::vector<int>{1}));
}

TEST(SentencePiece, SettingsOfTheConfig) {
  const std::string model = small(bpe);
  EXPECT_EQ(ids_of(*must_open_model(model, R"({"add_bos_token":false,"add_eos_token":true})"), "b"),
            (std::vector<int>{3, 5, 2}));
  EXPECT_EQ(ids_of(*must_open_model(model, R"({"add_prefix_space":false})"), "b"),
            (std::vector<int>{1, 5}));
  EXPECT_EQ(ids_of(*must_open_model(model, R"({"bos_token":{"content":"</s>"}})"), "b"),
            (std::vector<int>{2, 3, 5}));
  EXPECT_EQ(ids_of(*must_open_model(model, R"({"tokenizer_class":"T5Tokenizer"})"), "b"),
            (std::vector<int>{3, 5, 2}));
}

TEST(SentencePiece, LegacyPutsASpaceAfterSpecialTokens) {
  EXPECT_EQ(ids_of(*must_open_model(small(bpe)), "b</s>b b"),
            (std::vector<int>{1, 3, 5, 2, 3, 5, 3, 5}));
  EXPECT_EQ(ids_of(*must_open_model(small(bpe), R"({"legacy":false})"), "b</s>b b"),
            (std::vector<int>{1, 3, 5, 2, 5, 3, 5}));
}

TEST(SentencePiece, AddedTokens) {
  const std::string config = R"({"added_tokens_decoder":{
      "5":{"content":"<x>","special":true},
      "8":{"content":"<|end|>","special":true,"rstrip":true}}})";
  const auto t = must_open_model(small(bpe), config);
  EXPECT_EQ(t->vocabulary_size(), 9U);
  EXPECT_EQ(ids_of(*t, "<|end|>  <x>a"), (std::vector<int>{1, 8, 5, 7}));
  EXPECT_EQ(t->piece(TokenId{5}), "<x>");
  EXPECT_EQ(ids_of(*must_open_model(small(bpe), "", R"({"<pad>":8})"), "<pad>"),
            (std::vector<int>{1, 8}));
}

TEST(SentencePiece, WhatIsRefused) {
  const std::string good = small(bpe);
  expect_refused("", "has no pieces");
  expect_refused("{\"model\":1}", "damaged");
  expect_refused(good + "\x0A\xFF\xFF\xFF\xFF\x0F", "damaged");
  expect_refused(bytes_of(1, bytes_of(1, "a") + "\x15"), "piece 0 is damaged");
  expect_refused(piece("", 0), "piece 0 is empty");
  expect_refused(piece("\xFF", 0), "piece 0 is not UTF-8");
  expect_refused(piece("a", std::numeric_limits<float>::infinity()), "not finite");
  expect_refused(bytes_of(1, bytes_of(1, "a") + number(3, 9)), "unknown type 9");
  expect_refused(piece("a", 0) + piece("a", 0), "pieces 0 and 1 are the same");
  expect_refused(piece("a", 0) + bytes_of(2, number(3, 3)), "model type word is not supported");
  expect_refused(piece("a", 0) + bytes_of(2, number(24, 1)), "white space as suffix");
  expect_refused(piece("a", 0) + bytes_of(3, number(5, 0)), "does not escape white space");
  expect_refused(piece("a", 0) + bytes_of(3, bytes_of(2, "abc")), "charsmap ends inside");
  expect_refused(good, "other ids", R"({"tokenizer_class":"XLMRobertaTokenizer"})");
  expect_refused(good, "bos_token \"<x>\" is no token", R"({"bos_token":"<x>"})");
  expect_refused(good, "id \"x\" is not an integer",
                 R"({"added_tokens_decoder":{"x":{"content":"y"}}})");
  expect_refused(good, "tokenizer_config.json: is not an object", "[]");
}

TEST(SentencePiece, CutOffFilesNeverCrash) {
  const std::string good = small(unigram);
  for (std::size_t length = 0; length < good.size(); ++length) {
    const auto opened = open_model(good.substr(0, length));
    EXPECT_TRUE(opened || opened.error().message.find('\n') == std::string::npos);
  }
  std::mt19937 random(21);  // NOLINT: a fixed seed on purpose
  for (int round = 0; round < 300; ++round) {
    std::string damaged = good;
    for (int i = 0; i < 3; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    const auto opened = open_model(damaged);
    if (opened) static_cast<void>((*opened)->encode("ab a\u00e9", {}));
  }
}

TEST(SentencePiece, OneMegabyteOfOneLetter) {
  const std::string letters(1'000'000, 'a');
  for (const Model model : {unigram, bpe}) {
    const auto t = must_open_model(first_pieces() + piece("\u2581", -2) + piece("a", -3) +
                                   piece("aa", -1) + piece("aaaa", -0.5F) + ends(model, false));
    const auto tokens = t->encode(letters, {.add_special_tokens = false});
    ASSERT_TRUE(tokens.has_value()) << tokens.error().message;
    EXPECT_EQ(tokens->size(), 250'000U);
  }
}

TEST(SentencePiece, Stories260K) {
  const fs::path vectors = kShared / "oracle" / "stories260K" / "tokenizer_vectors.json";
  const fs::path folder = kShared / "models" / "stories260K" / "hf";
  if (!fs::exists(vectors) || !fs::exists(folder)) GTEST_SKIP() << "no shared data at " << kShared;
  const TemporaryDirectory directory;
  for (const char* name : {"tokenizer.model", "tokenizer_config.json"}) {
    std::ifstream stream(folder / name, std::ios::binary);
    directory.write(name, std::string(std::istreambuf_iterator<char>(stream), {}));
  }
  const auto t = Tokenizer::open(directory.path());
  ASSERT_TRUE(t.has_value()) << t.error().message;
  std::ifstream stream(vectors);
  std::size_t checked = 0;
  for (const json& vector : json::parse(stream)) {
    const std::string text = vector.at("text");
    EXPECT_EQ(ids_of(**t, text), vector.at("ids").get<std::vector<int>>()) << text;
    ++checked;
  }
  EXPECT_GT(checked, 10U);
}

}  // namespace
}  // namespace driftscope
