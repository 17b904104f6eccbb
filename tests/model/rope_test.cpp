// SPDX-License-Identifier: Apache-2.0
// Inverse frequencies of the rotary embedding against long-double definitions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/model/description.h"
#include "tests/model/checkpoint_builder.h"

namespace driftscope {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

Result<ModelDescription> describe(const json& config) {
  return describe_model({.config = &config,
                         .name = "config.json",
                         .generation_config = nullptr,
                         .generation_name = ""});
}

ModelDescription rope_model(double theta, std::int64_t head_dim) {
  ModelDescription description;
  description.rope_theta = theta;
  description.head_dim = head_dim;
  return description;
}

long double plain(double theta, std::int64_t i, std::int64_t head_dim) {
  return powl(static_cast<long double>(theta),
              -2.0L * static_cast<long double>(i) / static_cast<long double>(head_dim));
}

// The exponent is rounded once (half a unit in the last place), which the power magnifies by
// |ln(theta) * exponent|; the power itself is good to one unit, a division to half a unit.
void expect_near_exact(double value, long double exact, double theta, std::int64_t i,
                       std::int64_t head_dim) {
  const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(head_dim);
  const double halves = std::log(theta) * exponent + 2.0 + 1.0;
  EXPECT_LE(std::fabs(static_cast<double>((value - exact) / exact)), halves * 0x1p-53) << i;
}

TEST(Rope, PlainFrequencies) {
  const ModelDescription d = rope_model(10000.0, 8);
  const std::vector<double> frequencies = d.inverse_frequencies();
  ASSERT_EQ(frequencies.size(), 4U);
  // 10000^0, 10000^(-1/4), 10000^(-1/2), 10000^(-3/4)
  EXPECT_EQ(frequencies[0], 1.0);
  expect_near_exact(frequencies[1], 0.1L, 10000.0, 1, 8);
  expect_near_exact(frequencies[2], 0.01L, 10000.0, 2, 8);
  expect_near_exact(frequencies[3], 0.001L, 10000.0, 3, 8);
}

TEST(Rope, LinearScalingDivides) {
  ModelDescription d = rope_model(1000000.0, 24);
  d.rope_scaling.kind = RopeScaling::Kind::linear;
  d.rope_scaling.factor = 4.0;
  const std::vector<double> frequencies = d.inverse_frequencies();
  ASSERT_EQ(frequencies.size(), 12U);
  for (std::int64_t i = 0; i < 12; ++i) {
    expect_near_exact(frequencies[static_cast<std::size_t>(i)], plain(1000000.0, i, 24) / 4.0L,
                      1000000.0, i, 24);
  }
}

TEST(Rope, Llama3ScalingHasThreeBands) {
  ModelDescription d = rope_model(500000.0, 24);
  d.rope_scaling = {.kind = RopeScaling::Kind::llama3,
                    .factor = 8.0,
                    .low_frequency_factor = 1.0,
                    .high_frequency_factor = 4.0,
                    .original_max_positions = 64};
  const std::vector<double> frequencies = d.inverse_frequencies();
  const long double pi = 3.14159265358979323846264338327950288L;
  int bands[3] = {0, 0, 0};
  for (std::int64_t i = 0; i < 12; ++i) {
    const long double frequency = plain(500000.0, i, 24);
    const long double wavelength = 2.0L * pi / frequency;
    long double expected = frequency;
    if (wavelength > 64.0L) {
      expected = frequency / 8.0L;
      ++bands[2];
    } else if (wavelength >= 16.0L) {
      const long double smooth = (64.0L / wavelength - 1.0L) / 3.0L;
      expected = (1.0L - smooth) * frequency / 8.0L + smooth * frequency;
      ++bands[1];
    } else {
      ++bands[0];
    }
    // Cancellation in `smooth` costs a few more bits than the plain power.
    EXPECT_LE(std::fabs(static_cast<double>((frequencies[static_cast<std::size_t>(i)] - expected) /
                                            expected)),
              32 * 0x1p-53)
        << i;
  }
  EXPECT_GT(bands[0], 0);
  EXPECT_GT(bands[1], 0);
  EXPECT_GT(bands[2], 0);
}

TEST(Rope, ReadsScalingInBothSpellings) {
  json older = small_config("llama");
  older["rope_theta"] = 500000.0;
  older["rope_scaling"] = {{"rope_type", "llama3"},
                           {"factor", 8.0},
                           {"low_freq_factor", 1.0},
                           {"high_freq_factor", 4.0},
                           {"original_max_position_embeddings", 64}};
  json newer = small_config("llama");
  newer.erase("rope_theta");
  newer["rope_parameters"] = older["rope_scaling"];
  newer["rope_parameters"]["rope_theta"] = 500000.0;
  const auto a = describe(older);
  const auto b = describe(newer);
  ASSERT_TRUE(a.has_value()) << a.error().message;
  ASSERT_TRUE(b.has_value()) << b.error().message;
  EXPECT_EQ(a->rope_scaling.kind, RopeScaling::Kind::llama3);
  EXPECT_EQ(a->rope_scaling.original_max_positions, 64);
  EXPECT_EQ(b->rope_theta, 500000.0);
  EXPECT_EQ(a->inverse_frequencies(), b->inverse_frequencies());
  // The oldest spelling of the kind.
  json oldest = small_config("llama");
  oldest["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
  const auto c = describe(oldest);
  ASSERT_TRUE(c.has_value());
  EXPECT_EQ(c->rope_scaling.kind, RopeScaling::Kind::linear);
  EXPECT_EQ(c->rope_scaling.factor, 2.0);
}

void expect_refused(const json& config, const std::string& reason) {
  const auto result = describe(config);
  ASSERT_FALSE(result.has_value()) << "accepted, expected: " << reason;
  EXPECT_THAT(result.error().message, HasSubstr(reason));
}

TEST(Rope, RefusesContradictionsAndHoles) {
  json config = small_config("llama");
  config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 500000.0}};
  expect_refused(config, "rope_theta 10000 and rope_parameters.rope_theta 500000 differ");
  config["rope_parameters"]["rope_theta"] = 10000.0;
  EXPECT_TRUE(describe(config).has_value());
  config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 2.0}};
  expect_refused(config, "rope_scaling and rope_parameters differ");

  json holes = small_config("llama");
  holes["rope_scaling"] = {{"rope_type", "linear"}};
  expect_refused(holes, "rope_scaling: factor is missing");
  holes["rope_scaling"] = {{"rope_type", "llama3"}, {"factor", 8.0}};
  expect_refused(holes, "low_freq_factor is missing");
  holes["rope_scaling"] = {{"rope_type", "llama3"},
                           {"factor", 8.0},
                           {"low_freq_factor", 4.0},
                           {"high_freq_factor", 4.0},
                           {"original_max_position_embeddings", 64}};
  expect_refused(holes, "must be greater than low_freq_factor");
  holes.erase("rope_scaling");
  holes["rope_parameters"] = {{"full_attention", {{"rope_theta", 1.0}}}};
  expect_refused(holes, "sliding_attention is missing; give it for both layer types");
}

}  // namespace
}  // namespace driftscope
