// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/figure_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "analysis/compare/findings.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kRoundingFold = 16.0;  // from here on a shrink is rounding's, whatever is left
constexpr double kSteadyFold = 2.0;     // below, nothing shrinks
constexpr double kOverOne = 1e-5;       // a cosine in single precision may print as 1.000001

// Of the sides of a pair only: the model's name may stand before the first side alone.
bool same_others(const FigureSide& a, const FigureSide& b) {
  const std::size_t common = std::min(a.others.size(), b.others.size());
  if (common == 0) return true;
  return std::equal(a.others.end() - static_cast<std::ptrdiff_t>(common), a.others.end(),
                    b.others.end() - static_cast<std::ptrdiff_t>(common));
}

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

FigureLabel label_of(std::string_view name, const std::string& other_type) {
  FigureLabel label = take_label_apart(name);
  for (FigureSide* side : {&label.a, &label.b}) {
    std::erase_if(side->others, [](const std::string& word) { return is_measure_word(word); });
    if (side->dtype.empty()) side->dtype = other_type;  // the type may stand on the other axis
  }
  return label;
}

// The column says it, else the row, else the head of the rows' names, else the text around.
FigureMeasure measure_at(const FigureMeasure& column, const FigureMeasure& row,
                         const FigureMeasure& head, const FigureMeasure& around) {
  const auto unrelated = [](const FigureMeasure& m) { return m.kind == MeasureKind::unrelated; };
  if (unrelated(column)) return column;
  if (unrelated(row) && !row.place) return row;
  if (column.certain) return column;
  if (row.certain && !row.place) {
    FigureMeasure both = row;
    if (!column.words.empty()) both.words = column.words + " " + row.words;
    both.percent = both.percent || column.percent;
    return both;
  }
  if (column.kind != MeasureKind::unnamed) return column;
  for (const FigureMeasure* wider : {&head, &around}) {
    if (wider->certain && !wider->place) return *wider;
  }
  return column;
}

// 1 or 100 where all values of an agreement say so; empty: it cannot be told.
std::optional<double> whole_of(const std::vector<double>& values, bool percent, bool correlation) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  if (*least < (correlation ? -1.0 - kOverOne : 0.0) || *most > 100.0) return std::nullopt;
  if (percent) return *most > 1.0 ? std::optional(100.0) : std::nullopt;
  if (*most <= 1.0 + (correlation ? kOverOne : 0.0)) return 1.0;
  const bool counts = std::all_of(values.begin(), values.end(), [](double value) {
    return value == std::floor(value) && value != 100.0;
  });
  return counts || correlation ? std::nullopt : std::optional(100.0);
}

// Names of the columns, each once.
std::string columns_text(const FigureTable& table, const std::vector<std::size_t>& columns) {
  std::string text;
  std::size_t count = 0;
  for (const std::size_t column : columns) {
    if (++count > 6) return text + fmt::format(" and {} more", columns.size() - 6);
    text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ",
                        escape_for_display(table.columns[column]));
  }
  return text;
}

void note(std::vector<std::size_t>& columns, std::size_t column) {
  if (std::find(columns.begin(), columns.end(), column) == columns.end()) columns.push_back(column);
}

// A rerun or the finest type at 0, and none at 1 or 100: no agreement has its zero there.
bool zero_tells(const std::vector<FigureCell>& cells) {
  int finest = 0;
  for (const FigureCell& cell : cells) {
    if (cell.kind == PairKind::batch && cell.measure.kind == MeasureKind::unnamed) {
      finest = std::max(finest, figure_dtype_bits(cell.label.a.dtype));
    }
  }
  bool rerun_zero = false, fine_zero = true, full = false, any_fine = false;
  for (const FigureCell& cell : cells) {
    if (cell.measure.kind != MeasureKind::unnamed) continue;
    const bool rerun = cell.kind == PairKind::rerun;
    const bool fine =
        cell.kind == PairKind::batch && figure_dtype_bits(cell.label.a.dtype) == finest;
    if (!rerun && !fine) continue;
    full = full || cell.reported == 1.0 || cell.reported == 100.0;
    rerun_zero = rerun_zero || (rerun && cell.reported == 0.0);
    any_fine = any_fine || fine;
    fine_zero = fine_zero && (!fine || cell.reported == 0.0);
  }
  return !full && (rerun_zero || (any_fine && fine_zero));
}

struct Told {
  std::vector<std::size_t> of_one, of_hundred, no_scale, unrelated, unnamed;
};

void tell(const FigureTable& table, const Told& told, std::vector<Finding>& findings) {
  const auto add = [&](const char* id, Severity severity, const std::vector<std::size_t>& columns,
                       std::string_view what) {
    if (columns.empty()) return;
    Json names = Json::array();
    for (const std::size_t column : columns) names.push_back(table.columns[column]);
    findings.push_back(make_finding(id, severity,
                                    fmt::format("{}: {}", columns_text(table, columns), what),
                                    Json{{"columns", std::move(names)}}));
  };
  add("read_as_agreement", Severity::info, told.of_one,
      "an agreement of the two sides, taken as the difference 1 - x");
  add("read_as_agreement", Severity::info, told.of_hundred,
      "an agreement of the two sides in percent, taken as the difference 100 - x");
  add("agreement_without_scale", Severity::notice, told.no_scale,
      "an agreement of the two sides, but whether of 1 or of 100 cannot be told from the values; "
      "no "
      "conclusion is drawn from it");
  add("not_a_difference", Severity::notice, told.unrelated,
      "not known to be a difference of the two sides' results; no conclusion is drawn from it");
  add("measure_not_named", Severity::notice, told.unnamed,
      "what is measured is not named, so that it is not known to be a difference, where 0 means "
      "equal; no conclusion is drawn from it");
}

}  // namespace

std::vector<FigureCell> figure_cells(const FigureTable& table, bool pairs_in_rows) {
  std::vector<FigureMeasure> by_column, by_row;
  for (const std::string& column : table.columns) by_column.push_back(measure_of(column));
  for (const FigureTable::Row& row : table.rows) {
    by_row.push_back(measure_of(row.remarks + " " + row.label));
  }
  const FigureMeasure head = measure_of(table.label_column);
  const FigureMeasure around = measure_of(table.caption);
  std::vector<FigureCell> cells;
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const FigureTable::Row& row = table.rows[r];
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      if (!row.values[column]) continue;
      const std::string& name = pairs_in_rows ? row.label : table.columns[column];
      const std::string other =
          take_label_apart(pairs_in_rows ? table.columns[column] : row.label).a.dtype;
      FigureCell cell;
      cell.label = label_of(name, other);
      cell.kind = kind_of(cell.label);
      cell.name = name;
      cell.group = pairs_in_rows ? column : r;
      cell.column = column;
      cell.reported = *row.values[column];
      cell.value = std::abs(cell.reported);
      cell.measure = measure_at(by_column[column], by_row[r], head, around);
      cells.push_back(std::move(cell));
    }
  }
  return cells;
}

std::vector<FigureCell> keep_differences(const FigureTable& table, std::vector<FigureCell> cells,
                                         std::vector<Finding>& findings) {
  std::erase_if(cells, [](const FigureCell& cell) { return cell.kind == PairKind::unknown; });
  // Agreements of one family are printed on one scale.
  std::optional<double> wholes[2][2];
  for (const bool percent : {false, true}) {
    for (const bool correlation : {false, true}) {
      std::vector<double> values;
      for (const FigureCell& cell : cells) {
        if (cell.measure.kind == MeasureKind::agreement && cell.measure.percent == percent &&
            cell.measure.correlation == correlation) {
          values.push_back(cell.reported);
        }
      }
      if (!values.empty()) wholes[percent][correlation] = whole_of(values, percent, correlation);
    }
  }
  const bool unnamed_is_difference = zero_tells(cells);
  Told told;
  std::vector<FigureCell> kept;
  for (FigureCell& cell : cells) {
    const FigureMeasure& measure = cell.measure;
    if (measure.kind == MeasureKind::agreement) {
      const auto whole = wholes[measure.percent][measure.correlation];
      note(!whole ? told.no_scale : *whole == 1.0 ? told.of_one : told.of_hundred, cell.column);
      if (!whole) continue;
      cell.whole = *whole;
      cell.value = std::max(0.0, *whole - cell.reported);
    } else if (measure.kind == MeasureKind::unrelated) {
      note(told.unrelated, cell.column);
      continue;
    } else if (measure.kind == MeasureKind::unnamed) {
      const bool batches = cell.kind == PairKind::batch || cell.kind == PairKind::rerun;
      if (!batches || !unnamed_is_difference) {
        note(told.unnamed, cell.column);
        continue;
      }
    }
    kept.push_back(std::move(cell));
  }
  tell(table, told, findings);
  return kept;
}

std::string measure_text(const FigureTable& table, const FigureCell& cell) {
  std::string name = escape_for_display(table.columns[cell.column]);
  const bool elsewhere = measure_of(table.columns[cell.column]).words != cell.measure.words;
  if (elsewhere) name += fmt::format(" ({})", escape_for_display(cell.measure.words));
  return cell.whole > 0.0 ? fmt::format("{} - {}", cell.whole, name) : name;
}

bool names_a_maximum(std::string_view column) {
  const std::vector<std::string> words = figure_words(column);
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word == "max" || word == "maximum" || word == "largest" || word == "worst";
  });
}

std::string figure_text_of(double value) { return fmt::format("{:.6g}", value); }

TypeShrink shrink_of(const FigureCell& coarse, const FigureCell& fine) {
  const int bits = figure_dtype_bits(fine.label.a.dtype) - figure_dtype_bits(coarse.label.a.dtype);
  TypeShrink shrink;
  shrink.full = std::ldexp(1.0, bits * (fine.measure.squared ? 2 : 1));
  shrink.factor =
      fine.value > 0.0 ? coarse.value / fine.value : std::numeric_limits<double>::infinity();
  const double linear = fine.measure.squared ? std::sqrt(shrink.factor) : shrink.factor;
  const double enough = std::max(kSteadyFold, std::min(kRoundingFold, std::ldexp(0.5, bits)));
  // More than half of all flipped: flips cannot grow as rounding does.
  const bool share =
      fine.whole > 0.0 || fine.measure.percent || fine.measure.kind == MeasureKind::unnamed;
  const double whole = fine.whole > 0.0 ? fine.whole : 100.0;
  const bool full = share && coarse.value <= whole && fine.value > 0.5 * whole;
  shrink.verdict = linear >= enough                ? Shrinks::as_rounding
                   : linear < kSteadyFold && !full ? Shrinks::not_at_all
                                                   : Shrinks::undecided;
  return shrink;
}

std::string shrink_text(const TypeShrink& shrink, const FigureCell& coarse,
                        const FigureCell& fine) {
  const std::string types = fmt::format("from {} to {}", coarse.label.a.dtype, fine.label.a.dtype);
  if (std::isinf(shrink.factor)) return "it vanishes " + types;
  const std::string steps = fmt::format("(the types' own steps: {:.0f}-fold)", shrink.full);
  if (shrink.verdict == Shrinks::as_rounding) {
    return fmt::format("it shrinks {:.5g}-fold {} {}", shrink.factor, types, steps);
  }
  if (shrink.verdict == Shrinks::not_at_all) {
    return fmt::format("it does not shrink with the type as rounding would: {:.4g}-fold {} {}",
                       shrink.factor, types, steps);
  }
  return fmt::format("it shrinks only {:.4g}-fold {} {}", shrink.factor, types, steps);
}

}  // namespace driftscope
