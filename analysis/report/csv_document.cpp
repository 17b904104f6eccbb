// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "analysis/compare/value_words.h"
#include "analysis/report/documents.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

// A cell that may hold anything: on one line, quoted, quotes doubled.
std::string csv_text(std::string_view text) {
  std::string cell = "\"";
  for (const char c : text) {
    if (c == '"') cell += '"';
    cell += c;
  }
  return cell + '"';
}

std::string text_cell(const Comparison& comparison, const std::optional<TokenId>& token) {
  const TokenPiece* piece = token ? comparison.piece(*token) : nullptr;
  return piece == nullptr ? "" : csv_text(escape_for_display(piece->bytes));
}

// Empty where ids are places in the file's own list.
std::string id_cell(const Comparison& comparison, const std::optional<TokenId>& token) {
  return token && !interned(comparison) ? fmt::format("{}", token->value) : "";
}

std::string number_cell(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return fmt::format("{}", value);
}

std::string heading(const Comparison& comparison, const MetricSpec& spec) {
  const std::string_view unit = metric_unit(comparison, spec);
  return unit == "1" || unit.empty() ? std::string(spec.id) : fmt::format("{} [{}]", spec.id, unit);
}

// Empty where the value is not known; NaN where it was measured and is none.
std::string metric_cell(const Comparison& comparison, const StepComparison& step,
                        std::size_t index) {
  const auto& values = step.metrics.values;
  const double value =
      index < values.size() ? values[index] : std::numeric_limits<double>::quiet_NaN();
  const MetricSpec& spec = metric_registry()[index];
  return not_known(comparison, step, spec, value) ? "" : number_cell(value);
}

// Where max_abs was found; nowhere, if it is not known.
std::string max_abs_token_cell(const Comparison& comparison, const StepComparison& step) {
  const MetricSpec& spec = metric_registry()[*metric_index("max_abs")];
  if (not_known(comparison, step, spec, metric_value(step.metrics, "max_abs"))) return "";
  return id_cell(comparison, step.metrics.max_abs_token);
}

}  // namespace

std::string csv_document(const Comparison& comparison) {
  std::string csv = "step,token_a,text_a,choice_b,text_b,token_b,flipped,max_abs_token";
  for (const MetricSpec& spec : metric_registry()) csv += "," + csv_text(heading(comparison, spec));
  csv += '\n';
  for (const auto& step : comparison.steps) {
    csv += fmt::format("{},{},{},{},{},{},{},{}", step->step, id_cell(comparison, step->token_a),
                       text_cell(comparison, step->token_a), id_cell(comparison, step->choice_b),
                       text_cell(comparison, step->choice_b), id_cell(comparison, step->token_b),
                       step->flipped ? 1 : 0, max_abs_token_cell(comparison, *step));
    for (std::size_t i = 0; i < metric_registry().size(); ++i) {
      csv += ',';
      csv += metric_cell(comparison, *step, i);
    }
    csv += '\n';
  }
  return csv;
}

}  // namespace driftscope
