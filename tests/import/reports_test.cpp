// SPDX-License-Identifier: Apache-2.0
// Inputs of public bug reports, when they are there: the figures that the reports printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/import/response_file.h"
#include "analysis/responses/response_compare.h"
#include "analysis/responses/response_lint.h"

namespace driftscope {
namespace {

namespace fs = std::filesystem;

const fs::path kReports = fs::path(DRIFTSCOPE_SHARED_DATA) / "reports";

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Response report(const std::string& name) {
  auto responses = read_responses(text_of(kReports / name), name);
  EXPECT_TRUE(responses) << (responses ? "" : responses.error().message);
  if (!responses || responses->empty()) return {};
  grade_response((*responses)[0]);
  return (*responses)[0];
}

const Finding* find(const std::vector<Finding>& findings, std::string_view id) {
  const auto found =
      std::find_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.id == id; });
  return found == findings.end() ? nullptr : &*found;
}

class Reports : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(kReports)) GTEST_SKIP() << "the reports are not there";
  }
};

TEST_F(Reports, PrefillLengthChangesThePrompt) {  // maxtext 2179
  const Response a = report("AI-Hypercomputer-maxtext-2179__a.json");
  const Response b = report("AI-Hypercomputer-maxtext-2179__b.json");
  // The layout has no echo mark; the tokens of the prompt are all that there is.
  const auto c = compare_responses(a, 0, b, 0);
  const LogprobDrift& drift = c.drift.count > 0 ? c.drift : c.prompt_drift;
  ASSERT_TRUE(drift.first_step);
  EXPECT_EQ(*drift.first_step, 2);
  ASSERT_GE(drift.per_step.size(), 6U);
  EXPECT_FALSE(drift.per_step[0]);
  const double expected[] = {0.0, 0.2613, -0.00479, 0.00761, 0.02391};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(*drift.per_step[i + 1], expected[i], 1e-9) << i;
  // Token 2 has a logprob of -20: nobody generates it, so the drift from there on is the prefill's.
  const Finding* prefill = find(c.findings, "prefill_drift");
  ASSERT_NE(prefill, nullptr);
  const auto evidence = nlohmann::json::parse(prefill->evidence);
  EXPECT_EQ(evidence["first_position"], 2);
  EXPECT_EQ(evidence["last_given"], 2);
}

TEST_F(Reports, CacheFaultIsNoNearTie) {  // mistral-inference 88
  const Response a = report("mistralai-mistral-inference-88__a_cache_none.json");
  const Response b = report("mistralai-mistral-inference-88__b_rotating_cache.json");
  const auto c = compare_responses(a, 0, b, 0);
  ASSERT_EQ(c.prompt_drift.per_step.size(), 5U);
  EXPECT_FALSE(c.prompt_drift.per_step[0]);
  const double expected[] = {-1.83, -6.39, -0.97, -1.58};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(*c.prompt_drift.per_step[i + 1], expected[i], 1e-9) << i;
  }
  EXPECT_EQ(c.tier, Tier::different);
  EXPECT_TRUE(find(c.findings, "prompt_drift_bug_scale"));
}

TEST_F(Reports, MassOfTheListIsImplausible) {  // community 1357590
  const Response r = report("community-openai-1357590__response.json");
  const auto findings = lint_response(r);
  EXPECT_TRUE(find(findings, "listed_mass_implausible"));
  const auto& steps = r.choices[0].content.steps;
  const auto eight = std::find_if(steps.begin(), steps.end(),
                                  [](const ResponseStep& step) { return step.token.text == "8"; });
  ASSERT_NE(eight, steps.end());
  EXPECT_EQ(rank_of_chosen(*eight)->first, 3);
}

TEST_F(Reports, ThreeWayTieIsAnInterval) {  // llama.cpp 15189
  const Response r = report("ggml-org-llama.cpp-15189__vllm_stream.sse");
  ASSERT_EQ(r.choices[0].content.steps.size(), 2U);
  const auto rank = rank_of_chosen(r.choices[0].content.steps[1]);
  EXPECT_EQ(rank->first, 3);
  EXPECT_EQ(rank->last, 5);
  EXPECT_TRUE(find(lint_response(r), "logits_on_grid"));
}

TEST_F(Reports, TemperatureProcessedSide) {  // marin 1879
  const Response a = report("marin-community-marin-1879__a.json");
  const Response b = report("marin-community-marin-1879__b.json");
  const auto c = compare_responses(a, 0, b, 0);
  const auto expected =
      nlohmann::json::parse(text_of(kReports / "marin-community-marin-1879__expected.json"));
  EXPECT_EQ(c.drift.count, expected["common_logprobs"].get<std::int64_t>());
  EXPECT_NEAR(c.drift.mean_abs, expected["mean_abs_diff"].get<double>(), 1e-6);
  EXPECT_NEAR(c.drift.max_abs, expected["max_abs_diff"].get<double>(), 1e-6);
  EXPECT_EQ(c.drift.argmax_step, 0);
  const Finding* bias = find(c.findings, "one_sided_drift");
  ASSERT_NE(bias, nullptr);
  const auto evidence = nlohmann::json::parse(bias->evidence);
  EXPECT_NEAR(evidence["implied_temperature"].get<double>(), 0.69, 0.02);
}

TEST_F(Reports, EmojiBytesAreLost) {  // ollama 13497
  const Response r = report("ollama-ollama-13497__response.json");
  EXPECT_TRUE(find(lint_response(r), "lossy_token_bytes"));
  EXPECT_EQ(r.choices[0].content.steps.size(), 4U);
  EXPECT_EQ(r.usage.completion_tokens, 5);
  EXPECT_FALSE(find(lint_response(r), "tokens_missing"));
}

TEST_F(Reports, CollidingKeysAreNoDrift) {  // vllm 44319
  const Response a = report("vllm-project-vllm-44319__a_v0.9.0.json");
  const Response b = report("vllm-project-vllm-44319__b_collided.json");
  EXPECT_TRUE(find(lint_response(b), "token_text_collision"));
  EXPECT_FALSE(find(lint_response(a), "token_text_collision"));
  const auto c = compare_responses(a, 0, b, 0);
  EXPECT_EQ(c.tier, Tier::tolerance);
  EXPECT_EQ(c.drift.max_abs, 0.0);
}

}  // namespace
}  // namespace driftscope
