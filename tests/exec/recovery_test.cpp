// SPDX-License-Identifier: Apache-2.0
// Self-test 3: a planted change of known size is found where it was planted, with that size.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/exec/recording.h"
#include "tests/exec/tiny_checkpoint.h"

namespace driftscope::test {
namespace {

// The next bf16 away from zero.
float one_ulp_up(float value) {
  return bf16_to_float(static_cast<std::uint16_t>(bf16_from_float(value) + 1U));
}

struct Planted {
  const char* tensor;
  int layer;              // where it shows first
  const char* operation;  // and in what
  std::size_t output;     // which output of that operation
};
void PrintTo(const Planted& planted, std::ostream* out) { *out << planted.tensor; }

class PlantedUlp : public testing::TestWithParam<Planted> {};

TEST_P(PlantedUlp, ShowsFirstWhereItWasPlanted) {
  const TinyModel tiny{};
  auto tensors = random_tensors(tiny);
  LaneInput original{.model = open_tensors(tiny, tensors), .prompt = some_ids(9, 160, 4)};
  for (NamedTensor& tensor : tensors) {
    if (tensor.name != GetParam().tensor) continue;
    const std::size_t columns = static_cast<std::size_t>(tensor.shape.at(1));
    float& weight = tensor.values[GetParam().output * columns + 5];
    weight = one_ulp_up(bf16_to_float(bf16_from_float(weight)));
  }
  LaneInput changed = original;
  changed.model = open_tensors(tiny, tensors);

  RecordingSink sink;
  ASSERT_TRUE(run_lockstep(
      {.a = original, .b = changed, .steps = 1, .control = false, .taps = TapLevel::all}, sink, {},
      {}));
  const auto a = sink.lane(Lane::a)[0];
  const auto b = sink.lane(Lane::b_forced)[0];
  for (std::size_t i = 0; i < a.taps.size(); ++i) {
    if (same_bits(a.taps[i].values, b.taps[i].values)) continue;
    EXPECT_EQ(a.taps[i].layer, GetParam().layer);
    EXPECT_EQ(a.taps[i].operation, GetParam().operation);
    for (std::size_t j = 0; j < a.taps[i].values.size(); ++j) {
      const bool differs = a.taps[i].values[j] != b.taps[i].values[j];
      EXPECT_EQ(differs, j == GetParam().output) << "output " << j;
    }
    return;
  }
  FAIL() << "the change was not seen in any operation";
}

// q, k and v reach their own operation; o and down show in their projections of the last position.
INSTANTIATE_TEST_SUITE_P(
    Tensors, PlantedUlp,
    testing::Values(Planted{"model.layers.1.self_attn.q_proj.weight", 1, "Qcur", 7},
                    Planted{"model.layers.0.self_attn.k_proj.weight", 0, "Kcur", 3},
                    Planted{"model.layers.2.self_attn.v_proj.weight", 2, "Vcur", 30},
                    Planted{"model.layers.1.self_attn.o_proj.weight", 1, "attn_out", 63},
                    Planted{"model.layers.2.mlp.gate_proj.weight", 2, "ffn_gate", 95},
                    Planted{"model.layers.0.mlp.up_proj.weight", 0, "ffn_up", 0},
                    Planted{"model.layers.1.mlp.down_proj.weight", 1, "ffn_out", 12}));

// With the LM head changed, one logit moves, by the size that the change has.
TEST(PlantedUlp, InTheLmHeadMovesOneLogitByItsExactSize) {
  const TinyModel tiny{};
  auto tensors = random_tensors(tiny);
  LaneInput original{.model = open_tensors(tiny, tensors), .prompt = some_ids(9, 160, 4)};
  constexpr std::size_t kToken = 41;
  constexpr std::size_t kColumn = 17;
  float before = 0.0F;
  float after = 0.0F;
  for (NamedTensor& tensor : tensors) {
    if (tensor.name != "lm_head.weight") continue;
    float& weight = tensor.values[kToken * 64 + kColumn];
    before = bf16_to_float(bf16_from_float(weight));
    after = weight = one_ulp_up(before);
  }
  LaneInput changed = original;
  changed.model = open_tensors(tiny, tensors);
  // Sums in f64, so that the difference of two logits is the change itself, rounded once each.
  original.config.matmul_plan.accumulator = Accumulator::f64;
  changed.config.matmul_plan.accumulator = Accumulator::f64;
  const auto a = generate(original, 1, TapLevel::layers)[0];
  const auto b = generate(changed, 1, TapLevel::layers)[0];
  for (std::size_t i = 0; i < a.logits.size(); ++i) {
    EXPECT_EQ(a.logits[i] != b.logits[i], i == kToken) << "token " << i;
  }
  const double input = a.taps.back().values[kColumn];
  const double expected = (double{after} - double{before}) * input;
  const double rounding = 2 * 0x1.0p-24 * std::abs(a.logits[kToken]);
  EXPECT_NEAR(double{b.logits[kToken]} - double{a.logits[kToken]}, expected, rounding);
  EXPECT_GT(std::abs(expected), 4 * rounding) << "too small to be measured; choose another column";
}

}  // namespace
}  // namespace driftscope::test
