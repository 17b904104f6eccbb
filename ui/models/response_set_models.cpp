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

// "1 pair", "3 pairs".
QString counted(std::size_t count, const char* name) {
  return QStringLiteral("%1 %2%3").arg(count).arg(QLatin1String(name),
                                                  count == 1 ? QString() : QStringLiteral("s"));
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
  m_rows.clear();
  for (std::size_t i = 0; m_survey && i < m_survey->outcomes.size(); ++i) {
    if (!m_survey->outcomes[i].other_questions) m_rows.push_back(i);
  }
  endResetModel();
}

int PairListModel::row_total() const { return static_cast<int>(m_rows.size()); }

int PairListModel::row_of(AnswerChoice choice) const {
  const auto found = std::find_if(m_rows.begin(), m_rows.end(), [&](std::size_t i) {
    const AnswerChoice own = m_survey->outcomes[i].choice;
    return own == choice || own == AnswerChoice{choice.b, choice.a};
  });
  return found == m_rows.end() ? -1 : static_cast<int>(found - m_rows.begin());
}

QStringList PairListModel::headings() const {
  return {QStringLiteral("A"),        QStringLiteral("B"),     QStringLiteral("Tier"),
          QStringLiteral("Parts at"), QStringLiteral("Cause"), QStringLiteral("Max |Δ|")};
}

QString PairListModel::empty_text() const {
  if (m_survey && !m_survey->outcomes.empty()) {
    return QStringLiteral(
        "No two answers have the same custom_id: they answer other questions, so none are "
        "compared.");
  }
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
      return {.text = tier_name(o.tier),
              .emphasis = emphasis_of_tier(o.tier),
              .tooltip = tier_meaning(o.tier)};
    case parts_at:
      return {.text = o.step >= 0 ? QString::number(o.step)
                      : o.byte    ? QStringLiteral("byte %1").arg(*o.byte)
                                  : unknown,
              .number = true,
              .emphasis = Emphasis::none,
              .tooltip = o.step >= 0 ? QStringLiteral("token %1").arg(o.step)
                         : o.byte    ? QStringLiteral("of the text: it is not known by tokens")
                                     : QString()};
    case cause:
      return {.text = o.cause ? cause_name(*o.cause) : unknown};
    case largest:
      return {
          .text = o.max_abs ? short_number(*o.max_abs, 3) : unknown,
          .number = true,
          .emphasis = Emphasis::none,
          .tooltip = QStringLiteral("Largest |B − A| of the logprobs of tokens that both chose")};
    case column_total:
      break;
  }
  return {};
}

SurveyCounts counts_of(const PairSurvey& survey) {
  SurveyCounts counts;
  for (const PairOutcome& outcome : survey.outcomes) {
    if (outcome.other_questions) {
      ++counts.other_questions;
      continue;
    }
    ++counts.tiers[static_cast<std::size_t>(outcome.tier)];
    ++counts.compared;
    counts.weakest = std::max(counts.weakest, outcome.tier);
  }
  return counts;
}

QString tiers_text(const SurveyCounts& counts) {
  QStringList parts;
  for (std::size_t i = 0; i < counts.tiers.size(); ++i) {
    if (counts.tiers[i] == 0) continue;
    parts << QStringLiteral("%1 %2").arg(counts.tiers[i]).arg(tier_name(static_cast<Tier>(i)));
  }
  return parts.join(QStringLiteral(", "));
}

QString survey_text(const PairSurvey& survey) {
  const SurveyCounts counts = counts_of(survey);
  QStringList sentences;
  if (counts.compared > 0 || counts.other_questions == 0) {
    sentences << QStringLiteral("%1: %2").arg(counted(counts.compared, "pair"), tiers_text(counts));
  }
  if (counts.other_questions > 0) {
    sentences << QStringLiteral("not compared, as other custom_ids are other questions: %1")
                     .arg(counted(counts.other_questions, "pair"));
  }
  QString text = sentences.join(QStringLiteral("; "));
  if (survey.partners_only) {
    text += QStringLiteral(" (partners of the two files)");
  } else if (survey.shown < survey.total) {
    text += QStringLiteral(" (of the first %1 answers only)").arg(survey.shown);
  }
  return text;
}

VerdictSummary survey_verdict(const PairSurvey& survey) {
  const SurveyCounts counts = counts_of(survey);
  const bool told = counts.compared > 0 && survey.unpaired == 0;
  const Tier tier = told ? counts.weakest : Tier::inconclusive;
  VerdictSummary summary;
  summary.tier = counts.compared == 0 && counts.other_questions > 0 ? QStringLiteral("NOT COMPARED")
                                                                    : tier_name(tier).toUpper();
  summary.good = tier < Tier::different;
  summary.inconclusive = tier == Tier::inconclusive;
  const QString groups = survey.partners_only
                             ? QString()
                             : QStringLiteral("%1 in %2; ")
                                   .arg(counted(survey.files->answered, "answer"),
                                        counted(survey.files->clusters.size(), "group"));
  const std::size_t differ = counts.tiers[static_cast<std::size_t>(Tier::different)];
  const QString pairs =
      counts.compared == 0 ? QStringLiteral("no pair was compared")
      : differ == 0 ? QStringLiteral("none of %1 differs").arg(counted(counts.compared, "pair"))
                    : QStringLiteral("%1 of %2 %3")
                          .arg(differ)
                          .arg(counted(counts.compared, "pair"),
                               differ == 1 ? QStringLiteral("differs") : QStringLiteral("differ"));
  summary.headline = groups + pairs;
  summary.reason = survey_text(survey);
  if (survey.unpaired > 0) {
    summary.reason +=
        QStringLiteral("; without a partner: %1").arg(counted(survey.unpaired, "answer"));
  }
  return summary;
}

QString files_text(const ResponseFiles& files) {
  return QStringLiteral("%1 %2 of %3 %4, %5 unique")
      .arg(files.answered)
      .arg(files.answered == 1 ? QStringLiteral("answer") : QStringLiteral("answers"))
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
