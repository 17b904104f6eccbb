// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/response_series.h"

#include <cmath>
#include <limits>

#include "analysis/responses/response_lint.h"
#include "ui/models/token_text.h"

namespace driftscope::ui {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

const ResponseStep* step_of(const std::vector<ResponseStep>& steps, std::int64_t index) {
  return index < 0 ? nullptr : &steps[static_cast<std::size_t>(index)];
}

bool is_beyond(const Logprob& value) {
  switch (value.state) {
    case LogprobState::missing:
    case LogprobState::null:
    case LogprobState::number:
    case LogprobState::placeholder:
      return false;
    case LogprobState::sentinel:
    case LogprobState::clipped:
    case LogprobState::lowest_float:
    case LogprobState::minus_infinity:
    case LogprobState::not_a_number:
      return true;
  }
  return false;
}

void add_side(const ResponseStep* step, StepValues& values, StepValues& beyond,
              std::int64_t& known) {
  const bool number = step != nullptr && step->logprob.usable();
  values.push_back(number ? step->logprob.value : kUnknown);
  beyond.push_back(step != nullptr && is_beyond(step->logprob) ? 1.0 : kUnknown);
  known += number ? 1 : 0;
}

QString unit_of(const Response& response) {
  if (response.after_sampling) return QStringLiteral("probability after the samplers");
  switch (response.scale) {
    case LogprobScale::log_probability:
      return QStringLiteral("nat");
    case LogprobScale::probability:
      return QStringLiteral("probability");
    case LogprobScale::logit:
      return QStringLiteral("logit");
  }
  return {};
}

QString why_no_difference(const ResponsePairView& pair, const ResponseSeries& series) {
  if (pair.alone) {
    return QStringLiteral("There is no B: drop a second file to see where its logprobs differ");
  }
  if (pair.failed()) {
    return QStringLiteral("%1 is an error, not an answer: there is nothing to subtract")
        .arg(pair.files->is_error(pair.choice.a) ? QStringLiteral("A") : QStringLiteral("B"));
  }
  if (pair.other_questions) {
    return QStringLiteral("A and B answer other questions (custom_id): nothing is subtracted");
  }
  if (series.known_a == 0 && series.known_b == 0) {
    return QStringLiteral(
        "Neither answer lists logprobs, so there is nothing to subtract. Ask the server for them "
        "(logprobs: true)");
  }
  if (series.known_a == 0 || series.known_b == 0) {
    return QStringLiteral("Only %1 has logprobs that are numbers: there is nothing to subtract")
        .arg(series.known_a == 0 ? QStringLiteral("B") : QStringLiteral("A"));
  }
  if (pair.comparison.equal_tokens == 0 && pair.columns.unit == ColumnUnit::tokens) {
    return QStringLiteral(
        "The first tokens differ already: there is no step at which both chose the same token");
  }
  return QStringLiteral(
      "The numbers of A and B are not of one kind, or placeholders, and are not subtracted: see "
      "the findings");
}

}  // namespace

ResponseSeries response_series(const ResponsePairView& pair) {
  ResponseSeries series;
  const ResponseColumns& columns = pair.columns;
  const bool prompt = columns.unit == ColumnUnit::prompt;
  const LogprobDrift& drift = prompt ? pair.comparison.prompt_drift : pair.comparison.drift;
  const bool comparable = drift.count > 0;
  for (const ResponseColumn& column : columns.columns) {
    const ResponseStep* a = step_of(columns.steps_a, column.a);
    const ResponseStep* b = step_of(columns.steps_b, column.b);
    add_side(a, series.logprob_a, series.beyond_a, series.known_a);
    add_side(b, series.logprob_b, series.beyond_b, series.known_b);
    const bool both = comparable && column.state == ColumnState::equal && a != nullptr &&
                      b != nullptr && a->logprob.usable() && b->logprob.usable();
    series.difference.push_back(both ? b->logprob.value - a->logprob.value : kUnknown);
    series.tolerance.push_back(both ? print_tolerance(a->logprob) + print_tolerance(b->logprob)
                                    : kUnknown);
    series.known_differences += both ? 1 : 0;
  }
  const QString unit_a = unit_of(pair.response_a());
  const QString unit_b = unit_of(pair.response_b());
  series.unit =
      unit_a == unit_b || pair.alone ? unit_a : QStringLiteral("A: %1, B: %2").arg(unit_a, unit_b);
  if (series.known_differences == 0) series.difference_reason = why_no_difference(pair, series);
  bool any_beyond = false;
  for (const double value : series.beyond_a) any_beyond = any_beyond || !std::isnan(value);
  for (const double value : series.beyond_b) any_beyond = any_beyond || !std::isnan(value);
  if (series.known_a == 0 && series.known_b == 0 && !any_beyond) {
    series.logprob_reason =
        (pair.alone || pair.failed() ? QStringLiteral("The answer lists no logprobs. ")
                                     : QStringLiteral("Neither answer lists logprobs. ")) +
        QStringLiteral("Ask the server for them (logprobs: true, top_logprobs)");
  }
  return series;
}

std::int64_t initial_column(const ResponsePairView& pair) {
  if (pair.columns.divergence >= 0) return pair.columns.divergence;
  const ResponseSeries series = response_series(pair);
  std::int64_t column = 0;
  double largest = 0.0;
  for (std::size_t i = 0; i < series.difference.size(); ++i) {
    const double size = std::abs(series.difference[i]);
    // false for NaN
    if (size > series.tolerance[i] && size > largest) {
      largest = size;
      column = static_cast<std::int64_t>(i);
    }
  }
  return column;
}

QString logprob_text(const Logprob& value, int digits) {
  switch (value.state) {
    case LogprobState::missing:
      return QStringLiteral("–");
    case LogprobState::null:
      return QStringLiteral("null");
    case LogprobState::number:
      return short_number(value.value, digits);
    case LogprobState::sentinel:
      return QStringLiteral("sentinel");
    case LogprobState::clipped:
      return QStringLiteral("floor");
    case LogprobState::lowest_float:
      return QStringLiteral("−FLT_MAX");
    case LogprobState::minus_infinity:
      return QStringLiteral("−∞");
    case LogprobState::not_a_number:
      return QStringLiteral("NaN");
    case LogprobState::placeholder:
      return QStringLiteral("draft");
  }
  return {};
}

QString logprob_meaning(const Logprob& value) {
  switch (value.state) {
    case LogprobState::missing:
      return QStringLiteral("The server sent no logprob of this token");
    case LogprobState::null:
      return QStringLiteral("The server sent null");
    case LogprobState::number:
      return {};
    case LogprobState::placeholder:
      return QStringLiteral("0 of a token that a draft proposed: certainty was not measured");
    case LogprobState::sentinel:
      return QStringLiteral("A sentinel (-9999): outside of what the server kept, no number");
    case LogprobState::clipped:
      return QStringLiteral("A floor that the server puts in (-100 or -1000), no number");
    case LogprobState::lowest_float:
      return QStringLiteral("The lowest float (-3.4e38), printed for a probability of 0");
    case LogprobState::minus_infinity:
      return QStringLiteral("Minus infinity: a probability of 0");
    case LogprobState::not_a_number:
      return QStringLiteral("NaN: the server computed no number");
  }
  return {};
}

}  // namespace driftscope::ui
