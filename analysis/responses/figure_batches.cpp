// SPDX-License-Identifier: Apache-2.0
// Tables of differences: what the size of the batch changes, and what a rerun does.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "analysis/compare/findings.h"
#include "analysis/responses/figure_cells.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

// A rerun that differs by this part of what the batch does may be all that the batch shows.
constexpr double kAsMuch = 0.25;
constexpr std::size_t kMostMeasures = 8;

struct Extent {
  const FigureCell* largest = nullptr;
  std::int64_t zero = 0, count = 0;
  void add(const FigureCell& cell) {
    if (largest == nullptr || cell.value > largest->value) largest = &cell;
    zero += cell.value == 0.0 ? 1 : 0;
    ++count;
  }
  [[nodiscard]] double most() const { return largest == nullptr ? 0.0 : largest->value; }
};

// Of one measure.
struct Batches {
  std::vector<std::pair<std::string, Extent>> types;  // finest first; what a rerun does not cover
  Extent rerun;
  Extent covered;         // batches where a rerun differs as much
  double covering = 0.0;  // the largest such rerun
  std::string listed;     // `types` in words
  Json evidence = Json::object();
};

using Place = std::pair<std::size_t, std::string>;  // group and type

Batches collect(const std::vector<const FigureCell*>& cells) {
  Batches batches;
  std::map<Place, double> reruns;
  for (const FigureCell* cell : cells) {
    if (cell->kind != PairKind::rerun) continue;
    batches.rerun.add(*cell);
    double& most = reruns[{cell->group, cell->label.a.dtype}];
    most = std::max(most, cell->value);
  }
  std::map<std::string, Extent> by_type;
  for (const FigureCell* cell : cells) {
    if (cell->kind != PairKind::batch) continue;
    double rerun = 0.0;
    for (const std::string& type : {cell->label.a.dtype, std::string()}) {
      const auto found = reruns.find({cell->group, type});
      if (found != reruns.end()) rerun = std::max(rerun, found->second);
    }
    if (cell->value > 0.0 && rerun >= kAsMuch * cell->value) {
      batches.covered.add(*cell);
      batches.covering = std::max(batches.covering, rerun);
    } else {
      by_type[cell->label.a.dtype].add(*cell);
    }
  }
  batches.types.assign(by_type.begin(), by_type.end());
  std::stable_sort(batches.types.begin(), batches.types.end(), [](const auto& x, const auto& y) {
    return figure_dtype_bits(x.first) > figure_dtype_bits(y.first);
  });
  for (const auto& [name, extent] : batches.types) {
    const std::string shown = name.empty() ? "the type that is not named" : name;
    batches.listed +=
        fmt::format("{}{} in {} (0 in {} of {})", batches.listed.empty() ? "" : ", ",
                    extent.most() == 0.0 ? "0" : "up to " + figure_text_of(extent.most()), shown,
                    extent.zero, extent.count);
    batches.evidence[shown] = extent.most();
  }
  return batches;
}

void judge_rerun(const Extent& rerun, std::vector<Finding>& findings) {
  if (rerun.count == 0) return;
  const bool exact = rerun.zero == rerun.count;
  findings.push_back(make_finding(
      exact ? "repeats_exactly" : "does_not_repeat", exact ? Severity::info : Severity::warning,
      exact
          ? fmt::format("A rerun under the same conditions differs by 0 in all {} cases: the runs "
                        "are deterministic, and what differs elsewhere has a cause",
                        rerun.count)
          : fmt::format("A rerun under the same conditions differs in {} of {} cases (up to {}): "
                        "it does not repeat itself, so no other difference can be trusted",
                        rerun.count - rerun.zero, rerun.count, figure_text_of(rerun.most())),
      Json{{"cases", rerun.count}, {"zero", rerun.zero}, {"max", rerun.most()}}));
}

// The finest and the coarsest type with a name.
std::optional<TypeShrink> shrink_across(const Batches& batches, std::string& text) {
  const Extent* fine = nullptr;
  const Extent* coarse = nullptr;
  for (const auto& [name, extent] : batches.types) {
    if (figure_dtype_bits(name) == 0) continue;
    if (fine == nullptr) fine = &extent;
    coarse = &extent;
  }
  if (fine == coarse || (fine->most() == 0.0 && coarse->most() == 0.0) ||
      figure_dtype_bits(fine->largest->label.a.dtype) ==
          figure_dtype_bits(coarse->largest->label.a.dtype)) {
    return std::nullopt;
  }
  const TypeShrink shrink = shrink_of(*coarse->largest, *fine->largest);
  text = shrink_text(shrink, *coarse->largest, *fine->largest);
  return shrink;
}

std::string rerun_text(const Batches& batches) {
  if (batches.rerun.count == 0) return " Whether a rerun repeats is not in the table.";
  if (batches.rerun.zero == batches.rerun.count) {
    return " A rerun of one batch size is exact, so it is no chance.";
  }
  if (batches.covered.count == 0) return {};
  return fmt::format(" Left out: {} {} where a rerun differs as much.", batches.covered.count,
                     batches.covered.count == 1 ? "case" : "cases");
}

struct Why {
  const char* id;
  std::string text;
};

Why why_of(const Batches& batches) {
  constexpr std::string_view kRounding =
      "rounding that depends on the batch: kernels sum in another order for another number of rows";
  // Runs that do not all repeat may differ by chance wherever one did.
  const bool repeats = batches.rerun.zero == batches.rerun.count;
  std::string across;
  const auto shrink = shrink_across(batches, across);
  if (!shrink) {
    return {"batch_dependent_rounding",
            fmt::format(" Most often that is {}; whether it is cannot be told from one type: a "
                        "finer one would show far less. Compare with a batch-invariant mode",
                        kRounding)};
  }
  if (shrink->verdict == Shrinks::as_rounding) {
    return {"batch_dependent_rounding",
            fmt::format(" {} {}; {}. Compare with a batch-invariant mode",
                        repeats ? "That is" : "If that is no chance, it is", kRounding, across)};
  }
  if (shrink->verdict == Shrinks::not_at_all) {
    return {"batch_beyond_type",
            fmt::format(" But {}. So it is not rounding: look at what the batch changes in what is "
                        "computed (padding and masks, positions, another kernel, routing)",
                        across)};
  }
  return {"batch_dependent", fmt::format(" Whether that is rounding cannot be told: {}", across)};
}

void judge_measure(const FigureTable& table, const std::vector<const FigureCell*>& cells,
                   bool several, std::vector<Finding>& findings) {
  const Batches batches = collect(cells);
  const std::string of =
      several ? fmt::format("{}: ", measure_text(table, *cells.front())) : std::string();
  const std::size_t first = findings.size();
  judge_rerun(batches.rerun, findings);
  const bool drifts = std::any_of(batches.types.begin(), batches.types.end(),
                                  [](const auto& type) { return type.second.most() > 0.0; });
  if (!drifts && batches.covered.count > 0) {
    findings.push_back(make_finding(
        "batch_within_rerun", Severity::warning,
        fmt::format(
            "Nothing can be said of the batch: other batch sizes differ by up to {}, and a "
            "rerun of the same size by up to {} in the same cases{}. Make the runs repeat "
            "first",
            figure_text_of(batches.covered.most()), figure_text_of(batches.covering),
            batches.listed.empty() ? "" : fmt::format(" (without these: {})", batches.listed)),
        Json{{"batch", batches.covered.most()}, {"rerun", batches.covering}}));
  } else if (drifts) {
    const bool exact = batches.types.front().second.most() == 0.0 &&
                       figure_dtype_bits(batches.types.front().first) >
                           figure_dtype_bits(batches.types.back().first);
    const Why why = why_of(batches);
    findings.push_back(make_finding(
        why.id, Severity::warning,
        fmt::format("The size of the batch changes the results: {}.{}{}{}", batches.listed,
                    exact ? " The finest type shows none, so the computation is the same and only "
                            "its rounding differs."
                          : "",
                    rerun_text(batches), why.text),
        batches.evidence));
  } else if (!batches.types.empty()) {
    findings.push_back(make_finding(
        "batch_invariant", Severity::info,
        fmt::format("Other batch sizes change nothing: {}", batches.listed), batches.evidence));
  }
  for (std::size_t i = first; i < findings.size(); ++i) findings[i].text = of + findings[i].text;
}

}  // namespace

void judge_batches(const FigureTable& table, const std::vector<FigureCell>& cells,
                   std::vector<Finding>& findings) {
  std::vector<std::pair<std::string, std::vector<const FigureCell*>>> measures;
  for (const FigureCell& cell : cells) {
    if (cell.kind != PairKind::batch && cell.kind != PairKind::rerun) continue;
    const auto known = std::find_if(measures.begin(), measures.end(), [&](const auto& measure) {
      return measure.first == cell.measure.words;
    });
    if (known != measures.end()) {
      known->second.push_back(&cell);
    } else if (measures.size() < kMostMeasures) {
      measures.push_back({cell.measure.words, {&cell}});
    }
  }
  for (const auto& [words, of_measure] : measures) {
    judge_measure(table, of_measure, measures.size() > 1, findings);
  }
}

}  // namespace driftscope
