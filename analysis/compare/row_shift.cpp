// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/row_shift.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "analysis/compare/findings.h"
#include "analysis/compare/imported_side.h"
#include "analysis/compare/value_words.h"

namespace driftscope {

namespace {

constexpr double kRoundings = 4.0;
constexpr const char* kRowsShifted = "rows_shifted";

// Half the distance between neighbours, relative to the number. Numbers are kept as f32.
double unit_roundoff(const std::string& element) {
  if (element == "f16") return 0x1p-11;
  if (element == "bf16") return 0x1p-8;
  return 0x1p-24;
}

struct Shift {
  double smallest = std::numeric_limits<double>::infinity();
  double largest = 0.0;
  double kl = 0.0;
};

std::optional<Shift> measure_shift(const Comparison& comparison, double roundoff_a,
                                   double roundoff_b) {
  Shift shift;
  bool shifted = false;
  for (const auto& step : comparison.steps) {
    const auto value = [&](std::string_view id) { return metric_value(step->metrics, id); };
    // |row of B| <= |row of A| + |difference|, all as root mean squares.
    const double size = value("logit_rms");
    const double rounding = kRoundings * (roundoff_a * size + roundoff_b * (size + value("rms")));
    if (!(value("centred_rms") <= rounding)) return std::nullopt;
    shifted = shifted || value("mean_abs") > rounding;
    shift.smallest = std::min(shift.smallest, value("mean_abs"));
    shift.largest = std::max(shift.largest, value("mean_abs"));
    shift.kl = std::max(shift.kl, value("kl_ab"));
  }
  return shifted ? std::optional(shift) : std::nullopt;
}

std::string describe_sides(const Comparison& comparison) {
  if (numbers_comparable(comparison)) {
    return "one side's rows are shifted, which softmax does not see";
  }
  const bool a = comparison.imported_a->values == "log_probability";
  return fmt::format("{} is normalised (log-softmax) and {} is not", a ? 'A' : 'B', a ? 'B' : 'A');
}

}  // namespace

std::optional<Finding> find_row_shift(const Comparison& comparison, const ExperimentFacts& facts) {
  if (!comparison.imported_a || !comparison.imported_b || comparison.listed()) return std::nullopt;
  const auto shift = measure_shift(comparison, unit_roundoff(imported_element(facts.envelope_a)),
                                   unit_roundoff(imported_element(facts.envelope_b)));
  if (!shift) return std::nullopt;
  const std::string low = fmt::format("{:.5g}", shift->smallest);
  const std::string high = fmt::format("{:.5g}", shift->largest);
  return make_finding(
      kRowsShifted, Severity::notice,
      fmt::format("At every step B - A is one number for the whole row, within rounding (size {}): "
                  "{}. The distributions agree: the largest KL is {} nat",
                  low == high ? low : fmt::format("{} to {}", low, high),
                  describe_sides(comparison), figure(shift->kl)),
      {{"smallest", shift->smallest}, {"largest", shift->largest}, {"kl", json_number(shift->kl)}});
}

void tell_row_shift(Comparison& comparison, Finding shift) {
  // What is left beside the shift is the rounding of the files.
  std::erase_if(comparison.findings, [](const Finding& finding) {
    return finding.id == "drift_without_flip" || finding.id == "largest_drift";
  });
  comparison.findings.push_back(std::move(shift));
}

std::optional<double> largest_row_shift(const Comparison& comparison) {
  for (const Finding& finding : comparison.findings) {
    if (finding.id != kRowsShifted) continue;
    const auto evidence = nlohmann::ordered_json::parse(finding.evidence, nullptr, false);
    if (evidence.contains("largest")) return evidence["largest"].get<double>();
  }
  return std::nullopt;
}

void forget_shifted_metrics(Comparison& comparison) {
  if (comparison.listed() || numbers_comparable(comparison)) return;
  constexpr std::array kShifted{"max_abs", "mean_abs", "rms", "max_rel", "max_ulp", "cosine"};
  for (auto& step : comparison.steps) {
    auto updated = std::make_shared<StepComparison>(*step);
    for (const char* id : kShifted) {
      updated->metrics.values[*metric_index(id)] = std::numeric_limits<double>::quiet_NaN();
    }
    step = std::move(updated);
  }
}

}  // namespace driftscope
