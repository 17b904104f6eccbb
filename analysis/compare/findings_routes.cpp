// SPDX-License-Identifier: Apache-2.0
// Findings about the routers of a mixture of experts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "analysis/compare/findings.h"

namespace driftscope {

namespace {

using Json = nlohmann::ordered_json;

std::string names_of(const std::vector<std::int32_t>& experts) {
  return fmt::format("expert{} {}", experts.size() == 1 ? "" : "s", fmt::join(experts, ", "));
}

std::string describe(const RouteFlip& flip) {
  return fmt::format(
      "the router chose {} instead of {} in layer {} at step {}, router margin {} "
      "in A and {} in B",
      names_of(flip.only_b), names_of(flip.only_a), flip.layer, flip.step, figure(flip.margin_a),
      figure(flip.margin_b));
}

Json flip_json(const RouteFlip& flip) {
  return {{"step", flip.step},
          {"layer", flip.layer},
          {"only_a", flip.only_a},
          {"only_b", flip.only_b},
          {"margin_a", json_number(flip.margin_a)},
          {"margin_b", json_number(flip.margin_b)}};
}

std::int64_t steps_of(const std::vector<RouteFlip>& flips) {
  std::set<std::int64_t> steps;
  for (const RouteFlip& flip : flips) steps.insert(flip.step);
  return static_cast<std::int64_t>(steps.size());
}

const RouteFlip* at_step(const std::vector<RouteFlip>& flips, std::int64_t step) {
  const auto found = std::find_if(flips.begin(), flips.end(),
                                  [&](const RouteFlip& flip) { return flip.step == step; });
  return found == flips.end() ? nullptr : &*found;
}

}  // namespace

std::string describe_route_flip(const Comparison& comparison, std::int64_t step) {
  const RouteFlip* flip = at_step(comparison.routes.flips, step);
  return flip == nullptr ? std::string() : describe(*flip);
}

void find_route_flips(const RunContext& context, std::vector<Finding>& findings) {
  const RouteComparison& routes = context.comparison.routes;
  if (routes.decisions == 0) return;
  if (routes.flips.empty()) {
    findings.push_back(make_finding(
        "routes_equal", Severity::info,
        fmt::format("The routers of A and B chose the same experts in all {} of the rows whose "
                    "logits were recorded (earlier rows of the prompt are not)",
                    counted(routes.decisions, "decision")),
        {{"decisions", routes.decisions}}));
    return;
  }
  const auto flips = static_cast<std::int64_t>(routes.flips.size());
  const RouteFlip& first = routes.flips.front();
  findings.push_back(make_finding(
      "route_flips", Severity::notice,
      fmt::format("After A's own tokens {}; {} of {} differ, at {} of {}", describe(first), flips,
                  counted(routes.decisions, "router decision"), steps_of(routes.flips),
                  counted(static_cast<std::int64_t>(context.comparison.steps.size()), "step")),
      {{"flips", flips},
       {"decisions", routes.decisions},
       {"steps", steps_of(routes.flips)},
       {"first", flip_json(first)}}));
}

void find_free_route_flips(const RunContext& context, std::vector<Finding>& findings) {
  const RouteComparison& routes = context.comparison.routes;
  if (routes.flips_free.empty()) return;
  const auto flips = static_cast<std::int64_t>(routes.flips_free.size());
  findings.push_back(
      make_finding("route_flips_free", Severity::notice,
                   fmt::format("Free lanes, as long as their texts are equal: {}; {} of {} differ",
                               describe(routes.flips_free.front()), flips,
                               counted(routes.decisions_free, "router decision")),
                   {{"flips", flips},
                    {"decisions", routes.decisions_free},
                    {"first", flip_json(routes.flips_free.front())}}));
}

// Another expert is another computation: the drift of such a step is no rounding that grew.
void find_flip_after_route(const RunContext& context, std::vector<Finding>& findings) {
  const Comparison& comparison = context.comparison;
  if (!comparison.first_flip) return;
  const RouteFlip* route = at_step(comparison.routes.flips, comparison.first_flip->step);
  if (route == nullptr) return;
  findings.push_back(make_finding(
      "flip_with_route_flip", Severity::notice,
      fmt::format("At the step of the first flip {}: the drift there is that of another expert, "
                  "not of rounding alone",
                  describe(*route)),
      flip_json(*route)));
}

}  // namespace driftscope
