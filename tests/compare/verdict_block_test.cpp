// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/verdict_block.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/compare/synthetic.h"

namespace driftscope {
namespace {

test::Script near_tie_run() {
  test::Script script;
  script.facts = test::facts_of(6, 8);
  script.facts.config_a.name = "left.json";
  script.facts.config_b.name = "right.json";
  script.facts.config_b.matmul_policy = PlanPolicy::shape_dependent;
  script.facts.taps = {{0, "layer_output", 1}};
  for (int step = 0; step < 7; ++step) {
    script.add({4.0F, 1.0F, 0.5F, 0.0F, -1.0F, -2.0F},
               {4.0F + 0x1p-10F, 1.0F - 0x1p-10F, 0.5F, 0.0F, -1.0F, -2.0F});
  }
  script.add({4.0F, 4.0F - 0x1p-11F, 0.5F, 0.0F, -1.0F, -2.0F},
             {4.0F - 0x1p-11F, 4.0F, 0.5F, 0.0F, -1.0F, -2.0F});
  for (std::size_t i = 0; i < script.a.size(); ++i) {
    script.a[i].taps = {{{0, "layer_output"}, {1.0F}}};
    script.forced[i].taps = {{{0, "layer_output"}, {1.5F}}};
  }
  return script;
}

void expect_lines(const std::string& block, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    EXPECT_NE(block.find(line), std::string::npos) << line << "\n is not in\n" << block;
  }
}

TEST(VerdictBlock, TellsWhatHappened) {
  expect_lines(
      verdict_block(*near_tie_run().run(), false),
      {"verdict       tolerance: the logits of 8 steps stay within max_abs 0.001, KL 0.0001; the "
       "texts",
       "sides         A  left.json  on synthetic\n",
       "tiers         bitwise   no  the bits of the logits differ at 8 of 8 steps, first at step "
       "0\n",
       "divergence    step 7 (counted from 0), after 7 equal tokens\n",
       "              A  \"a\"                       id 0       margin 0.000488\n",
       "              B  \"b\"                       id 1       margin 0.000488\n",
       "drift         0.000282 at this step, 0.5 times the run's usual 0.000564; a-priori bound ",
       "cause         near_tie\n",
       "rank flips    1 pair within the top 10 over 8 steps, most at step 7 (1)",
       "begins        Drift begins at layer 0, operation layer_output, step 0: max_abs 0.5, ",
       "control       A against A: same bits at all 8 steps\n",
       "differs       matmul_policy            invariant -> shape_dependent\n",
       "repeat        driftscope run --model m --prompt 'In the'\n"});
}

TEST(VerdictBlock, OfIdenticalRunsIsShort) {
  test::Script script;
  script.facts = test::facts_of(2, 2);
  script.add({1.0F, 0.0F}, {1.0F, 0.0F});
  script.add({1.0F, 0.0F}, {1.0F, 0.0F});
  expect_lines(verdict_block(*script.run(), false),
               {"verdict       bitwise: all 2 steps have the same bits\n",
                "divergence    none in 2 tokens\n", "differs       no knob and no field"});
}

TEST(VerdictBlock, LinesStayWithinAHundredColumns) {
  test::Script script = near_tie_run();
  script.facts.piece = [](TokenId) { return std::string("länger"); };
  std::istringstream lines(verdict_block(*script.run(), false));
  for (std::string line; std::getline(lines, line);) {
    const auto characters = std::count_if(line.begin(), line.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
    });
    EXPECT_LE(characters, 100) << line;
  }
}

TEST(VerdictBlock, TextOfModelsIsEscaped) {
  test::Script script = near_tie_run();
  script.facts.piece = [](TokenId id) { return id.value == 0 ? "\x1b[2J\n" : "\xff"; };
  script.facts.config_b.name = "evil\nname";
  const std::string block = verdict_block(*script.run(), false);
  EXPECT_EQ(block.find('\x1b'), std::string::npos);
  EXPECT_EQ(block.find("evil\nname"), std::string::npos);
  EXPECT_NE(block.find("\\xff"), std::string::npos) << block;
}

TEST(VerdictBlock, CommandsKeepTheirBackslashes) {
  test::Script script = near_tie_run();
  script.facts.command = "driftscope run --prompt 'don'\\''t'\x1b[0m";
  const std::string block = verdict_block(*script.run(), false);
  EXPECT_NE(block.find("--prompt 'don'\\''t'"), std::string::npos) << block;
  EXPECT_EQ(block.find('\x1b'), std::string::npos);
}

TEST(VerdictBlock, ColourAddsSequencesOnly) {
  const ComparisonPointer comparison = near_tie_run().run();
  std::string coloured = verdict_block(*comparison, true);
  EXPECT_NE(coloured.find("\x1b["), std::string::npos);
  for (std::size_t at = coloured.find('\x1b'); at != std::string::npos;
       at = coloured.find('\x1b')) {
    coloured.erase(at, coloured.find('m', at) - at + 1);
  }
  EXPECT_EQ(coloured, verdict_block(*comparison, false));
}

TEST(VerdictBlock, SaysWhatIsMissing) {
  test::Script script = near_tie_run();
  script.control.clear();
  script.state = TraceState::interrupted;
  expect_lines(verdict_block(*script.run(), false), {"control       not run\n", "interrupted"});
  const ComparisonPointer empty =
      ComparisonBuilder(test::facts_of(4, 3), {}).snapshot(TraceState::partial);
  expect_lines(verdict_block(*empty, false),
               {"verdict       inconclusive: a free lane is missing"});
}

}  // namespace
}  // namespace driftscope
