// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/response_population.h"

#include <algorithm>
#include <cmath>

#include "analysis/responses/population_caveats.h"
#include "ui/models/token_text.h"

namespace driftscope::ui {
namespace {

constexpr double kLevel = 0.05;

const SampleGroup* group_named(const std::vector<SampleGroup>& groups, const std::string& prompt) {
  const auto found = std::find_if(groups.begin(), groups.end(),
                                  [&](const SampleGroup& g) { return g.prompt == prompt; });
  return found == groups.end() ? nullptr : &*found;
}

void add_distances(const SampleGroup& from, const SampleGroup& to, std::size_t first,
                   std::vector<double>& distances) {
  if (from.sequences.empty()) return;
  for (std::size_t i = first; i < to.sequences.size(); ++i) {
    distances.push_back(driftscope::first_difference(from.sequences[0], to.sequences[i]));
  }
}

QString interval_text(const MedianInterval& interval) {
  const auto text = [](double value) {
    return std::isinf(value) ? QStringLiteral("never") : short_number(value, 4);
  };
  if (std::isnan(interval.median)) return QStringLiteral("–");
  return QStringLiteral("%1 (%2 to %3)")
      .arg(text(interval.median), text(interval.low), text(interval.high));
}

}  // namespace

PartedCurve parted_curve(std::vector<double> distances) {
  PartedCurve curve;
  std::sort(distances.begin(), distances.end());
  curve.pairs = static_cast<std::int64_t>(distances.size());
  for (std::size_t i = 0; i < distances.size(); ++i) {
    if (std::isinf(distances[i])) {
      curve.never = curve.pairs - static_cast<std::int64_t>(i);
      break;
    }
    if (i + 1 < distances.size() && distances[i + 1] == distances[i]) continue;
    const Share share = share_of(static_cast<std::int64_t>(i) + 1, curve.pairs);
    curve.symbol.push_back(distances[i]);
    curve.share.push_back(share.value);
    curve.low.push_back(share.low);
    curve.high.push_back(share.high);
  }
  return curve;
}

PartedCurves parted_curves(const PopulationView& population, int row) {
  std::vector<double> a, b, across;
  const auto& prompts = population.comparison.prompts;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    if (row >= 0 && static_cast<std::size_t>(row) != i) continue;
    const SampleGroup* left = group_named(population.sides.a, prompts[i].prompt);
    const SampleGroup* right = group_named(population.sides.b, prompts[i].prompt);
    if (left == nullptr || right == nullptr) continue;
    add_distances(*left, *left, 1, a);
    add_distances(*right, *right, 1, b);
    add_distances(*left, *right, 0, across);
  }
  return {.within_a = parted_curve(std::move(a)),
          .within_b = parted_curve(std::move(b)),
          .across = parted_curve(std::move(across))};
}

std::vector<RateRow> rate_rows(const PopulationComparison& c) {
  return {{QStringLiteral("unique answers among samples"), c.unique_a, c.unique_b},
          {QStringLiteral("prompts whose answers all agree"), c.tar_raw_a, c.tar_raw_b},
          {QStringLiteral("… once normalised"), c.tar_answer_a, c.tar_answer_b}};
}

QString power_text(const TwoSampleTest& test) {
  if (test.permutations == 0) return QStringLiteral("needs two samples of each side");
  if (test.smallest_p > kLevel) {
    return QStringLiteral("so few samples cannot give a p below %1: nothing can be told")
        .arg(short_number(test.smallest_p, 2));
  }
  if (test.p_value <= kLevel) return {};
  if (!test.samples_needed) return QStringLiteral("no effect seen that more samples would show");
  return QStringLiteral("about %1 samples a side would show an effect of this size")
      .arg(*test.samples_needed);
}

QString population_sentence(const PopulationView& population) {
  const PopulationComparison& c = population.comparison;
  const PopulationVerdict verdict = judge_populations(population.sides, c);
  QString before;
  for (const std::string& sentence : verdict.caveats.sentences)
    before += QString::fromStdString(sentence) + QStringLiteral(".\n");
  if (c.prompts.empty()) return before + QStringLiteral("No prompt has samples on both sides.");
  QString text =
      QStringLiteral(
          "%1 of %2 %3 changed (two-sample tests on %4 and mean logprobs, %5 permutations, 5% "
          "after Holm's "
          "correction).")
          .arg(c.changed)
          .arg(c.prompts.size())
          .arg(c.prompts.size() == 1 ? QStringLiteral("prompt") : QStringLiteral("prompts"))
          .arg(population.sides.by_token_ids ? QStringLiteral("token ids")
                                             : QStringLiteral("characters"))
          .arg(population.permutations);
  if (!verdict.reason.empty()) {
    text += QStringLiteral(" Inconclusive: %1.")
                .arg(QString::fromUtf8(verdict.reason.data(),
                                       static_cast<qsizetype>(verdict.reason.size())));
  } else if (c.changed == 0) {
    text += QStringLiteral(" No difference found; this does not prove that there is none.");
  }
  if (c.prompts.size() == 1) {
    const QString power = power_text(c.prompts[0].test);
    if (!power.isEmpty()) text += QStringLiteral(" Power: %1.").arg(power);
  }
  return before + text;
}

VerdictSummary population_verdict(const PopulationView& population) {
  const PopulationComparison& c = population.comparison;
  const PopulationVerdict verdict = judge_populations(population.sides, c);
  VerdictSummary summary;
  summary.inconclusive = verdict.tier == Tier::inconclusive && verdict.name == "inconclusive";
  summary.good = !summary.inconclusive && c.changed == 0;
  summary.tier = summary.inconclusive ? QStringLiteral("INCONCLUSIVE")
                 : summary.good       ? QStringLiteral("NO CHANGE FOUND")
                                      : QStringLiteral("CHANGED");
  summary.headline =
      c.prompts.empty()
          ? QStringLiteral("No prompt has samples on both sides")
          : QStringLiteral("%1 of %2 %3 changed")
                .arg(c.changed)
                .arg(c.prompts.size())
                .arg(c.prompts.size() == 1 ? QStringLiteral("prompt") : QStringLiteral("prompts"));
  summary.reason = population_sentence(population);
  return summary;
}

QString population_caption(const PopulationView& population, int row) {
  const auto& prompts = population.comparison.prompts;
  const QStringList names = without_common_folder(population.files->paths);
  const QString files = QStringLiteral("A %1, B %2")
                            .arg(escaped_text(names.value(0).toStdString()),
                                 escaped_text(names.value(1).toStdString()));
  if (prompts.size() == 1) {
    return prompts[0].prompt.empty()
               ? files
               : QStringLiteral("%1; prompt %2").arg(files, escaped_text(prompts[0].prompt));
  }
  if (row < 0) return QStringLiteral("%1; all %2 prompts").arg(files).arg(prompts.size());
  return QStringLiteral("%1; left: prompt %2; right: all %3 prompts")
      .arg(files, escaped_text(prompts[static_cast<std::size_t>(row)].prompt))
      .arg(prompts.size());
}

void PopulationModel::show(PopulationPointer population) {
  beginResetModel();
  m_population = std::move(population);
  endResetModel();
}

int PopulationModel::row_total() const {
  return m_population ? static_cast<int>(m_population->comparison.prompts.size()) : 0;
}

QStringList PopulationModel::headings() const {
  return {QStringLiteral("Prompt"),
          QStringLiteral("Samples A, B"),
          QStringLiteral("Unique A, B"),
          QStringLiteral("Median parting A"),
          QStringLiteral("Median parting B"),
          QStringLiteral("MMD²"),
          QStringLiteral("p"),
          QStringLiteral("p (Holm)"),
          QStringLiteral("KS p, logprobs"),
          QStringLiteral("Power")};
}

QString PopulationModel::empty_text() const {
  return QStringLiteral("Open two files with many samples of the same prompts.");
}

TableCell PopulationModel::cell(int row, int column) const {
  const PromptComparison& p = m_population->comparison.prompts[static_cast<std::size_t>(row)];
  const auto pair = [](std::int64_t a, std::int64_t b) {
    return QStringLiteral("%1, %2").arg(a).arg(b);
  };
  switch (static_cast<Column>(column)) {
    case prompt:
      return {.text = p.prompt.empty() ? QStringLiteral("(all samples)") : escaped_text(p.prompt),
              .emphasis = Emphasis::none,
              .tooltip = escaped_text(p.prompt)};
    case samples:
      return {.text = pair(p.a.samples, p.b.samples), .number = true};
    case unique:
      return {.text = pair(p.a.unique, p.b.unique), .number = true};
    case median_a:
      return {.text = interval_text(p.a.first_divergence),
              .number = true,
              .emphasis = Emphasis::side_a,
              .tooltip = QStringLiteral("Where samples part from A's first one: the median, with "
                                        "the 95% interval of its order statistics")};
    case median_b:
      return {.text = interval_text(p.b.first_divergence),
              .number = true,
              .emphasis = Emphasis::side_b,
              .tooltip = QStringLiteral("Where samples part from B's first one: the median, with "
                                        "the 95% interval of its order statistics")};
    case mmd:
      return {.text = short_number(p.test.statistic, 3), .number = true};
    case p_value:
      return {.text = short_number(p.test.p_value, 3), .number = true};
    case corrected:
      return {.text = short_number(p.corrected_p, 3),
              .number = true,
              .emphasis = p.corrected_p <= kLevel ? Emphasis::alert : Emphasis::none};
    case logprobs:
      return {.text = p.logprobs_known ? short_number(p.logprobs.p_value, 3) : QStringLiteral("–"),
              .number = true};
    case power:
      return {
          .text = power_text(p.test), .emphasis = Emphasis::muted, .tooltip = power_text(p.test)};
    case column_total:
      break;
  }
  return {};
}

}  // namespace driftscope::ui
