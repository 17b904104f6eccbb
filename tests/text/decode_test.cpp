// SPDX-License-Identifier: Apache-2.0
// Tokens back to text: decoders, single pieces, and the stream that never splits a character.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/text/tiny_tokenizer.h"

namespace driftscope {
namespace {

using nlohmann::json;

std::string decoded(const Tokenizer& tokenizer, const std::vector<int>& ids,
                    bool skip_special = true) {
  std::vector<TokenId> tokens;
  for (const int id : ids) tokens.push_back(TokenId{id});
  return tokenizer.decode(tokens, skip_special);
}

// "_" stands for the space marker here; the shape is that of Llama 2's file.
json sentencepiece_json() {
  json document = bpe_json({"<unk>", "<s>", "<0xC3>", "<0xA9>", "_a", "_", "b", "_b"}, {"_ b"});
  document["model"]["byte_fallback"] = true;
  document["model"]["unk_token"] = "<unk>";
  document["added_tokens"] = {{{"id", 0}, {"content", "<unk>"}, {"special", true}},
                              {{"id", 1}, {"content", "<s>"}, {"special", true}}};
  document["decoder"] = {{"type", "Sequence"},
                         {"decoders",
                          {{{"type", "Replace"}, {"pattern", {{"String", "_"}}}, {"content", " "}},
                           {{"type", "ByteFallback"}},
                           {{"type", "Fuse"}},
                           {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}};
  return document;
}

TEST(Decode, SentencePieceStripsOneSpaceAtTheStart) {
  const auto t = must_open(sentencepiece_json());
  EXPECT_EQ(t->kind(), "SentencePiece BPE");
  EXPECT_EQ(decoded(*t, {4, 7}), "a b");
  EXPECT_EQ(decoded(*t, {5, 4}), " a");  // two spaces, one goes
  EXPECT_EQ(decoded(*t, {1, 4, 7}), "a b");
  EXPECT_EQ(decoded(*t, {1, 4, 7}, false), "<s> a b");
  EXPECT_EQ(decoded(*t, {4, 2, 3}), "a\xC3\xA9");
  EXPECT_EQ(decoded(*t, {}), "");
  EXPECT_EQ(decoded(*t, {99, -1, 6}), "b");  // ids that no token has give nothing
}

TEST(Decode, PiecesStandInsideAStream) {
  const auto t = must_open(sentencepiece_json());
  EXPECT_EQ(t->piece(TokenId{4}), " a");
  EXPECT_EQ(t->piece(TokenId{2}), "\xC3");
  EXPECT_EQ(t->piece(TokenId{1}), "<s>");
  EXPECT_EQ(t->piece(TokenId{8}), "");
  EXPECT_EQ(t->piece(TokenId{-1}), "");
  EXPECT_EQ(t->vocabulary_size(), 8U);
  EXPECT_EQ(t->id_of("_a"), TokenId{4});
  EXPECT_FALSE(t->id_of("zz").has_value());
}

TEST(Decode, BytesOfTheAlphabet) {
  json document = byte_level_json({"\xC4\xA0 a"});  // space, a
  document["added_tokens"] = {
      {{"id", 257}, {"content", "\xC4\xA0<x>"}, {"special", false}, {"normalized", false}}};
  const auto t = must_open(document);
  EXPECT_EQ(t->kind(), "byte-level BPE");
  EXPECT_EQ(t->piece(TokenId{256}), " a");
  EXPECT_EQ(t->piece(TokenId{10}), "\n");
  EXPECT_EQ(t->piece(TokenId{0xC3}), "\xC3");
  EXPECT_EQ(decoded(*t, {256, 0xC3, 0xA9}), " a\xC3\xA9");
  // An added token is text as it stands, not letters of the alphabet.
  EXPECT_EQ(t->piece(TokenId{257}), "\xC4\xA0<x>");
  EXPECT_EQ(ids_of(*t, "\xC4\xA0<x>"), std::vector<int>{257});
}

TEST(Decode, MetaspaceDropsTheFirstMarker) {
  json document = bpe_json({"_a", "_", "b"}, {});
  document["decoder"] = {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "always"}};
  EXPECT_EQ(decoded(*must_open(document), {0, 0, 2}), "a ab");
  document["decoder"]["prepend_scheme"] = "never";
  EXPECT_EQ(decoded(*must_open(document), {0, 2}), " ab");
}

TEST(Decode, StripAtBothEnds) {
  json document = bpe_json({"xx", "a"}, {});
  document["decoder"] = {
      {"type", "Sequence"},
      {"decoders",
       {{{"type", "Fuse"}}, {{"type", "Strip"}, {"content", "x"}, {"start", 3}, {"stop", 1}}}}};
  EXPECT_EQ(decoded(*must_open(document), {0, 1, 0}), "ax");
}

TEST(Decode, RefusesWhatItDoesNotKnow) {
  json document = bpe_json({"a"}, {});
  for (const json& part :
       {json{{"type", "WordPiece"}}, json{{"type", "CTC"}}, json(1), json{{"type", "Sequence"}}}) {
    document["decoder"] = part;
    const auto result = open_json(document);
    ASSERT_FALSE(result.has_value()) << part;
    EXPECT_THAT(result.error().message, ::testing::HasSubstr("decoder"));
  }
}

TEST(Stream, HoldsBytesBackUntilTheCharacterIsWhole) {
  StreamDecoder stream(must_open(byte_level_json({})));
  EXPECT_EQ(stream.push(TokenId{'a'}), "a");
  EXPECT_EQ(stream.push(TokenId{0xF0}), "");
  EXPECT_EQ(stream.push(TokenId{0x9F}), "");
  EXPECT_EQ(stream.push(TokenId{0x98}), "");
  EXPECT_EQ(stream.push(TokenId{0x80}), "\xF0\x9F\x98\x80");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Stream, ReplacesWhatCannotBecomeACharacter) {
  StreamDecoder stream(must_open(byte_level_json({})));
  EXPECT_EQ(stream.push(TokenId{0xC3}), "");
  EXPECT_EQ(stream.push(TokenId{'a'}),
            "\xEF\xBF\xBD"
            "a");
  EXPECT_EQ(stream.push(TokenId{0x80}), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.push(TokenId{0xE4}), "");
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Stream, StripsTheSpaceOfTheFirstTokenOnly) {
  StreamDecoder stream(must_open(sentencepiece_json()));
  EXPECT_EQ(stream.push(TokenId{99}), "");  // no token: nothing has begun
  EXPECT_EQ(stream.push(TokenId{4}), "a");
  EXPECT_EQ(stream.push(TokenId{4}), " a");
  EXPECT_EQ(stream.push(TokenId{2}), "");
  EXPECT_EQ(stream.push(TokenId{3}), "\xC3\xA9");
}

}  // namespace
}  // namespace driftscope
