// SPDX-License-Identifier: Apache-2.0
// The model alone: order of merges, unknown characters, bytes, and agreement with a plain
// reading of the definition.
#include "engine/text/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/text/tiny_tokenizer.h"

namespace driftscope {
namespace {

using ::testing::ElementsAre;

TEST(Bpe, LowestRankFirstThenLeftmost) {
  // ids:                  0    1    2    3     4
  const auto t = must_open(bpe_json({"a", "b", "c", "bc", "ab"}, {"b c", "a b"}));
  EXPECT_THAT(ids_of(*t, "abc"), ElementsAre(0, 3));  // b c has the lower rank
  EXPECT_THAT(ids_of(*t, "abab"), ElementsAre(4, 4));
  const auto twins = must_open(bpe_json({"a", "aa"}, {"a a"}));
  EXPECT_THAT(ids_of(*twins, "aaa"), ElementsAre(1, 0));  // leftmost of equal ones
  EXPECT_THAT(ids_of(*twins, "aaaaa"), ElementsAre(1, 1, 0));
}

TEST(Bpe, MergesOfMerges) {
  // "lower" of the original description of BPE: l o, lo w, e r, low er
  const auto t = must_open(bpe_json({"l", "o", "w", "e", "r", "lo", "low", "er", "lower"},
                                    {"l o", "lo w", "e r", "low er"}));
  EXPECT_THAT(ids_of(*t, "lower"), ElementsAre(8));
  EXPECT_THAT(ids_of(*t, "low"), ElementsAre(6));
  EXPECT_THAT(ids_of(*t, "lowlower"), ElementsAre(6, 8));
  EXPECT_EQ(spans_of(*t, "lowr"), "6[0,3) 4[3,4)");
}

TEST(Bpe, MergesAsPairsMayHoldSpaces) {
  auto document = bpe_json({"a", " ", "a "}, {});
  document["model"]["merges"] = nlohmann::json::array({nlohmann::json::array({"a", " "})});
  EXPECT_THAT(ids_of(*must_open(document), "a a"), ElementsAre(2, 0));
}

TEST(Bpe, UnknownCharacters) {
  auto document = bpe_json({"<unk>", "a"}, {});
  // Without unk_token they vanish.
  EXPECT_THAT(ids_of(*must_open(document), "axya"), ElementsAre(1, 1));
  document["model"]["unk_token"] = "<unk>";
  EXPECT_EQ(spans_of(*must_open(document), "axya"), "1[0,1) 0[1,2) 0[2,3) 1[3,4)");
  document["model"]["fuse_unk"] = true;
  EXPECT_EQ(spans_of(*must_open(document), "axya"), "1[0,1) 0[1,3) 1[3,4)");
  EXPECT_EQ(spans_of(*must_open(document), "\xC3\xA9\xF0\x9F\x98\x80"), "0[0,6)");
}

TEST(Bpe, ByteFallbackGivesOneIdPerByte) {
  auto document = bpe_json({"<unk>", "a", "<0xC3>", "<0xA9>", "<0x0A>"}, {});
  document["model"]["unk_token"] = "<unk>";
  document["model"]["byte_fallback"] = true;
  const auto t = must_open(document);
  EXPECT_EQ(spans_of(*t, "a\xC3\xA9\n"), "1[0,1) 2[1,2) 3[2,3) 4[3,4)");
  // U+00E8 is C3 A8, and A8 is not there: unknown as a whole.
  EXPECT_EQ(spans_of(*t, "\xC3\xA8"), "0[0,2)");
}

TEST(Bpe, IgnoreMergesTakesWholeWords) {
  auto document = bpe_json({"a", "b", "c", "ab", "abc"}, {"a b"});
  EXPECT_THAT(ids_of(*must_open(document), "abc"), ElementsAre(3, 2));
  document["model"]["ignore_merges"] = true;
  EXPECT_THAT(ids_of(*must_open(document), "abc"), ElementsAre(4));
  EXPECT_THAT(ids_of(*must_open(document), "abcc"), ElementsAre(3, 2, 2));
}

TEST(Bpe, IgnoreMergesOfBytes) {
  // Token 257 is no result of a merge that its pieces reach: only ignore_merges finds it.
  auto document = byte_level_json({"a b"});
  document["model"]["vocab"]["xyz"] = 257;
  EXPECT_THAT(ids_of(*must_open(document), "xyz"), ElementsAre('x', 'y', 'z'));
  document["model"]["ignore_merges"] = true;
  EXPECT_THAT(ids_of(*must_open(document), "xyz"), ElementsAre(257));
}

// The definition, read plainly: again and again, merge the pair with the lowest rank, the
// leftmost of equal ones.
std::vector<int> encode_by_definition(
    const std::string& word, const std::map<std::pair<int, int>, std::pair<int, int>>& merges) {
  std::vector<int> symbols;
  for (const char c : word) symbols.push_back(c - 'a');
  for (;;) {
    std::size_t best = symbols.size();
    int best_rank = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = merges.find({symbols[i], symbols[i + 1]});
      if (found == merges.end()) continue;
      if (best == symbols.size() || found->second.first < best_rank) {
        best = i;
        best_rank = found->second.first;
      }
    }
    if (best == symbols.size()) return symbols;
    symbols[best] = merges.at({symbols[best], symbols[best + 1]}).second;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Bpe, AgreesWithTheDefinitionOnRandomVocabularies) {
  std::mt19937 random(7);  // NOLINT: a fixed seed on purpose
  for (int round = 0; round < 60; ++round) {
    const int letters = 2 + round % 3;
    std::vector<std::string> tokens;
    for (int i = 0; i < letters; ++i) tokens.emplace_back(1, static_cast<char>('a' + i));
    BpeModel model;
    for (int i = 0; i < letters; ++i) model.vocabulary[tokens[static_cast<std::size_t>(i)]] = i;
    model.byte_ids.fill(-1);
    std::map<std::pair<int, int>, std::pair<int, int>> merges;
    for (int rank = 0; rank < 40; ++rank) {
      const int left = static_cast<int>(random() % tokens.size());
      const int right = static_cast<int>(random() % tokens.size());
      if (merges.contains({left, right})) continue;
      const std::string merged =
          tokens[static_cast<std::size_t>(left)] + tokens[static_cast<std::size_t>(right)];
      const auto [slot, inserted] =
          model.vocabulary.emplace(merged, static_cast<std::int32_t>(tokens.size()));
      if (inserted) tokens.push_back(merged);
      merges[{left, right}] = {rank, slot->second};
      model.merges.insert(left, right, {static_cast<std::uint32_t>(rank), slot->second});
    }
    for (int length : {1, 2, 3, 5, 17, 200}) {
      std::string word;
      for (int i = 0; i < length; ++i) {
        word.push_back(static_cast<char>('a' + random() % static_cast<unsigned>(letters)));
      }
      std::vector<WordToken> found;
      model.encode_word(word, found);
      std::vector<int> ids;
      std::uint32_t position = 0;
      for (const WordToken& token : found) {
        ids.push_back(token.id);
        EXPECT_EQ(token.begin, position);
        position = token.end;
      }
      EXPECT_EQ(position, word.size());
      EXPECT_EQ(ids, encode_by_definition(word, merges)) << word;
    }
  }
}

TEST(Bpe, CuttingAtSpaceMarkersChangesNothing) {
  const std::string marker = "\xE2\x96\x81";
  const std::vector<std::string> tokens{marker,          "a",  "b",         marker + "a",
                                        marker + marker, "ab", "b" + marker};
  // No merge joins a letter with a marker after it: words may be cut there.
  const auto cut = must_open(bpe_json(tokens, {marker + " a", marker + " " + marker, "a b"}));
  EXPECT_EQ(ids_of(*cut, marker + "ab" + marker + "a" + marker + marker + marker + "ab"),
            (std::vector<int>{3, 2, 3, 4, 3, 2}));
  // This one has such a merge, of the lowest rank: b and the marker stay together.
  const auto joined = must_open(bpe_json(tokens, {"b " + marker, marker + " a"}));
  EXPECT_EQ(ids_of(*joined, marker + "ab" + marker + "a"), (std::vector<int>{3, 6, 1}));
}

TEST(Bpe, LongWordsWithoutSpaces) {
  // 2^17 equal letters halve at every rank. A quadratic merge would need minutes for this.
  std::vector<std::string> tokens{"a"};
  std::vector<std::string> merges;
  for (int level = 0; level < 10; ++level) {
    merges.push_back(tokens.back() + " " + tokens.back());
    tokens.push_back(tokens.back() + tokens.back());
  }
  const auto t = must_open(bpe_json(tokens, merges));
  const std::string word(131072, 'a');
  const std::vector<int> ids = ids_of(*t, word);
  EXPECT_EQ(ids, std::vector<int>(128, 10));
}

}  // namespace
}  // namespace driftscope
