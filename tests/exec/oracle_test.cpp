// SPDX-License-Identifier: Apache-2.0
// Logits and operations against independent float64 implementations.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/exec/npy.h"
#include "tests/exec/recording.h"
#include "tests/exec/tiny_checkpoint.h"

namespace driftscope::test {
namespace {

namespace fs = std::filesystem;
const fs::path kData = DRIFTSCOPE_SHARED_DATA;

#define NEED_SHARED_DATA() \
  if (!fs::exists(kData)) GTEST_SKIP() << "no shared test data at " << kData

nlohmann::json read_json(const fs::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

std::shared_ptr<const ModelCheckpoint> open(const fs::path& path) {
  auto opened = ModelCheckpoint::open(path);
  if (!opened) throw std::runtime_error(opened.error().message);
  return *opened;
}

std::vector<TokenId> tokens_of(const nlohmann::json& json) {
  std::vector<TokenId> tokens;
  for (const auto& id : json) tokens.push_back(TokenId{id.get<std::int32_t>()});
  return tokens;
}

std::vector<TokenId> tokens_of(const NumpyArray& array) {
  std::vector<TokenId> tokens;
  for (const double id : array.values) tokens.push_back(TokenId{static_cast<std::int32_t>(id)});
  return tokens;
}

double largest_difference(const std::vector<float>& ours, const double* exact) {
  double largest = 0.0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(ours[i]) - exact[i]));
  }
  return largest;
}

// Roundings on the longest chain of a sum of `terms` under the default plan: 32 lanes, then a
// butterfly of 5, and one for what follows element by element (bias, weight, residual).
double chain(std::int64_t terms) { return static_cast<double>((terms + 31) / 32 + 5 + 1); }

// Roundings one after another from the embedding to the end of `layers` layers. Each adds at most
// 2^-24 relative to the largest value in flight, if nothing after it amplifies it. Softmax and P·V
// add key by key.
double roundings_to(const ModelDescription& model, std::int64_t layers, std::int64_t positions) {
  const double attention = 2 * chain(model.hidden) + chain(model.head_dim) +
                           2 * static_cast<double>(positions) + chain(model.heads * model.head_dim);
  const double feed_forward = 2 * chain(model.hidden) + chain(model.intermediate);
  return static_cast<double>(layers) * (attention + feed_forward);
}

// Our q and k are in rotate-half order, pairs (i, i + d/2); the traces hold pairs (2i, 2i + 1).
std::vector<double> to_rotate_half(const double* interleaved, std::int64_t width,
                                   std::int64_t head_dim) {
  std::vector<double> result(static_cast<std::size_t>(width));
  for (std::int64_t i = 0; i < width; ++i) {
    const std::int64_t head = i / head_dim;
    const std::int64_t within = i % head_dim;
    const std::int64_t half = head_dim / 2;
    const std::int64_t source = within < half ? 2 * within : 2 * (within - half) + 1;
    result[static_cast<std::size_t>(i)] = interleaved[head * head_dim + source];
  }
  return result;
}

bool is_rotated(const std::string& operation) {
  return operation.starts_with("Q") || operation.starts_with("K");
}

struct OperationDifference {
  double largest = 0.0;
  double share_of_bound = 0.0;
  double scale = 0.0;  // largest absolute value of the exact tensor
};

class StoriesTrace : public testing::TestWithParam<std::tuple<const char*, Scoring>> {};

TEST_P(StoriesTrace, EveryOperationIsWithinTheBound) {
  NEED_SHARED_DATA();
  const auto [prompt, scoring] = GetParam();
  const auto model = open(kData / "models/stories260K/hf");
  const fs::path oracle = kData / "oracle/stories260K";
  const auto trace = read_npz(oracle / fmt::format("{}.trace_f64.npz", prompt));
  LaneInput input{.model = model,
                  .prompt = tokens_of(read_npy(oracle / fmt::format("{}.tokens.npy", prompt)))};
  input.config.scoring = scoring;
  const auto steps = score(input, TapLevel::all);
  ASSERT_EQ(steps.size(), input.prompt.size());
  const auto specs = tap_specs(model->description(), TapLevel::all);
  const auto positions = static_cast<std::int64_t>(steps.size());

  std::map<std::string, OperationDifference> table;
  for (const RecordedStep& step : steps) {
    ASSERT_EQ(step.taps.size(), specs.size());
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const RecordedTap& tap = step.taps[i];
      EXPECT_EQ(tap.operation, specs[i].operation);
      EXPECT_EQ(tap.layer, specs[i].layer);
      ASSERT_EQ(static_cast<std::int64_t>(tap.values.size()), specs[i].width);
      const bool in_layer = tap.layer >= 0 && tap.layer < model->description().layers;
      const NumpyArray& exact =
          trace.at(in_layer ? fmt::format("{}-{}", tap.operation, tap.layer) : tap.operation);
      ASSERT_EQ(exact.row_size(), specs[i].width);
      const double* row = exact.row(step.step);
      std::vector<double> reordered;
      if (is_rotated(tap.operation)) {
        reordered = to_rotate_half(row, specs[i].width, model->description().head_dim);
        row = reordered.data();
      }
      const double scale =
          *std::max_element(exact.values.begin(), exact.values.end(),
                            [](double a, double b) { return std::abs(a) < std::abs(b); });
      const double difference = largest_difference(tap.values, row);
      const double bound = roundings_to(model->description(), tap.layer + 1, positions) *
                           0x1.0p-24 * std::abs(scale);
      EXPECT_LE(difference, bound)
          << tap.operation << " layer " << tap.layer << " position " << step.step;
      auto& entry = table[tap.operation];
      entry.largest = std::max(entry.largest, difference);
      entry.scale = std::max(entry.scale, std::abs(scale));
      if (bound > 0) entry.share_of_bound = std::max(entry.share_of_bound, difference / bound);
    }
  }
  for (const auto& [operation, entry] : table) {
    fmt::print("{:12} max difference {:.3e} of values up to {:.3g}, {:.2f}% of the bound\n",
               operation, entry.largest, entry.scale, 100 * entry.share_of_bound);
  }
}

INSTANTIATE_TEST_SUITE_P(Prompts, StoriesTrace,
                         testing::Combine(testing::Values("story_lily", "code_bytes"),
                                          testing::Values(Scoring::decode, Scoring::prefill)));

class StoriesLogits : public testing::TestWithParam<const char*> {};

TEST_P(StoriesLogits, AreWithinTheBoundAndGreedyTokensAreEqual) {
  NEED_SHARED_DATA();
  const std::string prompt = GetParam();
  const auto model = open(kData / "models/stories260K/hf");
  const fs::path oracle = kData / "oracle/stories260K";
  const auto exact = read_npy(oracle / (prompt + ".logits_f64.npy"));
  LaneInput input{.model = model, .prompt = tokens_of(read_npy(oracle / (prompt + ".tokens.npy")))};
  input.config.scoring = Scoring::prefill;
  const auto steps = score(input);
  ASSERT_EQ(steps.size(), 64U);
  double largest = 0.0;
  double scale = 0.0;
  for (const double value : exact.values) scale = std::max(scale, std::abs(value));
  for (const RecordedStep& step : steps) {
    largest = std::max(largest, largest_difference(step.logits, exact.row(step.step)));
  }
  const ModelDescription& description = model->description();
  const double roundings =
      roundings_to(description, description.layers, 64) + 2 * chain(description.hidden);
  fmt::print("{}: logits max difference {:.3e}, bound {:.3e}\n", prompt, largest,
             roundings * 0x1.0p-24 * scale);
  EXPECT_LE(largest, roundings * 0x1.0p-24 * scale);

  const auto manifest = read_json(oracle / "manifest.json");
  const auto wanted = tokens_of(manifest["prompts"][prompt]["greedy64_from_first8"]);
  ASSERT_EQ(wanted.size(), 64U);
  input.config.scoring = Scoring::decode;
  input.config.sampling.ignore_eos = true;
  input.prompt.resize(8);
  EXPECT_EQ(emitted_of(generate(input, 64)), wanted);
}

INSTANTIATE_TEST_SUITE_P(Prompts, StoriesLogits,
                         testing::Values("story_lily", "story_dragon", "prose_ood", "code_bytes",
                                         "random_ids"));

TEST(Stories, GreedyFromTheFirstTokenAgreesFor160Steps) {
  NEED_SHARED_DATA();
  const auto wanted = tokens_of(read_npy(kData / "oracle/stories260K/bos.greedy160.npy"));
  ASSERT_EQ(wanted.size(), 160U);
  LaneInput input{.model = open(kData / "models/stories260K/hf"), .prompt = ids({1})};
  input.config.sampling.ignore_eos = true;
  EXPECT_EQ(emitted_of(generate(input, 160)), wanted);
  input.config.attention = AttentionMode::eager;
  EXPECT_EQ(emitted_of(generate(input, 160)), wanted);
}

}  // namespace
}  // namespace driftscope::test
