// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/local_sides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace driftscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// `leaders` of the configurations "f32", "bf16", "int8" (0, 1, 2); none: unobservable.
LocalSide side(const std::string& name, const std::vector<std::size_t>& leaders) {
  LocalSide out;
  out.name = name;
  out.ranking.verdict = leaders.empty() ? LocalVerdict::unobservable : LocalVerdict::exact;
  for (const char* configuration : {"f32", "bf16", "int8"}) {
    LocalCandidate candidate;
    candidate.name = configuration;
    out.candidates.push_back(candidate);
  }
  for (const std::size_t index : leaders)
    out.ranking.ranks.push_back({.candidate = index, .standing = LocalStanding::leading});
  for (std::size_t index = 0; index < 3; ++index) {
    const bool leads = std::find(leaders.begin(), leaders.end(), index) != leaders.end();
    // Where nothing is told all lead, as nothing is told apart.
    const auto standing = leaders.empty() ? LocalStanding::leading : LocalStanding::told_apart;
    if (!leads) out.ranking.ranks.push_back({.candidate = index, .standing = standing});
  }
  return out;
}

SidesComparison compare(const std::vector<LocalSide>& sides) { return compare_local_sides(sides); }

TEST(LocalSides, WithoutACommonConfigurationTheyDiffer) {
  const SidesComparison c = compare({side("A", {2}), side("B", {1})});
  EXPECT_EQ(c.agreement, SidesAgreement::differ);
  EXPECT_THAT(c.common, IsEmpty());
  EXPECT_EQ(c.sentence, "the files differ: A exactly int8; B exactly bf16");
}

TEST(LocalSides, WhatLeadsBothMayHaveGivenBoth) {
  const SidesComparison c = compare({side("A", {1, 0}), side("B", {1})});
  EXPECT_EQ(c.agreement, SidesAgreement::same);
  EXPECT_THAT(c.common, ElementsAre("bf16"));
  EXPECT_EQ(
      c.sentence,
      "A only among 2 that these numbers do not tell apart, bf16 one of them; B exactly bf16");
  const SidesComparison two = compare({side("A", {1, 0}), side("B", {0, 1})});
  EXPECT_THAT(two.common, ElementsAre("bf16", "f32"));
  EXPECT_EQ(two.sentence,
            "A only among 2 that these numbers do not tell apart (bf16, f32); B only among 2 that "
            "these numbers do not tell apart (f32, bf16); any of bf16, f32 may have given all");
}

TEST(LocalSides, WhatDoesNotFitExactlyIsNearestOnly) {
  LocalSide near = side("B", {1});
  near.ranking.verdict = LocalVerdict::nearest;
  EXPECT_EQ(compare({side("A", {1}), near}).sentence, "A exactly bf16; B nearest to bf16");
}

// Every two of them share one, all three none.
TEST(LocalSides, OneConfigurationMustLeadAll) {
  const SidesComparison c = compare({side("a", {0, 1}), side("b", {1, 2}), side("c", {2, 0})});
  EXPECT_EQ(c.agreement, SidesAgreement::differ);
  EXPECT_THAT(c.sentence,
              HasSubstr("a only among 2 that these numbers do not tell apart (f32, bf16); b only "
                        "among 2 that these numbers do not tell apart (bf16, int8)"));
}

TEST(LocalSides, AnUnobservableSideLeavesItOpen) {
  const SidesComparison one = compare({side("A", {2}), side("B", {})});
  EXPECT_EQ(one.agreement, SidesAgreement::open);
  EXPECT_THAT(one.sentence, HasSubstr("A exactly int8; B is unobservable"));
  const SidesComparison none = compare({side("A", {}), side("B", {})});
  EXPECT_EQ(none.agreement, SidesAgreement::open);
  EXPECT_THAT(none.common, IsEmpty());
  EXPECT_THAT(none.sentence, HasSubstr("A, B are unobservable"));
  // Two that differ do so whatever a third is.
  const SidesComparison third = compare({side("a", {2}), side("b", {}), side("c", {1})});
  EXPECT_EQ(third.agreement, SidesAgreement::differ);
  EXPECT_THAT(third.sentence, HasSubstr("a exactly int8; c exactly bf16; b is unobservable"));
}

}  // namespace
}  // namespace driftscope
