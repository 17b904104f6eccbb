// SPDX-License-Identifier: Apache-2.0
// What a report says of two draws, from numbers chosen by hand.
#include <gtest/gtest.h>

#include "tests/compare/synthetic.h"

namespace driftscope {
namespace {

using test::Script;

constexpr float kSmall = 0x1p-11F;

// Twenty steps with a pairwise drift of 2^-10 between the best two, under f32 and two policies.
Script usual_run() {
  Script script;
  script.facts = test::facts_of(6, 21);
  script.facts.config_b.matmul_policy = PlanPolicy::shape_dependent;
  for (int step = 0; step < 20; ++step) {
    script.add({4.0F, 1.0F, 0.5F, 0.0F, -1.0F, -2.0F},
               {4.0F + kSmall, 1.0F - kSmall, 0.5F, 0.0F, -1.0F, -2.0F});
  }
  return script;
}

// A run of draws whose last step parts: tokens 0 (A) and 1 (B) after the same rows but for kSmall.
Script drawn_run(const Draw& a, const Draw& b) {
  Script script = usual_run();
  script.facts.config_a.sampling.temperature = script.facts.config_b.sampling.temperature = 1.0;
  script.add({2.0F, 1.5F, 0.5F, 0.0F, -1.0F, -2.0F},
             {2.0F + kSmall, 1.5F - kSmall, 0.5F, 0.0F, -1.0F, -2.0F});
  script.forced.back().choice = script.b.back().choice = script.b.back().emitted = TokenId{1};
  script.a.back().draw = a;
  script.forced.back().draw = script.b.back().draw = b;
  return script;
}

Draw interval(double uniform, double lower, double upper) {
  Draw draw;
  draw.uniform = uniform;
  draw.lower = lower;
  draw.upper = upper;
  return draw;
}

TEST(CauseOfDraws, ADrawNamesTheNumberAndTheBoundaryThatPassedIt) {
  const Divergence flip = *drawn_run(interval(0.4312, 0.0, 0.4313), interval(0.4312, 0.4309, 0.7))
                               .run()
                               ->first_divergence;
  EXPECT_EQ(flip.cause, FlipCause::sampler);
  EXPECT_NE(flip.reason.find("the logits agree to 0.000488; the uniform 0.4312 fell below A's "
                             "boundary 0.4313 and on the other side of B's, 0.4309"),
            std::string::npos)
      << flip.reason;
}

TEST(CauseOfDraws, ADrawTowardsALowerIdPassesTheLowerBoundary) {
  // A took token 2, B token 1.
  Script script = drawn_run(interval(0.75, 0.7499, 0.9), interval(0.75, 0.5, 0.7501));
  script.a.back().choice = script.a.back().emitted = script.forced.back().emitted = TokenId{2};
  script.control.back().choice = script.control.back().emitted = TokenId{2};
  const Divergence flip = *script.run()->first_divergence;
  EXPECT_NE(flip.reason.find("the uniform 0.75 fell above A's boundary 0.7499 and on the other "
                             "side of B's, 0.7501"),
            std::string::npos)
      << flip.reason;
}

TEST(CauseOfDraws, OtherNumbersAreNotABoundary) {
  Script script = drawn_run(interval(0.25, 0.0, 0.4313), interval(0.625, 0.4309, 0.7));
  EXPECT_NE(script.run()->first_divergence->reason.find(
                "other random numbers: look for random state shared between requests; the random "
                "numbers differ: uniform 0.25 (A) and 0.625 (B)"),
            std::string::npos)
      << script.run()->first_divergence->reason;
  script.facts.config_a.sampling.seed_scope = SeedScope::shared_worker;
  script.facts.config_b.sampling.seed_scope = SeedScope::shared_worker;
  EXPECT_NE(script.run()->first_divergence->reason.find("the requests in flight share one stream"),
            std::string::npos);
}

TEST(CauseOfDraws, ARaceNamesTheLeads) {
  Draw a;
  a.candidates = {{TokenId{0}, 0.0, 1.0}, {TokenId{1}, -0.5, 1.25}};  // 1 and 0.75
  Draw b;
  b.candidates = {{TokenId{1}, -0.125, 1.25}, {TokenId{0}, 0.0, 1.0}};  // 1.125 and 1
  const Divergence flip = *drawn_run(a, b).run()->first_divergence;
  EXPECT_NE(flip.reason.find("in a race of logits with equal Gumbel noise (1 and 1.25) A's token "
                             "led by 0.25 in A and B's by 0.125 in B"),
            std::string::npos)
      << flip.reason;
  b.candidates[0].noise = 2.0;
  EXPECT_NE(drawn_run(a, b).run()->first_divergence->reason.find("other Gumbel noise"),
            std::string::npos);
}

}  // namespace
}  // namespace driftscope
