// SPDX-License-Identifier: Apache-2.0
// Tables of differences: which of engine, type, batch and repetition they belong to.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>

#include "analysis/compare/findings.h"
#include "analysis/responses/figure_rules.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

// Of the sides of a pair only: the model's name may stand before the first side alone.
bool same_others(const FigureSide& a, const FigureSide& b) {
  const std::size_t common = std::min(a.others.size(), b.others.size());
  if (common == 0) return true;
  return std::equal(a.others.end() - static_cast<std::ptrdiff_t>(common), a.others.end(),
                    b.others.end() - static_cast<std::ptrdiff_t>(common));
}

enum class PairKind : std::uint8_t { unknown, engine, dtype, batch, rerun, several };

PairKind kind_of(const FigureLabel& label) {
  if (label.rerun) return PairKind::rerun;
  if (!label.pair) return PairKind::unknown;
  const bool engine = !same_others(label.a, label.b);
  const bool dtype = label.a.dtype != label.b.dtype;
  const bool batch = label.a.batch != label.b.batch;
  const int changes = int{engine} + int{dtype} + int{batch};
  if (changes > 1) return PairKind::several;
  return engine  ? PairKind::engine
         : dtype ? PairKind::dtype
         : batch ? PairKind::batch
                 : PairKind::unknown;
}

// One difference of the table, with what it is a difference of.
struct Cell {
  FigureLabel label;
  PairKind kind = PairKind::unknown;
  std::string name;   // of the row or column that says it
  std::size_t group;  // the measure (pairs in rows) or the subject (pairs in columns)
  double value = 0.0;
};

std::vector<Cell> cells_of(const FigureTable& table, bool pairs_in_rows) {
  std::vector<Cell> cells;
  for (const FigureTable::Row& row : table.rows) {
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      if (!row.values[column]) continue;
      const std::string& name = pairs_in_rows ? row.label : table.columns[column];
      FigureLabel label = take_label_apart(name);
      // The type may stand on the other axis.
      const std::string other =
          take_label_apart(pairs_in_rows ? table.columns[column] : row.label).a.dtype;
      for (FigureSide* side : {&label.a, &label.b}) {
        if (side->dtype.empty()) side->dtype = other;
      }
      cells.push_back({label, kind_of(label), name,
                       pairs_in_rows ? column : static_cast<std::size_t>(&row - table.rows.data()),
                       std::abs(*row.values[column])});
    }
  }
  return cells;
}

// A measure that is the largest of its kind says more than a mean.
bool contains_max(std::string_view column) {
  const std::vector<std::string> words = figure_words(column);
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word == "max" || word == "maximum" || word == "largest" || word == "worst";
  });
}

std::string number(double value) { return fmt::format("{:.6g}", value); }

// Engine against type: which explains more, measure by measure. The engines are compared at the
// finest type that both ran.
void judge_engine(const FigureTable& table, const std::vector<Cell>& cells,
                  std::vector<Finding>& findings) {
  std::int64_t more = 0, less = 0;
  const Cell* shown_engine = nullptr;
  const Cell* shown_dtype = nullptr;
  for (std::size_t measure = 0; measure < table.columns.size(); ++measure) {
    const Cell* engine = nullptr;
    const Cell* dtype = nullptr;
    for (const Cell& cell : cells) {
      if (cell.group != measure) continue;
      if (cell.kind == PairKind::engine &&
          (engine == nullptr ||
           figure_dtype_bits(cell.label.a.dtype) > figure_dtype_bits(engine->label.a.dtype))) {
        engine = &cell;
      }
      if (cell.kind == PairKind::dtype && (dtype == nullptr || cell.value > dtype->value)) {
        dtype = &cell;
      }
    }
    if (engine == nullptr || dtype == nullptr) continue;
    (engine->value > dtype->value ? more : less) += 1;
    const bool largest = contains_max(table.columns[measure]);
    if (shown_engine == nullptr || largest) {
      shown_engine = engine;
      shown_dtype = dtype;
    }
  }
  if (shown_engine == nullptr) return;
  const std::string figures =
      fmt::format("the engines differ by {} at {} (\"{}\"), the types by {} (\"{}\"), by {}",
                  number(shown_engine->value),
                  shown_engine->label.a.dtype.empty() ? "one type" : shown_engine->label.a.dtype,
                  escape_for_display(shown_engine->name), number(shown_dtype->value),
                  escape_for_display(shown_dtype->name),
                  escape_for_display(table.columns[shown_engine->group]));
  const Json evidence{{"engine", shown_engine->value},
                      {"dtype", shown_dtype->value},
                      {"measures_engine_larger", more},
                      {"measures_dtype_larger", less}};
  const bool engine_larger = shown_engine->value > shown_dtype->value;
  findings.push_back(make_finding(
      engine_larger ? "engine_exceeds_dtype" : "dtype_exceeds_engine", Severity::warning,
      engine_larger
          ? fmt::format("The difference between the engines exceeds the difference between the "
                        "types: {} ({} of {} measures agree). Look at the kernels, not at the type",
                        figures, more, more + less)
          : fmt::format("The difference between the types exceeds the difference between the "
                        "engines: {} ({} of {} measures agree). The type alone accounts for it",
                        figures, less, more + less),
      evidence));
}

std::string others_text(const FigureSide& side) {
  std::string text;
  for (const std::string& word : side.others) text += (text.empty() ? "" : " ") + word;
  return text.empty() ? "one side" : text;
}

// One pair of programs at several types: rounding shrinks as the type gets finer, a fault does not.
void judge_engine_by_type(const FigureTable& table, const std::vector<Cell>& cells,
                          std::vector<Finding>& findings) {
  const Cell* fine = nullptr;
  const Cell* coarse = nullptr;
  for (const Cell& cell : cells) {
    if (cell.kind != PairKind::engine || cell.label.a.dtype.empty()) continue;
    const bool largest = contains_max(table.columns[cell.group]);
    const auto better = [&](const Cell* other, bool finer) {
      if (other == nullptr) return true;
      const int bits = figure_dtype_bits(cell.label.a.dtype),
                known = figure_dtype_bits(other->label.a.dtype);
      if (bits != known) return finer ? bits > known : bits < known;
      return largest && !contains_max(table.columns[other->group]);
    };
    if (better(fine, true)) fine = &cell;
    if (better(coarse, false)) coarse = &cell;
  }
  if (fine == nullptr || fine->group != coarse->group) return;
  if (figure_dtype_bits(fine->label.a.dtype) == figure_dtype_bits(coarse->label.a.dtype)) return;
  // Each bit of the significand halves rounding; a tenth of that is allowed for.
  const double expected =
      coarse->value * std::ldexp(1.0, figure_dtype_bits(coarse->label.a.dtype) -
                                          figure_dtype_bits(fine->label.a.dtype));
  const bool rounding = fine->value <= 10.0 * expected;
  findings.push_back(make_finding(
      rounding ? "rounding_of_type" : "beyond_type",
      rounding ? Severity::notice : Severity::warning,
      fmt::format("{} and {} differ by {} in {} and by {} in {} ({}): {}",
                  escape_for_display(others_text(fine->label.a)),
                  escape_for_display(others_text(fine->label.b)), number(coarse->value),
                  coarse->label.a.dtype, number(fine->value), fine->label.a.dtype,
                  escape_for_display(table.columns[fine->group]),
                  rounding ? "it shrinks with the type as rounding does"
                           : "it does not shrink with the type as rounding would: look at what the "
                             "two compute, not at the type"),
      Json{{"coarse", coarse->value}, {"fine", fine->value}}));
}

struct Extent {
  double largest = 0.0;
  std::int64_t zero = 0, count = 0;
  void add(double value) {
    largest = std::max(largest, value);
    zero += value == 0.0 ? 1 : 0;
    ++count;
  }
};

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
                        rerun.count - rerun.zero, rerun.count, number(rerun.largest)),
      Json{{"cases", rerun.count}, {"zero", rerun.zero}, {"max", rerun.largest}}));
}

// Differences between batch sizes by type, finest first.
void judge_batches(const std::vector<Cell>& cells, std::vector<Finding>& findings) {
  std::map<std::string, Extent> by_type;
  Extent rerun;
  for (const Cell& cell : cells) {
    if (cell.kind == PairKind::batch) by_type[cell.label.a.dtype].add(cell.value);
    if (cell.kind == PairKind::rerun) rerun.add(cell.value);
  }
  judge_rerun(rerun, findings);
  if (by_type.empty()) return;
  std::vector<std::pair<std::string, Extent>> types(by_type.begin(), by_type.end());
  std::stable_sort(types.begin(), types.end(), [](const auto& x, const auto& y) {
    return figure_dtype_bits(x.first) > figure_dtype_bits(y.first);
  });
  std::string listed;
  Json evidence = Json::object();
  bool exact = false, drifts = false;
  for (const auto& [name, extent] : types) {
    const std::string shown = name.empty() ? "the type that is not named" : name;
    listed += fmt::format("{}{} in {} (0 in {} of {})", listed.empty() ? "" : ", ",
                          extent.largest == 0.0 ? "0" : "up to " + number(extent.largest), shown,
                          extent.zero, extent.count);
    evidence[shown] = extent.largest;
    exact = exact || extent.zero == extent.count;
    drifts = drifts || extent.largest > 0.0;
  }
  if (!drifts) {
    findings.push_back(make_finding("batch_invariant", Severity::info,
                                    fmt::format("Other batch sizes change nothing: {}", listed),
                                    evidence));
    return;
  }
  const bool repeats = rerun.count > 0 && rerun.zero == rerun.count;
  findings.push_back(make_finding(
      "batch_dependent_rounding", Severity::warning,
      fmt::format(
          "The size of the batch changes the results: {}.{}{} That is rounding that depends "
          "on the batch: kernels sum in another order for another number of rows. Compare "
          "with a batch-invariant mode",
          listed,
          exact && figure_dtype_bits(types.front().first) > figure_dtype_bits(types.back().first)
              ? " The finest type shows none, so the computation is the same and only its "
                "rounding differs."
              : "",
          repeats ? " A rerun of one batch size is exact, so it is no chance."
                  : (rerun.count == 0 ? " Whether a rerun repeats is not in the table." : "")),
      evidence));
}

// Rows (or columns) that name a type each, with no pair: errors by type.
void judge_types(const FigureTable& table, std::vector<Finding>& findings) {
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    std::map<std::string, std::pair<double, std::int64_t>> sums;
    for (const FigureTable::Row& row : table.rows) {
      const FigureLabel label = take_label_apart(row.label);
      if (label.pair || label.a.dtype.empty() || !row.values[column]) continue;
      auto& [sum, count] = sums[label.a.dtype];
      sum += std::abs(*row.values[column]);
      ++count;
    }
    if (sums.size() < 2) continue;
    std::vector<std::pair<std::string, double>> means;
    for (const auto& [name, sum] : sums) {
      means.emplace_back(name, sum.first / static_cast<double>(sum.second));
    }
    std::stable_sort(means.begin(), means.end(), [](const auto& x, const auto& y) {
      return figure_dtype_bits(x.first) > figure_dtype_bits(y.first);
    });
    const auto& [fine, fine_mean] = means.front();
    const auto& [coarse, coarse_mean] = means.back();
    if (fine_mean == 0.0) continue;
    findings.push_back(make_finding(
        "error_by_dtype", Severity::notice,
        fmt::format("{}: {} in the mean for {} and {} for {}, {:.2g} times as much: {}",
                    escape_for_display(table.columns[column]), number(coarse_mean), coarse,
                    number(fine_mean), fine, coarse_mean / fine_mean,
                    coarse_mean > fine_mean ? "the coarser type adds to what is there without it"
                                            : "the coarser type does not add to it"),
        Json{{"coarse", coarse},
             {"coarse_mean", coarse_mean},
             {"fine", fine},
             {"fine_mean", fine_mean}}));
  }
}

void tell_extremes(const FigureTable& table, std::vector<Finding>& findings) {
  std::string listed;
  for (std::size_t column = 0; column < table.columns.size() && column < 8; ++column) {
    const FigureTable::Row* largest = nullptr;
    for (const FigureTable::Row& row : table.rows) {
      if (!row.values[column]) continue;
      if (largest == nullptr ||
          std::abs(*row.values[column]) > std::abs(*largest->values[column])) {
        largest = &row;
      }
    }
    if (largest == nullptr) continue;
    listed += fmt::format("{}{} {} ({})", listed.empty() ? "" : ", ",
                          escape_for_display(table.columns[column]),
                          number(*largest->values[column]), escape_for_display(largest->label));
  }
  findings.push_back(
      make_finding("figures", Severity::info,
                   fmt::format("A table of {} rows and {} columns of figures; the largest: {}",
                               table.rows.size(), table.columns.size(), listed),
                   Json{{"rows", table.rows.size()}, {"columns", table.columns.size()}}));
}

}  // namespace

void judge_table(const FigureTable& table, std::vector<Finding>& findings) {
  tell_extremes(table, findings);
  const auto knows = [](const std::vector<Cell>& cells) {
    return std::count_if(cells.begin(), cells.end(),
                         [](const Cell& cell) { return cell.kind != PairKind::unknown; });
  };
  const std::vector<Cell> by_row = cells_of(table, true);
  const std::vector<Cell> by_column = cells_of(table, false);
  const bool rows = knows(by_row) >= knows(by_column);
  if (rows) {
    judge_engine(table, by_row, findings);
    judge_engine_by_type(table, by_row, findings);
  }
  judge_batches(rows ? by_row : by_column, findings);
  if (knows(by_row) + knows(by_column) == 0) judge_types(table, findings);
}

}  // namespace driftscope
