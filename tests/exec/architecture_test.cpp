// SPDX-License-Identifier: Apache-2.0
// Every architecture against independent float64 logits, in both spellings of its configuration.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/exec/architecture_oracle.h"
#include "tests/exec/recording.h"

namespace driftscope::test {
namespace {

double witness_difference(const std::shared_ptr<const ModelCheckpoint>& model,
                          const std::vector<TokenId>& prompt, const NumpyArray& exact) {
  return largest_difference(Witness(model).score(prompt), exact.values.data());
}

constexpr const char* kModels[] = {
    "qwen2",  "qwen3",  "llama3_rope", "mistral_tied", "mixtral",    "qwen3moe", "qwen2moe",
    "gemma2", "gemma3", "phi3",        "gpt2",         "llama_yarn", "gpt_oss"};
constexpr const char* kSpellings[] = {"config.json", "config_rope_parameters.json"};

std::string spelled_name(const testing::TestParamInfo<std::tuple<const char*, const char*>>& info) {
  return std::string(std::get<0>(info.param)) +
         (std::string_view(std::get<1>(info.param)) == "config.json" ? "_older" : "_newer");
}

class ArchitectureWitness : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(ArchitectureWitness, GivesTheExactLogitsAndGreedyTokens) {
  NEED_ORACLE();
  const auto& [name, config_file] = GetParam();
  const auto model = open_oracle(name, config_file);
  const auto greedy = read_json(oracle_folder() / name / "greedy.json");
  for (const int prompt : {0, 1}) {
    const auto exact = read_npy(oracle_folder() / name / fmt::format("logits_f64_{}.npy", prompt));
    const double difference = witness_difference(model, prompt_of(name, prompt), exact);
    fmt::print("{} {} prompt {}: witness differs by at most {:.2e}\n", name, config_file, prompt,
               difference);
    EXPECT_LE(difference, kWitnessTolerance);
    const auto wanted = tokens_of(greedy[static_cast<std::size_t>(prompt)]["tokens"]);
    EXPECT_EQ(Witness(model).greedy(prompt_of(name, prompt), wanted.size()), wanted);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ArchitectureWitness,
                         testing::Combine(testing::ValuesIn(kModels),
                                          testing::ValuesIn(kSpellings)),
                         spelled_name);

TEST(ArchitectureWitnessOfGptOss, EdgesOfTheYarnBandAreNotRoundedWhereTheFileSaysSo) {
  NEED_ORACLE();
  const auto model = open_oracle("gpt_oss", "config_truncate_false.json");
  for (const int prompt : {0, 1}) {
    const auto exact = read_npy(oracle_folder() / "gpt_oss" /
                                fmt::format("logits_f64_truncate_false_{}.npy", prompt));
    EXPECT_LE(witness_difference(model, prompt_of("gpt_oss", prompt), exact), kWitnessTolerance);
  }
}

class ArchitectureHost : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(ArchitectureHost, LogitsAreWithinTheToleranceAndGreedyTokensAreEqual) {
  NEED_ORACLE();
  const auto& [name, config_file] = GetParam();
  const auto manifest = read_json(oracle_folder() / "MANIFEST.json");
  const auto greedy = read_json(oracle_folder() / name / "greedy.json");
  LaneInput input{.model = open_oracle(name, config_file), .prompt = {}};
  for (const int prompt : {0, 1}) {
    input.prompt = prompt_of(name, prompt);
    const auto exact = read_npy(oracle_folder() / name / fmt::format("logits_f64_{}.npy", prompt));
    const double tolerance = manifest["models"][name]["prompts"][static_cast<std::size_t>(prompt)]
                                     ["suggested_tolerance_float32"];
    for (const Scoring scoring : {Scoring::decode, Scoring::prefill}) {
      input.config.scoring = scoring;
      double largest = 0.0;
      for (const RecordedStep& step : score(input)) {
        largest = std::max(largest, largest_difference(step.logits, exact.row(step.step)));
      }
      fmt::print("{} prompt {}: logits max difference {:.3e}, tolerance {:.1e}\n", name, prompt,
                 largest, tolerance);
      EXPECT_LE(largest, tolerance);
    }
    input.config.scoring = Scoring::decode;
    input.config.sampling.ignore_eos = true;
    const auto wanted = tokens_of(greedy[static_cast<std::size_t>(prompt)]["tokens"]);
    EXPECT_EQ(emitted_of(generate(input, static_cast<std::int64_t>(wanted.size()))), wanted);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ArchitectureHost,
                         testing::Combine(testing::ValuesIn(kModels),
                                          testing::ValuesIn(kSpellings)),
                         spelled_name);

}  // namespace
}  // namespace driftscope::test
