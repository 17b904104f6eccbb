// SPDX-License-Identifier: Apache-2.0
#include "engine/model/window_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace driftscope {
namespace {

using Window = Architecture::Window;
using Layers = std::vector<std::uint8_t>;

constexpr std::int64_t kDefaultMaxWindowLayers = 28;
// Far beyond any model: what a wrong count makes this reader allocate stays small.
constexpr std::int64_t kMostLayers = 100000;

// By layer_types, which is there.
Layers listed_layers(ConfigFields& fields, std::int64_t layers) {
  const auto* types = fields.find("layer_types");
  if (!types->is_array() || types->size() != static_cast<std::size_t>(layers)) {
    fields.refuse(
        fmt::format("layer_types is {}; it must be a list of num_hidden_layers = {} "
                    "strings",
                    show_value(*types), layers));
    return {};
  }
  Layers sliding;
  sliding.reserve(types->size());
  for (const auto& type : *types) {
    if (type != "full_attention" && type != "sliding_attention") {
      fields.refuse(
          fmt::format("layer_types has {}; supported are \"full_attention\" and "
                      "\"sliding_attention\"",
                      show_value(type)));
      return {};
    }
    sliding.push_back(type == "sliding_attention" ? 1 : 0);
  }
  return sliding;
}

// 0: no window.
std::int64_t window_size(ConfigFields& fields, const Architecture& architecture) {
  switch (architecture.window) {
    case Window::none:
      return 0;
    case Window::when_given:
    case Window::by_step:
      break;
    case Window::when_switched:
    case Window::all_if_switched:
    case Window::even_if_switched:
      if (!fields.flag("use_sliding_window", false)) return 0;
      break;
  }
  // Absent means the class's default, null means no window.
  return fields.contains("sliding_window") ? fields.count("sliding_window", 0)
                                           : architecture.default_window;
}

// The reference implementation's layers where layer_types is absent.
Layers default_layers(ConfigFields& fields, const Architecture& architecture, std::int64_t layers) {
  const std::int64_t switched = fields.whole("max_window_layers", kDefaultMaxWindowLayers);
  std::int64_t step = architecture.window_step;
  if (architecture.reads_window_step) step = fields.count("sliding_window_pattern", step);
  Layers sliding;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    bool slides = true;
    switch (architecture.window) {
      case Window::none:
      case Window::when_given:
      case Window::all_if_switched:
        break;
      case Window::when_switched:
        slides = layer >= switched;
        break;
      case Window::even_if_switched:
        slides = layer % 2 == 0 && layer < switched;
        break;
      case Window::by_step:
        slides = (layer + 1) % step != 0;
        break;
    }
    sliding.push_back(slides ? 1 : 0);
  }
  return sliding;
}

}  // namespace

void read_window(ConfigFields& fields, const Architecture& architecture,
                 ModelDescription& description) {
  if (!fields.good()) return;
  const std::int64_t window = window_size(fields, architecture);
  if (window == 0 || !fields.good()) return;
  if (description.layers > kMostLayers) {
    fields.refuse(fmt::format("{} {} cannot be; fix the checkpoint", architecture.keys.layers,
                              description.layers));
    return;
  }
  Layers sliding = fields.has("layer_types")
                       ? listed_layers(fields, description.layers)
                       : default_layers(fields, architecture, description.layers);
  if (!fields.good()) return;
  const auto count = std::count(sliding.begin(), sliding.end(), std::uint8_t{1});
  if (count == 0) return;
  description.sliding_window = window;
  if (count != static_cast<std::ptrdiff_t>(sliding.size())) {
    description.sliding_layers = std::move(sliding);
  }
}

}  // namespace driftscope
