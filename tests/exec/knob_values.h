// SPDX-License-Identifier: Apache-2.0
// Values of every knob, taken from the registry, for tests that iterate it.
#pragma once

#include <string>
#include <vector>

#include "engine/config/knob.h"

namespace driftscope::test {

// Half of a small vocabulary, so that some token of a short answer is among them.
[[nodiscard]] inline std::string even_ids() {
  std::string list = "[0";
  for (int id = 2; id < 320; id += 2) list += "," + std::to_string(id);
  return list + "]";
}

// The knob's host values, or a spread over its range. Numbers stay small enough for a tiny model.
[[nodiscard]] inline std::vector<std::string> knob_values(const KnobSpec& knob) {
  std::vector<std::string> values;
  if (!knob.host_values.empty()) {
    values.assign(knob.host_values.begin(), knob.host_values.end());
    return values;
  }
  if (knob.id == "graph_sizes") return {"[]", "[4]", "[64,16]"};
  switch (knob.kind) {
    case KnobKind::choice:
      values.assign(knob.choices.begin(), knob.choices.end());
      return values;
    case KnobKind::boolean:
      return {"false", "true"};
    case KnobKind::text_list:
      return {"[]", R"(["7 "])"};
    case KnobKind::integer_list:
      return {"[]", even_ids()};
    case KnobKind::real:
      for (const char* text : {"0", "0.05", "0.5", "1", "1.7", "-1.5", "50"}) {
        values.push_back(text);
      }
      break;
    case KnobKind::integer:
      for (const char* text : {"0", "1", "2", "4", "8", "16", "64"}) values.push_back(text);
      break;
  }
  std::vector<std::string> accepted;
  for (const std::string& value : values) {
    RunConfig config;
    if (set_knob(config, knob.id, value)) accepted.push_back(value);
  }
  return accepted;
}

// A configuration with the assignments under which the knob's effect shows.
[[nodiscard]] inline RunConfig effect_base(const KnobSpec& knob, RunConfig config) {
  std::string_view rest = knob.effect_base;
  while (!rest.empty()) {
    const std::size_t space = rest.find(' ');
    const auto done = set_knob_assignment(config, rest.substr(0, space));
    if (!done) throw std::runtime_error(done.error().message);
    rest = space == std::string_view::npos ? std::string_view{} : rest.substr(space + 1);
  }
  return config;
}

}  // namespace driftscope::test
