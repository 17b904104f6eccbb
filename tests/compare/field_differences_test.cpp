// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "tests/compare/synthetic.h"

namespace driftscope {
namespace {

std::map<std::string, std::pair<std::string, std::string>> differences(
    const ExperimentFacts& facts) {
  const ComparisonPointer comparison = ComparisonBuilder(facts, {}).snapshot(TraceState::partial);
  std::map<std::string, std::pair<std::string, std::string>> fields;
  for (const FieldDifference& field : comparison->envelope_difference) {
    fields[field.field] = {field.a, field.b};
  }
  return fields;
}

using Fields = std::map<std::string, std::pair<std::string, std::string>>;

TEST(FieldDifferences, KnobsFromTheRegistry) {
  ExperimentFacts facts = test::facts_of(4, 1);
  facts.config_b.matmul_policy = PlanPolicy::shape_dependent;
  facts.config_b.neighbours = 7;
  EXPECT_EQ(differences(facts), (Fields{{"knob.matmul_policy", {"invariant", "shape_dependent"}},
                                        {"knob.neighbours", {"0", "7"}}}));
}

TEST(FieldDifferences, EnvelopesFlattened) {
  ExperimentFacts facts = test::facts_of(4, 1);
  facts.envelope_a =
      R"({"request_id":"x","created":"2026","model_artifact_sha256":{"combined":"aa",)"
      R"("files":[{"name":"m","sha256":"aa"}]},"prompt_token_ids":[1,2],"runtime":{"cpu_isa":"avx2",)"
      R"("gpu":null,"knobs":{"threads":1}},"timing_ns":[1,2]})";
  facts.envelope_b =
      R"({"request_id":"y","created":"2027","model_artifact_sha256":{"combined":"bb",)"
      R"("files":[{"name":"m","sha256":"bb"}]},"prompt_token_ids":[1,2],"runtime":{"cpu_isa":"avx512",)"
      R"("gpu":null,"knobs":{"threads":2}},"timing_ns":[3,4],"model_revision":"r2"})";
  EXPECT_EQ(differences(facts), (Fields{{"model_artifact_sha256.combined", {"aa", "bb"}},
                                        {"model_artifact_sha256.files.0.sha256", {"aa", "bb"}},
                                        {"model_revision", {"(absent)", "r2"}},
                                        {"runtime.cpu_isa", {"avx2", "avx512"}}}));
}

TEST(FieldDifferences, SamplingIsNotTwice) {
  ExperimentFacts facts = test::facts_of(4, 1);
  facts.config_b.sampling.seed = 3;
  facts.envelope_a = R"({"sampling":{"seed":0,"max_tokens":8}})";
  facts.envelope_b = R"({"sampling":{"seed":3,"max_tokens":9}})";
  EXPECT_EQ(differences(facts),
            (Fields{{"knob.seed", {"0", "3"}}, {"sampling.max_tokens", {"8", "9"}}}));
}

TEST(FieldDifferences, AnEnvelopeThatIsMissingOrBrokenDiffersInNothing) {
  ExperimentFacts facts = test::facts_of(4, 1);
  facts.envelope_a = R"({"model_revision":"r1"})";
  EXPECT_TRUE(differences(facts).empty());
  facts.envelope_b = "{not json";
  EXPECT_TRUE(differences(facts).empty());
  facts.envelope_b = "[1]";
  EXPECT_TRUE(differences(facts).empty());
}

}  // namespace
}  // namespace driftscope
