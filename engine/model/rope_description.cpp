// SPDX-License-Identifier: Apache-2.0
#include "engine/model/rope_description.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "kernels/base/display_text.h"
#include "kernels/plan/portable_math.h"

namespace driftscope {
namespace {

constexpr double kDefaultRopeTheta = 10000.0;
constexpr double kTwoPi = 6.283185307179586;

RopeScaling read_scaling(ConfigFields& scaling) {
  RopeScaling result;
  const std::string kind = scaling.text("rope_type", scaling.text("type", "default"));
  if (kind == "default") return result;
  if (kind == "linear") {
    result.kind = RopeScaling::Kind::linear;
    result.factor = scaling.positive("factor");
    return result;
  }
  if (kind != "llama3") {
    scaling.refuse(
        fmt::format("type \"{}\" is not supported; supported are default, linear and llama3",
                    escape_for_display(kind)));
    return result;
  }
  result.kind = RopeScaling::Kind::llama3;
  result.factor = scaling.positive("factor");
  result.low_frequency_factor = scaling.positive("low_freq_factor");
  result.high_frequency_factor = scaling.positive("high_freq_factor");
  result.original_max_positions = scaling.count("original_max_position_embeddings");
  if (scaling.good() && result.high_frequency_factor <= result.low_frequency_factor) {
    scaling.refuse(
        fmt::format("high_freq_factor {} must be greater than low_freq_factor {}; fix "
                    "the checkpoint",
                    result.high_frequency_factor, result.low_frequency_factor));
  }
  return result;
}

void check_same_scaling(ConfigFields& fields, const RopeScaling& older, const RopeScaling& newer) {
  if (!(older == newer)) fields.refuse("rope_scaling and rope_parameters differ; keep one of them");
}

// One of the two groups; nothing where it is absent or not an object.
std::optional<RopeScaling> read_group(ConfigFields& fields, std::string_view group) {
  const auto* value = fields.find(group);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) {
    fields.refuse(fmt::format("{} is {}; it must be an object or null", group, show_value(*value)));
    return std::nullopt;
  }
  if (value->contains("full_attention") || value->contains("sliding_attention")) {
    fields.refuse(fmt::format("{} per layer type is not supported", group));
    return std::nullopt;
  }
  ConfigFields scaling(*value, fmt::format("{}: {}", fields.name(), group));
  RopeScaling result = read_scaling(scaling);
  if (scaling.positive("partial_rotary_factor", 1.0) != 1.0) {
    scaling.refuse("partial_rotary_factor other than 1 is not supported");
  }
  fields.adopt(scaling);
  return result;
}

double llama3_frequency(const RopeScaling& scaling, double frequency) {
  const auto original = static_cast<double>(scaling.original_max_positions);
  const double wavelength = kTwoPi / frequency;
  if (wavelength < original / scaling.high_frequency_factor) return frequency;
  if (wavelength > original / scaling.low_frequency_factor) return frequency / scaling.factor;
  const double smooth = (original / wavelength - scaling.low_frequency_factor) /
                        (scaling.high_frequency_factor - scaling.low_frequency_factor);
  return (1.0 - smooth) * (frequency / scaling.factor) + smooth * frequency;
}

double scaled_frequency(const RopeScaling& scaling, double frequency, std::int64_t index,
                        bool long_sequence) {
  switch (scaling.kind) {
    case RopeScaling::Kind::none:
    case RopeScaling::Kind::yarn:  // not read yet
      return frequency;
    case RopeScaling::Kind::linear:
      return frequency / scaling.factor;
    case RopeScaling::Kind::llama3:
      return llama3_frequency(scaling, frequency);
    case RopeScaling::Kind::longrope:
    case RopeScaling::Kind::divisors:
      break;
  }
  const bool use_long = long_sequence && scaling.kind == RopeScaling::Kind::longrope;
  const auto& divisors = use_long ? scaling.long_divisors : scaling.short_divisors;
  return frequency / divisors[static_cast<std::size_t>(index)];
}

}  // namespace

void read_rope(ConfigFields& fields, ModelDescription& description) {
  const auto older = read_group(fields, "rope_scaling");
  const auto newer = read_group(fields, "rope_parameters");
  if (older && newer) check_same_scaling(fields, *older, *newer);
  if (newer) {
    description.rope_scaling = *newer;
  } else if (older) {
    description.rope_scaling = *older;
  }
  const double theta = fields.positive("rope_theta", kDefaultRopeTheta);
  description.rope_theta = theta;
  if (!newer || !fields.good()) return;
  ConfigFields parameters(*fields.find("rope_parameters"), fields.name() + ": rope_parameters");
  description.rope_theta = parameters.positive("rope_theta", theta);
  fields.adopt(parameters);
  if (fields.has("rope_theta") && description.rope_theta != theta) {
    fields.refuse(
        fmt::format("rope_theta {} and rope_parameters.rope_theta {} differ; keep one of "
                    "them",
                    theta, description.rope_theta));
  }
}

std::vector<double> ModelDescription::inverse_frequencies(bool local, bool long_sequence) const {
  const double theta = local ? local_rope_theta.value_or(rope_theta) : rope_theta;
  const RopeScaling& scaling = local && local_rope_theta ? local_rope_scaling : rope_scaling;
  const std::int64_t width = rotated();
  std::vector<double> frequencies;
  frequencies.reserve(static_cast<std::size_t>(width / 2));
  for (std::int64_t i = 0; i < width / 2; ++i) {
    const double exponent = -static_cast<double>(2 * i) / static_cast<double>(width);
    const double frequency = portable::pow(theta, exponent);
    frequencies.push_back(scaled_frequency(scaling, frequency, i, long_sequence));
  }
  return frequencies;
}

}  // namespace driftscope
