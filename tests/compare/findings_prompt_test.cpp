// SPDX-License-Identifier: Apache-2.0
// What was wrong with the prompts is told first, and of which side.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analysis/compare/verdict_block.h"
#include "tests/compare/synthetic.h"

namespace driftscope::test {
namespace {

constexpr const char* kDoubled =
    R"({"prompt_findings":[{"id":"double_bos","severity":"warning","text":"2 BOS tokens",)"
    R"("evidence":{"positions":[0,1]}}]})";

ComparisonPointer run(const std::string& envelope_a, const std::string& envelope_b) {
  Script script;
  script.facts = facts_of(4, 2);
  script.facts.envelope_a = envelope_a;
  script.facts.envelope_b = envelope_b;
  for (int i = 0; i < 2; ++i) script.add({4.0F, 1.0F, 0.0F, -1.0F}, {4.0F, 1.0F, 0.0F, -1.0F});
  return script.run();
}

TEST(FindingsPrompt, OfBothSidesAreToldOnce) {
  const ComparisonPointer comparison = run(kDoubled, kDoubled);
  ASSERT_FALSE(comparison->findings.empty());
  const Finding& first = comparison->findings.front();
  EXPECT_EQ(first.id, "double_bos");
  EXPECT_EQ(first.severity, Severity::warning);
  EXPECT_EQ(first.text, "A and B: 2 BOS tokens");
  const auto evidence = nlohmann::json::parse(first.evidence);
  EXPECT_EQ(evidence["positions"], nlohmann::json({0, 1}));
  EXPECT_EQ(comparison->findings[1].id == "double_bos", false);
  EXPECT_TRUE(comparison->envelope_difference.empty());
}

TEST(FindingsPrompt, OfOneSideNameIt) {
  const ComparisonPointer comparison = run("{}", kDoubled);
  ASSERT_FALSE(comparison->findings.empty());
  EXPECT_EQ(comparison->findings.front().text, "B: 2 BOS tokens");
  EXPECT_TRUE(comparison->envelope_difference.empty());  // told as a finding, not as a field
}

TEST(FindingsPrompt, OtherShapesAreLeftOut) {
  for (const char* envelope : {"{", "[]", R"({"prompt_findings":5})", R"({"prompt_findings":[5]})",
                               R"({"prompt_findings":[{"id":"x","severity":"no","text":"t"}]})"}) {
    const auto comparison = run(envelope, envelope);
    for (const Finding& finding : comparison->findings) EXPECT_NE(finding.id, "x");
  }
}

TEST(FindingsPrompt, ThePromptComesBeforeAnyNumber) {
  Script script;
  script.facts = facts_of(4, 2);
  script.facts.envelope_a = kDoubled;
  script.facts.prompt_b.push_back(TokenId{3});
  for (int i = 0; i < 2; ++i) script.add({4.0F, 1.0F, 0.0F, -1.0F}, {4.0F, 1.5F, 0.0F, -1.0F});
  const std::string block = verdict_block(*script.run(), false);
  const std::size_t differ = block.find("different tasks");
  const std::size_t doubled = block.find("A: 2 BOS tokens");
  ASSERT_NE(differ, std::string::npos) << block;
  ASSERT_NE(doubled, std::string::npos) << block;
  EXPECT_LT(differ, doubled);
  EXPECT_LT(doubled, block.find("max_abs"));
}

}  // namespace
}  // namespace driftscope::test
