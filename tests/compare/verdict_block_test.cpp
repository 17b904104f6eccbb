// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/verdict_block.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/compare/synthetic.h"

namespace driftscope {
namespace {

test::Script near_tie_run() {
  test::Script script;
  script.facts = test::facts_of(6, 8);
  script.facts.config_a.name = "bf16-invariant";
  script.facts.config_b.name = "bf16-shape-dependent";
  script.facts.config_b.matmul_policy = PlanPolicy::shape_dependent;
  for (int step = 0; step < 7; ++step) {
    script.add({4.0F, 1.0F, 0.5F, 0.0F, -1.0F, -2.0F},
               {4.0F + 0x1p-10F, 1.0F - 0x1p-10F, 0.5F, 0.0F, -1.0F, -2.0F});
  }
  script.add({4.0F, 4.0F - 0x1p-11F, 0.5F, 0.0F, -1.0F, -2.0F},
             {4.0F - 0x1p-11F, 4.0F, 0.5F, 0.0F, -1.0F, -2.0F});
  return script;
}

TEST(VerdictBlock, TellsWhatHappened) {
  const std::string block = verdict_block(*near_tie_run().run(), false);
  SCOPED_TRACE(block);
  fmt::print("{}", block);
  EXPECT_NE(block.find("step 7"), std::string::npos);
}

}  // namespace
}  // namespace driftscope
