// SPDX-License-Identifier: Apache-2.0
// Inverse frequencies of the rotary embedding, apart from the reader of config.json.
#include <algorithm>
#include <cmath>

#include "engine/model/checkpoint.h"
#include "kernels/plan/portable_math.h"

namespace driftscope {
namespace {

constexpr double kTwoPi = 6.283185307179586;

double llama3_frequency(const RopeScaling& scaling, double frequency) {
  const auto original = static_cast<double>(scaling.original_max_positions);
  const double wavelength = kTwoPi / frequency;
  if (wavelength < original / scaling.high_frequency_factor) return frequency;
  if (wavelength > original / scaling.low_frequency_factor) return frequency / scaling.factor;
  const double smooth = (original / wavelength - scaling.low_frequency_factor) /
                        (scaling.high_frequency_factor - scaling.low_frequency_factor);
  return (1.0 - smooth) * (frequency / scaling.factor) + smooth * frequency;
}

// YaRN: the share of interpolation rises from 0 to 1 between two dimensions, those that make
// beta_fast and beta_slow turns over the original length.
struct YarnRamp {
  double low = 0.0;
  double high = 1.0;
  [[nodiscard]] double at(std::int64_t index) const {
    return std::clamp((static_cast<double>(index) - low) / (high - low), 0.0, 1.0);
  }
};

YarnRamp yarn_ramp(const RopeScaling& scaling, double theta, std::int64_t width) {
  const auto dimension = [&](double turns) {
    const double ratio = static_cast<double>(scaling.original_max_positions) / (turns * kTwoPi);
    return static_cast<double>(width) * portable::log(ratio) / (2.0 * portable::log(theta));
  };
  YarnRamp ramp{dimension(scaling.beta_fast), dimension(scaling.beta_slow)};
  if (scaling.truncate) ramp = {std::floor(ramp.low), std::ceil(ramp.high)};
  ramp.low = std::max(ramp.low, 0.0);
  ramp.high = std::min(ramp.high, static_cast<double>(width - 1));
  if (ramp.low == ramp.high) ramp.high += 0.001;  // as the reference implementation does
  return ramp;
}

double scaled_frequency(const RopeScaling& scaling, double frequency, std::int64_t index,
                        const YarnRamp& ramp, bool long_sequence) {
  switch (scaling.kind) {
    case RopeScaling::Kind::none:
      return frequency;
    case RopeScaling::Kind::linear:
      return frequency / scaling.factor;
    case RopeScaling::Kind::llama3:
      return llama3_frequency(scaling, frequency);
    case RopeScaling::Kind::yarn: {
      const double share = ramp.at(index);
      return frequency / scaling.factor * share + frequency * (1.0 - share);
    }
    case RopeScaling::Kind::longrope:
    case RopeScaling::Kind::divisors:
      break;
  }
  const bool use_long = long_sequence && scaling.kind == RopeScaling::Kind::longrope;
  const auto& divisors = use_long ? scaling.long_divisors : scaling.short_divisors;
  return frequency / divisors[static_cast<std::size_t>(index)];
}

}  // namespace

std::vector<double> ModelDescription::inverse_frequencies(bool local, bool long_sequence) const {
  const double theta = local ? local_rope_theta.value_or(rope_theta) : rope_theta;
  const RopeScaling& scaling = local && local_rope_theta ? local_rope_scaling : rope_scaling;
  const std::int64_t width = rotated();
  const YarnRamp ramp =
      scaling.kind == RopeScaling::Kind::yarn ? yarn_ramp(scaling, theta, width) : YarnRamp{};
  std::vector<double> frequencies;
  frequencies.reserve(static_cast<std::size_t>(width / 2));
  for (std::int64_t i = 0; i < width / 2; ++i) {
    const double exponent = -static_cast<double>(2 * i) / static_cast<double>(width);
    const double frequency = portable::pow(theta, exponent);
    frequencies.push_back(scaled_frequency(scaling, frequency, i, ramp, long_sequence));
  }
  return frequencies;
}

}  // namespace driftscope
