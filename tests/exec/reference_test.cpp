// SPDX-License-Identifier: Apache-2.0
// The f64 witness: operations by hand, whole models against independent f64 logits.
#include "engine/backend/reference/reference_backend.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numbers>

#include "engine/backend/reference/reference_operations.h"
#include "tests/exec/npy.h"
#include "tests/exec/recording.h"
#include "tests/exec/tiny_checkpoint.h"

namespace driftscope::test {
namespace {

namespace fs = std::filesystem;
const fs::path kData = DRIFTSCOPE_SHARED_DATA;

TensorView view(const std::vector<float>& values, std::vector<std::int64_t> shape) {
  return {.data = values.data(), .dtype = Dtype::f32, .shape = std::move(shape), .name = "test"};
}

TEST(ReferenceOperations, LinearAddsTheBiasToEachRowsProducts) {
  // More terms than the partial sums, so that both loops run: row j of the weight is all j + 1.
  constexpr std::int64_t kInputs = 19;
  std::vector<float> weight;
  for (int j = 0; j < 3; ++j) weight.insert(weight.end(), kInputs, static_cast<float>(j + 1));
  const std::vector<float> bias{0.5F, -0.25F, 0.0F};
  std::vector<double> x(2 * kInputs);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i);
  std::array<double, 6> y{};
  ThreadPool pool(2);
  reference::linear(view(weight, {3, kInputs}), view(bias, {3}), x.data(), 2, y.data(), pool);
  const double first = 171.0;   // 0 + 1 + … + 18
  const double second = 532.0;  // 19 + … + 37
  EXPECT_EQ(y, (std::array{first + 0.5, 2 * first - 0.25, 3 * first, second + 0.5,
                           2 * second - 0.25, 3 * second}));
}

TEST(ReferenceOperations, NormDividesByTheRootMeanSquare) {
  const std::vector<float> weight{1.0F, 2.0F};
  const std::array x{1.0, 7.0, 0.0, 0.0};
  std::array<double, 4> y{};
  reference::rmsnorm(x.data(), view(weight, {2}), 0.0625, 1, y.data());
  const double scale = 1.0 / std::sqrt(25.0625);
  EXPECT_DOUBLE_EQ(y[0], scale);
  EXPECT_DOUBLE_EQ(y[1], 14.0 * scale);
  reference::rmsnorm(x.data() + 2, view(weight, {2}), 0.0625, 1, y.data());
  EXPECT_EQ(y[0], 0.0);
}

TEST(ReferenceOperations, RotationTurnsEachPairByItsAngle) {
  std::vector<double> x{1.0, 0.0, 0.0, 2.0};  // pairs (0, 2) and (1, 3)
  const std::array<std::int64_t, 1> positions{3};
  // 90 and 180 degrees.
  const reference::Rotation turn{
      .inverse_frequencies = {std::numbers::pi / 6.0, std::numbers::pi / 3.0}};
  reference::rotate(x.data(), positions, 1, 4, turn);
  EXPECT_NEAR(x[0], 0.0, 1e-15);
  EXPECT_NEAR(x[2], 1.0, 1e-15);
  EXPECT_NEAR(x[1], 0.0, 1e-15);
  EXPECT_NEAR(x[3], -2.0, 1e-15);
}

TEST(ReferenceOperations, AttentionWeighsByTheSoftmaxOfTheScores) {
  // Two keys, one value column each; scores 0 and ln 3 give weights 1/4 and 3/4.
  const std::array q{1.0};
  const std::array k{0.0, 2.0 * std::numbers::ln2};
  const std::array v{8.0, 4.0};
  std::array<double, 1> y{};
  const reference::Attention shape{
      .heads = 1, .kv_heads = 1, .head_dim = 1, .scale = std::log(3.0) / (2.0 * std::numbers::ln2)};
  reference::attend(shape, q.data(), k.data(), v.data(), 0, 2, y.data());
  EXPECT_NEAR(y[0], 5.0, 1e-14);
  reference::attend(shape, q.data(), k.data(), v.data(), 1, 2, y.data());
  EXPECT_EQ(y[0], 4.0);
}

TEST(ReferenceOperations, SwigluIsGateTimesItsSigmoidTimesUp) {
  const std::array gate{0.0, std::log(3.0), -std::log(3.0)};
  const std::array up{5.0, 4.0, 4.0};
  std::array<double, 3> y{};
  reference::gated(Activation::silu, gate.data(), up.data(), 3, y.data());
  EXPECT_EQ(y[0], 0.0);
  EXPECT_NEAR(y[1], std::log(3.0) * 0.75 * 4.0, 1e-14);
  EXPECT_NEAR(y[2], -std::log(3.0) * 0.25 * 4.0, 1e-14);
}

// Rows of logits after each token of `prompt`, `chunk` tokens a call.
std::vector<std::vector<float>> rows_of(const std::shared_ptr<const ModelCheckpoint>& model,
                                        const std::vector<TokenId>& prompt, std::size_t chunk,
                                        int threads) {
  auto backend = open_reference(model, std::make_shared<ThreadPool>(threads));
  if (!backend) throw std::runtime_error(backend.error().message);
  auto cache = (*backend)->create_cache(static_cast<std::int64_t>(prompt.size()));
  std::vector<std::vector<float>> rows;
  for (std::size_t i = 0; i < prompt.size(); i += chunk) {
    const auto tokens = std::span(prompt).subspan(i, std::min(chunk, prompt.size() - i));
    const std::array sequences{
        BatchSequence{.cache = cache->get(),
                      .tokens = tokens,
                      .output_rows = static_cast<std::int64_t>(tokens.size())}};
    const auto done = (*backend)->forward({.phase = Phase::score, .sequences = sequences}, {});
    EXPECT_TRUE(done);
    const auto logits = (*backend)->logits(0, (*backend)->output_rows());
    const auto width = static_cast<std::size_t>(model->description().vocabulary);
    for (std::size_t row = 0; row < tokens.size(); ++row) {
      const auto values = logits->subspan(row * width, width);
      rows.emplace_back(values.begin(), values.end());
    }
  }
  return rows;
}

TEST(Reference, BitsDependOnNeitherThreadsNorChunks) {
  for (const char* type : {"llama", "qwen2", "qwen3"}) {
    const auto model = tiny_checkpoint({.type = type, .sliding_window = 0});
    const auto prompt = some_ids(21, 160, 5);
    const auto whole = rows_of(model, prompt, prompt.size(), 1);
    for (const std::size_t chunk : {1U, 4U, 21U}) {
      const auto pieces = rows_of(model, prompt, chunk, 2);
      ASSERT_EQ(pieces.size(), whole.size());
      for (std::size_t i = 0; i < whole.size(); ++i) {
        EXPECT_TRUE(same_bits(pieces[i], whole[i])) << type << " chunk " << chunk << " row " << i;
      }
    }
  }
}

TEST(Reference, AStoppedCallLeavesTheCacheAsItWas) {
  const auto model = tiny_checkpoint({});
  auto backend = open_reference(model, std::make_shared<ThreadPool>(1));
  ASSERT_TRUE(backend);
  auto cache = (*backend)->create_cache(8);
  const auto prompt = some_ids(4, 160, 5);
  const std::array sequences{
      BatchSequence{.cache = cache->get(), .tokens = prompt, .output_rows = 1}};
  std::stop_source stop;
  stop.request_stop();
  const auto done = (*backend)->forward({.sequences = sequences}, stop.get_token());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, ErrorKind::interrupted);
  EXPECT_EQ((*cache)->length(), 0);
  EXPECT_TRUE((*backend)->forward({.sequences = sequences}, {}));
  EXPECT_EQ((*cache)->length(), 4);
}

// The lane is fed A's tokens, whatever it would choose itself, and ends with A.
TEST(Reference, LaneFollowsATokensAndEndsWithIt) {
  LaneInput input{.model = tiny_checkpoint({}), .prompt = some_ids(6, 160, 3)};
  input.config.activation_dtype = Dtype::bf16;
  input.config.sampling.temperature = 1.5;  // A leaves the greedy path
  input.config.sampling.ignore_eos = true;
  RecordingSink sink;
  const auto done = run_lockstep({.a = input,
                                  .b = input,
                                  .steps = 9,
                                  .control = false,
                                  .reference = true,
                                  .taps = TapLevel::all,
                                  .decode_text = {}},
                                 sink, {}, {});
  ASSERT_TRUE(done) << done.error().message;
  const auto a = sink.lane(Lane::a);
  const auto reference = sink.lane(Lane::reference);
  ASSERT_EQ(reference.size(), 9U);
  EXPECT_EQ(emitted_of(reference), emitted_of(a));
  // The same rows as scoring prompt and A's tokens in f64.
  std::vector<TokenId> sequence = input.prompt;
  for (const TokenId token : emitted_of(a)) sequence.push_back(token);
  sequence.pop_back();
  const auto rows = rows_of(input.model, sequence, sequence.size(), 1);
  const auto specs = tap_specs(input.model->description(), TapLevel::all);
  for (std::size_t i = 0; i < reference.size(); ++i) {
    EXPECT_TRUE(same_bits(reference[i].logits, rows[input.prompt.size() - 1 + i])) << i;
    ASSERT_EQ(reference[i].taps.size(), specs.size());
    for (std::size_t t = 0; t < specs.size(); ++t) {
      // bf16 has 8 bits; what A computed lies within some of its roundings of exact.
      double scale = 0.0;
      for (const float value : reference[i].taps[t].values) {
        ASSERT_FALSE(std::isnan(value)) << specs[t].operation;
        scale = std::max(scale, std::abs(static_cast<double>(value)));
      }
      for (std::size_t k = 0; k < reference[i].taps[t].values.size(); ++k) {
        EXPECT_NEAR(a[i].taps[t].values[k], reference[i].taps[t].values[k], 0.1 * scale)
            << specs[t].operation << " layer " << specs[t].layer;
      }
    }
  }
}

// B's checkpoint in f64, fed A's tokens too: what of a drift the weights make.
TEST(Reference, OfBFollowsATokensOverTheWeightsOfB) {
  LaneInput a{.model = tiny_checkpoint({}), .prompt = some_ids(6, 160, 3)};
  LaneInput b{.model = tiny_checkpoint({.seed = 2}), .prompt = a.prompt};
  for (LaneInput* side : {&a, &b}) side->config.sampling.ignore_eos = true;
  RecordingSink sink;
  const auto done = run_lockstep({.a = a,
                                  .b = b,
                                  .steps = 5,
                                  .control = false,
                                  .reference = true,
                                  .reference_b = true,
                                  .decode_text = {}},
                                 sink, {}, {});
  ASSERT_TRUE(done) << done.error().message;
  const auto reference = sink.lane(Lane::reference_b);
  ASSERT_EQ(reference.size(), 5U);
  EXPECT_EQ(emitted_of(reference), emitted_of(sink.lane(Lane::a)));
  std::vector<TokenId> sequence = a.prompt;
  for (const TokenId token : emitted_of(sink.lane(Lane::a))) sequence.push_back(token);
  sequence.pop_back();
  const auto rows = rows_of(b.model, sequence, sequence.size(), 1);
  for (std::size_t i = 0; i < reference.size(); ++i) {
    EXPECT_TRUE(same_bits(reference[i].logits, rows[a.prompt.size() - 1 + i])) << i;
  }
}

// f64 on both sides: what is left is the one rounding to f32, and f64's own, far below it.
void expect_exact(const std::vector<std::vector<float>>& rows, const NumpyArray& exact) {
  double scale = 0.0;
  for (const double value : exact.values) scale = std::max(scale, std::abs(value));
  ASSERT_EQ(static_cast<std::int64_t>(rows.size()), exact.shape.at(0));
  double largest = 0.0;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const double* values = exact.row(static_cast<std::int64_t>(row));
    for (std::size_t i = 0; i < rows[row].size(); ++i) {
      const double difference = std::abs(static_cast<double>(rows[row][i]) - values[i]);
      largest = std::max(largest, difference);
      ASSERT_LE(difference, 0x1.0p-24 * std::abs(values[i]) + 1e-11 * scale)
          << "row " << row << " entry " << i;
    }
  }
  fmt::print("max difference {:.3e} of logits up to {:.3g}\n", largest, scale);
}

TEST(Reference, AgreesWithIndependentF64LogitsOfStories) {
  if (!fs::exists(kData)) GTEST_SKIP() << "no shared test data at " << kData;
  const auto model = ModelCheckpoint::open(kData / "models/stories260K/hf");
  ASSERT_TRUE(model);
  for (const char* name : {"story_lily", "random_ids"}) {
    SCOPED_TRACE(name);
    std::vector<TokenId> prompt;
    for (const double id :
         read_npy(kData / "oracle/stories260K" / fmt::format("{}.tokens.npy", name)).values) {
      prompt.push_back(TokenId{static_cast<std::int32_t>(id)});
    }
    expect_exact(rows_of(*model, prompt, prompt.size(), 2),
                 read_npy(kData / "oracle/stories260K" / fmt::format("{}.logits_f64.npy", name)));
  }
}

TEST(Reference, AgreesWithIndependentF64LogitsOfOtherArchitectures) {
  if (!fs::exists(kData)) GTEST_SKIP() << "no shared test data at " << kData;
  for (const char* name :
       {"qwen2", "qwen3", "llama3_rope", "mistral_tied", "mixtral", "qwen2moe", "qwen3moe"}) {
    SCOPED_TRACE(name);
    const fs::path source = kData / "oracle/architectures" / name;
    const auto model = ModelCheckpoint::open(source);
    ASSERT_TRUE(model) << model.error().message;
    std::ifstream file(source / "prompt0.ids.json");
    std::vector<TokenId> prompt;
    for (const auto& id : nlohmann::json::parse(file)) {
      prompt.push_back(TokenId{id.get<std::int32_t>()});
    }
    expect_exact(rows_of(*model, prompt, prompt.size(), 2), read_npy(source / "logits_f64_0.npy"));
  }
}

}  // namespace
}  // namespace driftscope::test
