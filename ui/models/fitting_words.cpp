// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/fitting_words.h"

#include <cmath>

#include "analysis/compare/value_words.h"
#include "ui/models/token_text.h"

namespace driftscope::ui {

QString fitting_words(const Comparison* comparison, const QString& text) {
  if (comparison == nullptr) return text;
  return QString::fromStdString(in_fitting_words(*comparison, text.toStdString()));
}

QString fitting_unit(const Comparison* comparison) {
  if (comparison == nullptr) return QStringLiteral("logit");
  return escaped_text(value_unit(*comparison));
}

bool is_import(const Comparison& comparison) {
  return comparison.imported_a.has_value() || comparison.imported_b.has_value();
}

QString value_with_unit(const Comparison& comparison, double value, int digits) {
  if (std::isnan(value) && is_import(comparison)) return QStringLiteral("not known");
  return short_number(value, digits) + QLatin1Char(' ') + fitting_unit(&comparison);
}

}  // namespace driftscope::ui
