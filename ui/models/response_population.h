// SPDX-License-Identifier: GPL-3.0-or-later
// Many samples of two sides: what the population plots and table show.
#pragma once

#include <vector>

#include "ui/models/response_snapshot.h"
#include "ui/models/table_model.h"
#include "ui/models/verdict_summary.h"

namespace driftscope::ui {

// Share of the pairs of samples that have parted before a symbol, with its 95% interval.
struct PartedCurve {
  std::vector<double> symbol;  // rising; a step at each
  std::vector<double> share, low, high;
  std::int64_t pairs = 0;
  std::int64_t never = 0;  // equal to their ends
};
// `distances`: first places of difference, infinity for never.
[[nodiscard]] PartedCurve parted_curve(std::vector<double> distances);

struct PartedCurves {
  PartedCurve within_a;  // pairs with the first sample of A
  PartedCurve within_b;
  PartedCurve across;  // A's first sample with all of B
};
// Of one prompt of the comparison (its row), or of all together (-1).
[[nodiscard]] PartedCurves parted_curves(const PopulationView& population, int row);

// The rates of both sides, in the order in which the plot shows them.
struct RateRow {
  QString name;
  Share a, b;
};
[[nodiscard]] std::vector<RateRow> rate_rows(const PopulationComparison& comparison);

// "2 of 5 prompts changed (two-sample test, 5% after Holm's correction)", or that nothing can be
// told; then what more samples would be needed for.
[[nodiscard]] QString population_sentence(const PopulationView& population);
// Of the badge: changed, no change found, or inconclusive and why.
[[nodiscard]] VerdictSummary population_verdict(const PopulationView& population);
// Of a picture: "A a.jsonl, B b.jsonl; left: prompt q1; right: all 3 prompts".
[[nodiscard]] QString population_caption(const PopulationView& population, int row);
// Of one prompt: "so few samples cannot give a p below 0.1", "about 40 samples a side would show an
// effect of this size"; empty where a change is found.
[[nodiscard]] QString power_text(const TwoSampleTest& test);

class PopulationModel final : public TableModel {
  Q_OBJECT
 public:
  using TableModel::TableModel;
  enum Column {
    prompt,
    samples,
    unique,
    median_a,
    median_b,
    mmd,
    p_value,
    corrected,
    logprobs,
    power,
    column_total
  };
  void show(PopulationPointer population);
  [[nodiscard]] TableCell cell(int row, int column) const override;
  [[nodiscard]] QString empty_text() const override;

 protected:
  [[nodiscard]] int row_total() const override;
  [[nodiscard]] QStringList headings() const override;

 private:
  PopulationPointer m_population;
};

}  // namespace driftscope::ui
