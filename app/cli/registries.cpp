// SPDX-License-Identifier: Apache-2.0
// driftscope knobs, metrics, presets: the registries as tables and as JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "analysis/metrics/metric.h"
#include "app/cli/command.h"
#include "engine/config/knob.h"

namespace driftscope::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ListOptions {
  std::string name;
  bool json = false;
};

Result<int> print(CommandContext& context, const std::string& text) {
  if (auto printed = context.console.print(text); !printed) return tl::unexpected(printed.error());
  return 0;
}

std::string value_text(const KnobSpec& knob) {
  switch (knob.kind) {
    case KnobKind::choice:
      return fmt::format("{}", fmt::join(knob.choices, " | "));
    case KnobKind::integer:
      return fmt::format("{:.0f} to {:.0f}{}", knob.minimum, knob.maximum,
                         knob.power_of_two ? ", power of two" : "");
    case KnobKind::real:
      return fmt::format("{} to {}", knob.minimum, knob.maximum);
    case KnobKind::boolean:
      return "true | false";
    case KnobKind::text_list:
      return "[\"text\", …]";
    case KnobKind::integer_list:
      return "[id, …]";
  }
  return {};
}

Json backend_values(const std::vector<std::string_view>& values) {
  if (values.size() == 1 && values[0] == "-") return Json::array();
  if (values.empty()) return "all";
  Json list = Json::array();
  for (const auto value : values) list.push_back(std::string(value));
  return list;
}

Json knob_json(const KnobSpec& knob) {
  Json json{{"id", knob.id},
            {"group", knob.group},
            {"title", knob.title},
            {"help", knob.help},
            {"kind", name_of(knob.kind)}};
  if (knob.kind == KnobKind::choice) json["values"] = knob.choices;
  if (knob.kind == KnobKind::integer || knob.kind == KnobKind::real) {
    json["minimum"] = knob.minimum;
    json["maximum"] = knob.maximum;
    json["power_of_two"] = knob.power_of_two;
  }
  json["default"] = get_knob(RunConfig{}, knob);
  json["effect"] = name_of(knob.effect);
  json["effect_base"] = knob.effect_base;
  json["backends"] = {{"host", backend_values(knob.host_values)},
                      {"cuda", backend_values(knob.cuda_values)}};
  return json;
}

Result<int> knobs(const ListOptions& options, CommandContext& context) {
  if (options.json) {
    Json list = Json::array();
    for (const KnobSpec& knob : knob_registry()) list.push_back(knob_json(knob));
    return print(context, Json{{"knobs", list}}.dump(2) + "\n");
  }
  if (!options.name.empty() && find_knob(options.name) == nullptr) {
    RunConfig scratch;
    return tl::unexpected(set_knob(scratch, options.name, "").error());
  }
  std::string out;
  std::string_view group;
  for (const KnobSpec& knob : knob_registry()) {
    if (!options.name.empty() && knob.id != options.name) continue;
    if (knob.group != group) {
      out += fmt::format("{}{}\n", out.empty() ? "" : "\n", knob.group);
      group = knob.group;
    }
    out += fmt::format("  {:<20} {} (default {})\n  {:<20} {}\n", knob.id, value_text(knob),
                       get_knob(RunConfig{}, knob), "", knob.help);
    out += fmt::format("  {:<20} effect: {}{}\n", "", name_of(knob.effect),
                       knob.effect_base.empty() ? "" : fmt::format(" (with {})", knob.effect_base));
    if (!knob.host_values.empty()) {
      out +=
          fmt::format("  {:<20} on the host backend: {}\n", "", fmt::join(knob.host_values, ", "));
    }
  }
  return print(context, out);
}

Result<int> metrics(const ListOptions& options, CommandContext& context) {
  if (options.json) {
    Json list = Json::array();
    for (const MetricSpec& metric : metric_registry()) {
      list.push_back({{"id", metric.id},
                      {"unit", metric.unit},
                      {"title", metric.title},
                      {"definition", metric.definition}});
    }
    return print(context, Json{{"metrics", list}}.dump(2) + "\n");
  }
  std::string out;
  for (const MetricSpec& metric : metric_registry()) {
    out += fmt::format("{:<18} {:<6} {}\n{:<25} {}\n", metric.id, metric.unit, metric.title, "",
                       metric.definition);
  }
  return print(context, out);
}

Result<int> list_presets(const ListOptions& options, CommandContext& context) {
  if (!options.name.empty()) {
    auto config = load_config(options.name);
    if (!config) return tl::unexpected(config.error());
    return print(context, config_to_json(*config).dump(2) + "\n");
  }
  if (options.json) {
    Json list = Json::array();
    for (const Preset& preset : presets()) {
      list.push_back({{"name", preset.name},
                      {"help", preset.help},
                      {"config", config_to_json(preset.make())}});
    }
    return print(context, Json{{"presets", list}}.dump(2) + "\n");
  }
  std::string out;
  for (const Preset& preset : presets())
    out += fmt::format("{:<26} {}\n", preset.name, preset.help);
  return print(context, out);
}

}  // namespace

void declare_knobs(CLI::App& app, CommandContext& context) {
  auto options = bind_command<ListOptions>(app, context, &knobs);
  app.add_option("name", options->name, "One knob only");
  app.add_flag("--json", options->json, "One JSON document");
}
void declare_metrics(CLI::App& app, CommandContext& context) {
  auto options = bind_command<ListOptions>(app, context, &metrics);
  app.add_flag("--json", options->json, "One JSON document");
}
void declare_presets(CLI::App& app, CommandContext& context) {
  auto options = bind_command<ListOptions>(app, context, &list_presets);
  app.add_option("name", options->name, "Print this preset as a configuration file");
  app.add_flag("--json", options->json, "One JSON document");
}

}  // namespace driftscope::cli
