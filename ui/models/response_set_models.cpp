// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/response_set_models.h"

#include <algorithm>

#include "ui/models/response_verdict.h"
#include "ui/models/token_text.h"

namespace driftscope::ui {
namespace {

constexpr std::size_t kShownText = 400;    // bytes of an answer
constexpr std::size_t kShownMembers = 40;  // names

QString answer_text(const ResponseFiles& files, const AnswerCluster& cluster) {
  const Answer& first = files.answers[cluster.members.front()];
  const ResponseChoice& choice = first.response->choices[first.choice];
  if (!cluster.text.empty()) {
    const QString text = escaped_text(std::string_view(cluster.text).substr(0, kShownText));
    return cluster.text.size() > kShownText ? text + QStringLiteral(" …") : text;
  }
  if (!choice.tool_calls.empty()) {
    return QStringLiteral("(calls %1)").arg(escaped_text(choice.tool_calls.front().name));
  }
  if (choice.refusal.has_text) {
    return QStringLiteral("(refuses) ") + escaped_text(choice.refusal.text);
  }
  return QStringLiteral("(no text)");
}

// The whole name is in the tool tip: a column may be too narrow for it.
TableCell name_cell(const QString& name) {
  return {.text = name, .emphasis = Emphasis::none, .tooltip = name};
}

Emphasis emphasis_of_tier(Tier tier) {
  if (tier == Tier::inconclusive) return Emphasis::warning;
  return tier == Tier::different ? Emphasis::alert : Emphasis::good;
}

}  // namespace

void ClusterModel::show(ResponseFilesPointer files) {
  beginResetModel();
  m_files = std::move(files);
  endResetModel();
}

int ClusterModel::row_total() const {
  return m_files ? static_cast<int>(m_files->clusters.size()) : 0;
}

QStringList ClusterModel::headings() const {
  return {QStringLiteral("Times"), QStringLiteral("Answer"), QStringLiteral("Given by")};
}

QString ClusterModel::empty_text() const {
  return QStringLiteral("Open answers to see which of them are the same.");
}

TableCell ClusterModel::cell(int row, int column) const {
  const AnswerCluster& cluster = m_files->clusters[static_cast<std::size_t>(row)];
  switch (static_cast<Column>(column)) {
    case size:
      return {.text = QString::number(cluster.members.size()), .number = true};
    case text: {
      const QString shown = answer_text(*m_files, cluster);
      return {.text = shown, .emphasis = Emphasis::none, .tooltip = shown};
    }
    case members: {
      QStringList names;
      for (std::size_t i = 0; i < std::min(cluster.members.size(), kShownMembers); ++i) {
        names << m_files->names[static_cast<qsizetype>(cluster.members[i])];
      }
      if (cluster.members.size() > kShownMembers) names << QStringLiteral("…");
      return {.text = names.join(QStringLiteral(", ")),
              .emphasis = Emphasis::muted,
              .tooltip = names.join(QLatin1Char('\n'))};
    }
    case column_total:
      break;
  }
  return {};
}

void PairListModel::show(PairSurveyPointer survey) {
  beginResetModel();
  m_survey = std::move(survey);
  endResetModel();
}

int PairListModel::row_total() const {
  return m_survey ? static_cast<int>(m_survey->outcomes.size()) : 0;
}

int PairListModel::row_of(AnswerChoice choice) const {
  if (!m_survey) return -1;
  const auto found =
      std::find_if(m_survey->outcomes.begin(), m_survey->outcomes.end(), [&](const PairOutcome& o) {
        return o.choice == choice || (o.choice.a == choice.b && o.choice.b == choice.a);
      });
  return found == m_survey->outcomes.end() ? -1
                                           : static_cast<int>(found - m_survey->outcomes.begin());
}

QStringList PairListModel::headings() const {
  return {QStringLiteral("A"),        QStringLiteral("B"),     QStringLiteral("Tier"),
          QStringLiteral("Parts at"), QStringLiteral("Cause"), QStringLiteral("Max |B − A|")};
}

QString PairListModel::empty_text() const {
  return QStringLiteral("The pairs of more than two answers appear here.");
}

TableCell PairListModel::cell(int row, int column) const {
  const PairOutcome& o = outcome(row);
  const QString unknown = QStringLiteral("–");
  switch (static_cast<Column>(column)) {
    case side_a:
      return name_cell(m_survey->files->label(o.choice.a));
    case side_b:
      return name_cell(m_survey->files->label(o.choice.b));
    case tier:
      return {.text = tier_mark(o.tier) + QLatin1Char(' ') + tier_name(o.tier),
              .emphasis = emphasis_of_tier(o.tier),
              .tooltip = tier_meaning(o.tier)};
    case parts_at:
      return {.text = o.step >= 0 ? QString::number(o.step) : unknown, .number = true};
    case cause:
      return {.text = o.cause ? cause_name(*o.cause) : unknown};
    case largest:
      return {.text = o.max_abs ? short_number(*o.max_abs, 3) : unknown, .number = true};
    case column_total:
      break;
  }
  return {};
}

QString survey_text(const PairSurvey& survey) {
  std::array<int, 6> counts{};
  for (const PairOutcome& outcome : survey.outcomes) {
    ++counts[static_cast<std::size_t>(outcome.tier)];
  }
  QStringList parts;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    parts << QStringLiteral("%1 %2").arg(counts[i]).arg(tier_name(static_cast<Tier>(i)));
  }
  QString text =
      QStringLiteral("%1 %2: %3")
          .arg(survey.outcomes.size())
          .arg(survey.outcomes.size() == 1 ? QStringLiteral("pair") : QStringLiteral("pairs"))
          .arg(parts.join(QStringLiteral(", ")));
  if (survey.partners_only) {
    text += QStringLiteral(" (partners of the two files)");
  } else if (survey.shown < survey.total) {
    text += QStringLiteral(" (of the first %1 answers only)").arg(survey.shown);
  }
  return text;
}

QString files_text(const ResponseFiles& files) {
  return QStringLiteral("%1 %2 of %3 %4, %5 unique")
      .arg(files.answers.size())
      .arg(files.answers.size() == 1 ? QStringLiteral("answer") : QStringLiteral("answers"))
      .arg(files.paths.size())
      .arg(files.paths.size() == 1 ? QStringLiteral("file") : QStringLiteral("files"))
      .arg(files.clusters.size());
}

QStringList vendor_arguments(const ResponseFiles& files, bool population) {
  QStringList words{QStringLiteral("vendor")};
  words << files.paths;
  if (population) words << QStringLiteral("--population");
  return words;
}

}  // namespace driftscope::ui
