// SPDX-License-Identifier: Apache-2.0
#include "engine/model/rope_scaling.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "kernels/base/display_text.h"
#include "kernels/plan/portable_math.h"

namespace driftscope {
namespace {

using Kind = RopeScaling::Kind;

void read_llama3(ConfigFields& group, RopeScaling& result) {
  result.factor = group.positive("factor");
  result.low_frequency_factor = group.positive("low_freq_factor");
  result.high_frequency_factor = group.positive("high_freq_factor");
  result.original_max_positions = group.count("original_max_position_embeddings");
  if (group.good() && result.high_frequency_factor <= result.low_frequency_factor) {
    group.refuse(
        fmt::format("high_freq_factor {} must be greater than low_freq_factor {}; fix "
                    "the checkpoint",
                    result.high_frequency_factor, result.low_frequency_factor));
  }
}

// YaRN's factor on cos and sin for a stretch of `factor`.
double yarn_attention(double factor, double scale) {
  return factor <= 1.0 ? 1.0 : 0.1 * scale * portable::log(factor) + 1.0;
}

void read_yarn(ConfigFields& group, const RopeContext& context, RopeScaling& result) {
  const bool has_original = group.has("original_max_position_embeddings");
  result.original_max_positions =
      group.count("original_max_position_embeddings", context.max_positions);
  const double ratio = static_cast<double>(context.max_positions) /
                       static_cast<double>(result.original_max_positions);
  result.factor = has_original ? group.positive("factor", ratio) : group.positive("factor");
  result.beta_fast = group.positive("beta_fast", 32.0);
  result.beta_slow = group.positive("beta_slow", 1.0);
  result.truncate = group.flag("truncate", true);
  // mscale and mscale_all_dim count only together, as in the reference implementation.
  double attention = yarn_attention(result.factor, 1.0);
  if (group.has("mscale") && group.has("mscale_all_dim")) {
    attention = yarn_attention(result.factor, group.positive("mscale")) /
                yarn_attention(result.factor, group.positive("mscale_all_dim"));
  }
  result.attention_factor = group.positive("attention_factor", attention);
  if (!group.good()) return;
  if (result.beta_fast <= result.beta_slow) {
    group.refuse(fmt::format("beta_fast {} must be greater than beta_slow {}; fix the checkpoint",
                             result.beta_fast, result.beta_slow));
  } else if (context.theta <= 1.0) {
    group.refuse(fmt::format("rope_theta {} must be greater than 1 for yarn; fix the checkpoint",
                             context.theta));
  }
}

std::vector<double> read_divisors(ConfigFields& group, std::string_view key, std::int64_t count) {
  const auto* list = group.find(key);
  if (list == nullptr) {
    group.refuse(
        fmt::format("{} is missing; it must be a list of {} numbers (half of the "
                    "rotated dimensions)",
                    key, count));
    return {};
  }
  if (!list->is_array() || list->size() != static_cast<std::size_t>(count)) {
    group.refuse(
        fmt::format("{} is {}; it must be a list of {} numbers (half of the rotated "
                    "dimensions)",
                    key, show_value(*list), count));
    return {};
  }
  std::vector<double> divisors;
  for (const auto& item : *list) {
    const double value = item.is_number() ? item.get<double>() : 0.0;
    if (!std::isfinite(value) || value <= 0.0) {
      group.refuse(
          fmt::format("{} has {}; its numbers must be greater than 0", key, show_value(item)));
      return {};
    }
    divisors.push_back(value);
  }
  return divisors;
}

void read_longrope(ConfigFields& group, const RopeContext& context, RopeScaling& result) {
  result.short_divisors = read_divisors(group, "short_factor", context.rotated / 2);
  result.long_divisors = read_divisors(group, "long_factor", context.rotated / 2);
  std::int64_t original = context.original_max_positions;
  if (original == 0) original = group.count("original_max_position_embeddings", std::int64_t{0});
  if (original > 0) {
    result.factor = static_cast<double>(context.max_positions) / static_cast<double>(original);
  } else {
    original = context.max_positions;
    result.factor = group.positive("factor");
  }
  result.original_max_positions = original;
  double attention = 1.0;
  if (result.factor > 1.0 && original > 1) {
    attention = std::sqrt(1.0 + portable::log(result.factor) /
                                    portable::log(static_cast<double>(original)));
  }
  result.attention_factor = group.positive("attention_factor", attention);
}

}  // namespace

RopeScaling read_rope_scaling(ConfigFields& group, const RopeContext& context) {
  RopeScaling result;
  std::string kind = group.text("rope_type", group.text("type", "default"));
  if (context.su_is_longrope && (kind == "su" || kind == "yarn")) kind = "longrope";
  if (kind == "default") return result;
  if (kind == "linear") {
    result.kind = Kind::linear;
    result.factor = group.positive("factor");
  } else if (kind == "llama3") {
    result.kind = Kind::llama3;
    read_llama3(group, result);
  } else if (kind == "yarn") {
    result.kind = Kind::yarn;
    read_yarn(group, context, result);
  } else if (kind == "longrope") {
    result.kind = Kind::longrope;
    read_longrope(group, context, result);
  } else {
    group.refuse(
        fmt::format("type \"{}\" is not supported; supported are default, linear, "
                    "llama3, longrope and yarn",
                    escape_for_display(kind)));
  }
  return result;
}

}  // namespace driftscope
