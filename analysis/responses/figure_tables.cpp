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
#include "analysis/responses/figure_cells.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

// The cells of one measure.
using MeasureKey = std::pair<std::size_t, std::string>;  // column, words
MeasureKey key_of(const FigureCell& cell) { return {cell.group, cell.measure.words}; }

struct EngineAndType {
  const FigureCell* engine = nullptr;  // at the finest type that both ran
  const FigureCell* dtype = nullptr;   // the largest
};

std::map<MeasureKey, EngineAndType> engines_and_types(const std::vector<FigureCell>& cells) {
  std::map<MeasureKey, EngineAndType> measures;
  for (const FigureCell& cell : cells) {
    if (cell.kind != PairKind::engine && cell.kind != PairKind::dtype) continue;
    EngineAndType& known = measures[key_of(cell)];
    if (cell.kind == PairKind::dtype) {
      if (known.dtype == nullptr || cell.value > known.dtype->value) known.dtype = &cell;
    } else if (known.engine == nullptr || figure_dtype_bits(cell.label.a.dtype) >
                                              figure_dtype_bits(known.engine->label.a.dtype)) {
      known.engine = &cell;
    }
  }
  return measures;
}

// Engine against type: which explains more, measure by measure.
void judge_engine(const FigureTable& table, const std::vector<FigureCell>& cells,
                  std::vector<Finding>& findings) {
  std::int64_t more = 0, less = 0;
  EngineAndType shown;
  for (const auto& [key, measure] : engines_and_types(cells)) {
    if (measure.engine == nullptr || measure.dtype == nullptr) continue;
    (measure.engine->value > measure.dtype->value ? more : less) += 1;
    if (shown.engine == nullptr || names_a_maximum(measure_text(table, *measure.engine)))
      shown = measure;
  }
  if (shown.engine == nullptr) return;
  const std::string& type = shown.engine->label.a.dtype;
  const std::string figures =
      fmt::format("the engines differ by {} at {} (\"{}\"), the types by {} (\"{}\"), by {}",
                  figure_text_of(shown.engine->value), type.empty() ? "one type" : type,
                  escape_for_display(shown.engine->name), figure_text_of(shown.dtype->value),
                  escape_for_display(shown.dtype->name), measure_text(table, *shown.engine));
  const Json evidence{{"engine", shown.engine->value},
                      {"dtype", shown.dtype->value},
                      {"measures_engine_larger", more},
                      {"measures_dtype_larger", less}};
  const bool engine_larger = shown.engine->value > shown.dtype->value;
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

// One pair of programs by one measure, at its finest and its coarsest type.
struct Ends {
  const FigureCell* fine = nullptr;
  const FigureCell* coarse = nullptr;
};

std::optional<Ends> widest_ends(const FigureTable& table, const std::vector<FigureCell>& cells) {
  const auto bits = [](const FigureCell* cell) { return figure_dtype_bits(cell->label.a.dtype); };
  std::map<std::pair<MeasureKey, std::string>, Ends> pairs;
  for (const FigureCell& cell : cells) {
    if (cell.kind != PairKind::engine || bits(&cell) == 0) continue;
    Ends& ends = pairs[{key_of(cell), others_text(cell.label.a) + "|" + others_text(cell.label.b)}];
    if (ends.fine == nullptr || bits(&cell) > bits(ends.fine)) ends.fine = &cell;
    if (ends.coarse == nullptr || bits(&cell) < bits(ends.coarse)) ends.coarse = &cell;
  }
  std::optional<Ends> widest;
  const auto rank = [&](const Ends& ends) {
    return std::pair(bits(ends.fine) - bits(ends.coarse),
                     names_a_maximum(measure_text(table, *ends.fine)));
  };
  for (const auto& [key, ends] : pairs) {
    if (bits(ends.fine) > bits(ends.coarse) && (!widest || rank(ends) > rank(*widest))) {
      widest = ends;
    }
  }
  return widest;
}

// Rounding shrinks as the type gets finer, a fault does not.
void judge_engine_by_type(const FigureTable& table, const std::vector<FigureCell>& cells,
                          std::vector<Finding>& findings) {
  const auto ends = widest_ends(table, cells);
  if (!ends || ends->coarse->value == 0.0) return;
  const FigureCell& fine = *ends->fine;
  const FigureCell& coarse = *ends->coarse;
  const TypeShrink shrink = shrink_of(coarse, fine);
  const FigureCell* dtype = engines_and_types(cells)[key_of(fine)].dtype;
  // What is left at the fine type is more than all that the types make.
  const bool exceeds = dtype != nullptr && fine.value > dtype->value;
  const bool rounding = shrink.verdict == Shrinks::as_rounding && !exceeds;
  const bool beyond = shrink.verdict == Shrinks::not_at_all || exceeds;
  const std::string meaning =
      rounding
          ? std::string(", as rounding does") +
                (2.0 * shrink.factor < shrink.full
                     ? "; the order of sums and fp32 math modes such as tf32 explain what is left"
                     : "")
      : beyond ? fmt::format("{}: look at what the two compute, not at the type",
                             exceeds ? fmt::format(", and what is left is more than the types make "
                                                   "({})",
                                                   figure_text_of(dtype->value))
                                     : std::string())
               : ": whether that is rounding cannot be told from it";
  findings.push_back(make_finding(
      rounding ? "rounding_of_type"
      : beyond ? "beyond_type"
               : "partly_by_type",
      rounding ? Severity::notice : Severity::warning,
      fmt::format("{} and {} differ by {} in {} and by {} in {} ({}): {}{}",
                  escape_for_display(others_text(fine.label.a)),
                  escape_for_display(others_text(fine.label.b)), figure_text_of(coarse.value),
                  coarse.label.a.dtype, figure_text_of(fine.value), fine.label.a.dtype,
                  measure_text(table, fine), shrink_text(shrink, coarse, fine), meaning),
      Json{{"coarse", coarse.value},
           {"fine", fine.value},
           {"factor", json_number(shrink.factor)},
           {"full", shrink.full}}));
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
    const FigureMeasure measure = measure_of(table.columns[column]);
    if (measure.kind != MeasureKind::difference || !measure.certain) {
      findings.push_back(make_finding(
          "not_a_difference", Severity::notice,
          fmt::format("\"{}\": not known to be a difference, where 0 means equal; no conclusion "
                      "on the types is drawn from it",
                      escape_for_display(table.columns[column])),
          Json{{"columns", Json::array({table.columns[column]})}}));
      continue;
    }
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
        fmt::format("{}: {} in the mean for {} and {} for {}, {:.4g} times as much: {}",
                    escape_for_display(table.columns[column]), figure_text_of(coarse_mean), coarse,
                    figure_text_of(fine_mean), fine, coarse_mean / fine_mean,
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
    listed += fmt::format(
        "{}{} {} ({})", listed.empty() ? "" : ", ", escape_for_display(table.columns[column]),
        figure_text_of(*largest->values[column]), escape_for_display(largest->label));
  }
  findings.push_back(
      make_finding("figures", Severity::info,
                   fmt::format("A table of {} rows and {} columns of figures; the largest: {}",
                               table.rows.size(), table.columns.size(), listed),
                   Json{{"rows", table.rows.size()}, {"columns", table.columns.size()}}));
}

// Cells that are no number, or stand for one that is missing, are left out and told.
FigureTable without_faults(FigureTable table, std::vector<Finding>& findings) {
  struct Fault {
    std::string text;
    std::int64_t count = 0;
  } no_number, placeholder;
  for (FigureTable::Row& row : table.rows) {
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      auto& value = row.values[column];
      if (!value || (std::isfinite(*value) && !is_figure_placeholder(*value))) continue;
      Fault& fault = std::isfinite(*value) ? placeholder : no_number;
      if (fault.count++ == 0) {
        fault.text =
            fmt::format("{} at row \"{}\", column \"{}\"", figure_text_of(*value),
                        escape_for_display(row.label), escape_for_display(table.columns[column]));
      }
      value.reset();
    }
  }
  if (no_number.count > 0) {
    findings.push_back(make_finding(
        "not_a_number", Severity::error,
        fmt::format("{} of the figures {} no number, first {}; the rest is read", no_number.count,
                    no_number.count == 1 ? "is" : "are", no_number.text),
        Json{{"count", no_number.count}}));
  }
  if (placeholder.count > 0) {
    findings.push_back(
        make_finding("placeholder_left_out", Severity::warning,
                     fmt::format("{} of the figures {}, first {}; left out", placeholder.count,
                                 placeholder.count == 1 ? "is a placeholder" : "are placeholders",
                                 placeholder.text),
                     Json{{"count", placeholder.count}}));
  }
  return table;
}

}  // namespace

void judge_table(const FigureTable& reported, std::vector<Finding>& findings) {
  const FigureTable table = without_faults(reported, findings);
  tell_extremes(table, findings);
  if (judge_value_pairs(table, findings)) return;
  const auto knows = [](const std::vector<FigureCell>& cells) {
    return std::count_if(cells.begin(), cells.end(),
                         [](const FigureCell& cell) { return cell.kind != PairKind::unknown; });
  };
  const std::vector<FigureCell> by_row = figure_cells(table, true);
  const std::vector<FigureCell> by_column = figure_cells(table, false);
  const bool rows = knows(by_row) >= knows(by_column);
  if (knows(by_row) + knows(by_column) == 0) return judge_types(table, findings);
  const std::vector<FigureCell> cells =
      keep_differences(table, rows ? by_row : by_column, findings);
  if (rows) {
    judge_engine(table, cells, findings);
    judge_engine_by_type(table, cells, findings);
  }
  judge_batches(table, cells, findings);
}

}  // namespace driftscope
