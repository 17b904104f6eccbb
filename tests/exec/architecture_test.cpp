// SPDX-License-Identifier: Apache-2.0
// Every architecture against independent float64 logits, in both spellings of its configuration,
// and what breaks when a detail of it is broken.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "engine/backend/reference/reference_backend.h"
#include "tests/exec/npy.h"
#include "tests/exec/recording.h"
#include "tests/exec/tiny_checkpoint.h"

namespace driftscope::test {
namespace {

namespace fs = std::filesystem;
const fs::path kOracle = fs::path(DRIFTSCOPE_SHARED_DATA) / "oracle" / "architectures";

#define NEED_SHARED_DATA() \
  if (!fs::exists(kOracle)) GTEST_SKIP() << "no shared test data at " << kOracle

// The witness works in f64 and returns f32: half a unit in the last place of logits up to 16 is
// 4.8e-7, and a thousandth of it is far more than the f64 arithmetic leaves.
constexpr double kWitnessTolerance = 4.8e-7;

nlohmann::json read_json(const fs::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

std::vector<TokenId> tokens_of(const nlohmann::json& json) {
  std::vector<TokenId> tokens;
  for (const auto& id : json) tokens.push_back(TokenId{id.get<std::int32_t>()});
  return tokens;
}

std::vector<TokenId> prompt_of(const std::string& model, int prompt) {
  return tokens_of(read_json(kOracle / model / fmt::format("prompt{}.ids.json", prompt)));
}

// The folder's weights under a configuration.
std::shared_ptr<const ModelCheckpoint> open(const std::string& model,
                                            const nlohmann::json& config) {
  auto folder = std::make_shared<TemporaryFolder>();
  std::ofstream(folder->path() / "config.json") << config;
  fs::copy_file(kOracle / model / "model.safetensors", folder->path() / "model.safetensors");
  auto opened = ModelCheckpoint::open(folder->path());
  if (!opened) throw std::runtime_error(opened.error().message);
  auto checkpoint = *opened;
  const ModelCheckpoint* raw = checkpoint.get();
  return {raw, [folder, checkpoint](const ModelCheckpoint*) {}};
}

std::shared_ptr<const ModelCheckpoint> open(const std::string& model,
                                            const std::string& config_file) {
  return open(model, read_json(kOracle / model / config_file));
}

double largest_difference(std::span<const float> ours, const double* exact) {
  double largest = 0.0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    largest = std::max(largest, std::abs(double{ours[i]} - exact[i]));
  }
  return largest;
}

class Witness {
 public:
  explicit Witness(const std::shared_ptr<const ModelCheckpoint>& model)
      : m_backend(std::move(open_reference(model, std::make_shared<ThreadPool>(2))).value()) {}

  // Logits after each token of the prompt, the whole of it in one call: [tokens, vocabulary].
  std::vector<float> score(const std::vector<TokenId>& prompt) {
    auto cache = m_backend->create_cache(0).value();
    return run(*cache, prompt, static_cast<std::int64_t>(prompt.size()));
  }
  std::vector<TokenId> greedy(const std::vector<TokenId>& prompt, std::size_t count) {
    auto cache = m_backend->create_cache(0).value();
    std::vector<TokenId> tokens;
    std::vector<float> row = run(*cache, prompt, 1);
    while (tokens.size() < count) {
      const auto best = std::max_element(row.begin(), row.end()) - row.begin();
      tokens.push_back(TokenId{static_cast<std::int32_t>(best)});
      if (tokens.size() < count) row = run(*cache, {tokens.back()}, 1);
    }
    return tokens;
  }

 private:
  std::vector<float> run(KvCache& cache, const std::vector<TokenId>& tokens,
                         std::int64_t output_rows) {
    const std::array sequences{
        BatchSequence{.cache = &cache, .tokens = tokens, .output_rows = output_rows}};
    const auto done = m_backend->forward({.phase = Phase::score, .sequences = sequences}, {});
    if (!done) throw std::runtime_error(done.error().message);
    const auto rows = m_backend->logits(0, output_rows).value();
    return {rows.begin(), rows.end()};
  }
  std::unique_ptr<Backend> m_backend;
};

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
  NEED_SHARED_DATA();
  const auto& [name, config_file] = GetParam();
  const auto model = open(name, std::string(config_file));
  const auto greedy = read_json(kOracle / name / "greedy.json");
  for (const int prompt : {0, 1}) {
    const auto exact = read_npy(kOracle / name / fmt::format("logits_f64_{}.npy", prompt));
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
  NEED_SHARED_DATA();
  const auto model = open("gpt_oss", std::string("config_truncate_false.json"));
  for (const int prompt : {0, 1}) {
    const auto exact =
        read_npy(kOracle / "gpt_oss" / fmt::format("logits_f64_truncate_false_{}.npy", prompt));
    EXPECT_LE(witness_difference(model, prompt_of("gpt_oss", prompt), exact), kWitnessTolerance);
  }
}

class ArchitectureHost : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(ArchitectureHost, LogitsAreWithinTheToleranceAndGreedyTokensAreEqual) {
  NEED_SHARED_DATA();
  const auto& [name, config_file] = GetParam();
  const auto manifest = read_json(kOracle / "MANIFEST.json");
  const auto greedy = read_json(kOracle / name / "greedy.json");
  LaneInput input{.model = open(name, std::string(config_file)), .prompt = {}};
  for (const int prompt : {0, 1}) {
    input.prompt = prompt_of(name, prompt);
    const auto exact = read_npy(kOracle / name / fmt::format("logits_f64_{}.npy", prompt));
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
