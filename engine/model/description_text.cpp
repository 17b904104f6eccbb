// SPDX-License-Identifier: Apache-2.0
#include "engine/model/description_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace driftscope {
namespace {

std::string scaling_text(const RopeScaling& scaling) {
  switch (scaling.kind) {
    case RopeScaling::Kind::none:
      return "";
    case RopeScaling::Kind::linear:
      return fmt::format(" linear by {}", scaling.factor);
    case RopeScaling::Kind::llama3:
      return fmt::format(" llama3 by {} over {}", scaling.factor, scaling.original_max_positions);
    case RopeScaling::Kind::yarn:
      return fmt::format(" YaRN by {} over {}, attention factor {:.6g}", scaling.factor,
                         scaling.original_max_positions, scaling.attention_factor);
    case RopeScaling::Kind::longrope:
      return fmt::format(" LongRoPE beyond {}, attention factor {:.6g}",
                         scaling.original_max_positions, scaling.attention_factor);
    case RopeScaling::Kind::divisors:
      return " with a divisor for each frequency";
  }
  return "";
}

}  // namespace

std::string positions_text(const ModelDescription& model) {
  std::string text = fmt::format("{}, ", model.max_positions);
  if (model.learned_positions) {
    text += "learned";
  } else {
    text += fmt::format("RoPE theta {}{}", model.rope_theta, scaling_text(model.rope_scaling));
    if (model.rotated() != model.head_dim) {
      text += fmt::format(" of {} of {} dimensions", model.rotated(), model.head_dim);
    }
    if (model.local_rope_theta) {
      text += fmt::format(", in layers with the window theta {}{}", *model.local_rope_theta,
                          scaling_text(model.local_rope_scaling));
    }
  }
  if (model.sliding_window == 0) return text;
  text += fmt::format(", sliding window {}", model.sliding_window);
  if (model.sliding_layers.empty()) return text;
  return text + fmt::format(" in {} of {} layers",
                            std::count(model.sliding_layers.begin(), model.sliding_layers.end(), 1),
                            model.layers);
}

}  // namespace driftscope
