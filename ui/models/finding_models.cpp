// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/finding_models.h"

#include <algorithm>

#include "engine/config/knob.h"
#include "ui/models/fitting_words.h"
#include "ui/models/token_text.h"

namespace driftscope::ui {
namespace {

constexpr std::string_view kKnobPrefix = "knob.";

QString text_of(std::string_view text) { return escaped_text(text); }

Emphasis emphasis_of(Severity severity) {
  switch (severity) {
    case Severity::info:
      return Emphasis::muted;
    case Severity::notice:
      return Emphasis::none;
    case Severity::warning:
      return Emphasis::warning;
    case Severity::error:
      return Emphasis::alert;
  }
  return Emphasis::none;
}

const KnobSpec* knob_of(const FieldDifference& difference) {
  const std::string_view field = difference.field;
  return field.starts_with(kKnobPrefix) ? find_knob(field.substr(kKnobPrefix.size())) : nullptr;
}

}  // namespace

void FindingsModel::show(const ComparisonPointer& comparison) {
  if (comparison) {
    show(comparison->findings, QStringLiteral("Nothing to report so far."));
  } else {
    show({}, QStringLiteral("Open a capture or start a run to see findings."));
  }
}

void FindingsModel::show(std::vector<Finding> findings, const QString& empty) {
  beginResetModel();
  m_findings = std::move(findings);
  m_empty = empty;
  endResetModel();
}

QStringList FindingsModel::headings() const {
  return {QStringLiteral("Severity"), QStringLiteral("Finding")};
}

TableCell FindingsModel::cell(int row, int column) const {
  const Finding& finding = m_findings[static_cast<std::size_t>(row)];
  const QString tooltip =
      QStringLiteral("%1\n%2").arg(text_of(finding.id), text_of(finding.evidence));
  const Emphasis emphasis = emphasis_of(finding.severity);
  if (column == 0) {
    return {.text = text_of(name_of(finding.severity)), .emphasis = emphasis, .tooltip = tooltip};
  }
  return {.text = text_of(finding.text), .emphasis = Emphasis::none, .tooltip = tooltip};
}

void DifferenceModel::show(ComparisonPointer comparison) {
  beginResetModel();
  m_comparison = std::move(comparison);
  m_rows = m_comparison ? m_comparison->envelope_difference : std::vector<FieldDifference>{};
  std::stable_partition(m_rows.begin(), m_rows.end(), [](const FieldDifference& difference) {
    return difference.field.starts_with(kKnobPrefix);
  });
  endResetModel();
}

int DifferenceModel::row_total() const { return static_cast<int>(m_rows.size()); }

QStringList DifferenceModel::headings() const {
  return {QStringLiteral("Setting"), QStringLiteral("A"), QStringLiteral("B")};
}

QString DifferenceModel::empty_text() const {
  if (!m_comparison) {
    return QStringLiteral("Open a capture or start a run to see which settings differ.");
  }
  if (is_import(*m_comparison)) {
    return QStringLiteral("No field that both files state differs. Their settings are not known.");
  }
  return QStringLiteral("A and B were run with the same settings, model and prompt.");
}

TableCell DifferenceModel::cell(int row, int column) const {
  const FieldDifference& difference = m_rows[static_cast<std::size_t>(row)];
  if (column == 1) return {.text = text_of(difference.a), .emphasis = Emphasis::side_a};
  if (column == 2) return {.text = text_of(difference.b), .emphasis = Emphasis::side_b};
  const KnobSpec* knob = knob_of(difference);
  if (knob == nullptr) return {.text = text_of(difference.field)};
  return {.text = text_of(knob->title),
          .emphasis = Emphasis::none,
          .tooltip = text_of(knob->id) + QStringLiteral(": ") + text_of(knob->help)};
}

}  // namespace driftscope::ui
