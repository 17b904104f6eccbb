// SPDX-License-Identifier: Apache-2.0
// Lists of differences, given as such or made of two columns of values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "analysis/compare/difference_grid.h"
#include "analysis/compare/findings.h"
#include "analysis/responses/figure_measures.h"
#include "analysis/responses/figure_rules.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPrinted = 1e-6;  // half a unit of the last digit that reports print, at the least
constexpr double kBf16Step = 0.125;  // of logits between 16 and 32
constexpr double kPlaceholder = 9999.0;
constexpr double kNoFigure = 1e8;  // no difference of logits or logprobs is as large

std::string number(double value) { return fmt::format("{:.5g}", value); }

std::string grid_text(const DifferenceGrid& grid) {
  return fmt::format(
      "{} of {} that are not 0 are multiples of {}: the values were rounded to a "
      "coarse type before they were compared (quantised logits grid: bf16 logits "
      "between 16 and 32 stand 0.125 apart, types of 8 bits further), so ties and "
      "flips by one step are to be expected",
      grid.on_grid, grid.count, grid.step);
}

struct Kept {
  std::vector<double> values;
  std::vector<std::size_t> indices;  // in the list
};

// "2, 5 and 7 more"
std::string indices_text(const std::vector<std::size_t>& indices) {
  std::string text;
  for (std::size_t i = 0; i < indices.size() && i < 6; ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", indices[i]);
  }
  if (indices.size() > 6) text += fmt::format(" and {} more", indices.size() - 6);
  return text;
}

Kept keep_values(const FigureList& list, std::vector<Finding>& findings) {
  Kept kept;
  std::vector<std::size_t> no_number, placeholder, missing;
  for (std::size_t i = 0; i < list.values.size(); ++i) {
    const auto& value = list.values[i];
    if (!value) {
      missing.push_back(i);
    } else if (!std::isfinite(*value)) {
      no_number.push_back(i);
    } else if (is_figure_placeholder(*value)) {
      placeholder.push_back(i);
    } else {
      kept.values.push_back(*value);
      kept.indices.push_back(i);
    }
  }
  const auto tell = [&](const char* id, Severity severity, const std::vector<std::size_t>& at,
                        const std::string& what) {
    if (at.empty()) return;
    findings.push_back(
        make_finding(id, severity,
                     fmt::format("{}: {} at index {} (from 0): left out, {} of {} are read",
                                 escape_for_display(list.name), what, indices_text(at),
                                 kept.values.size(), list.values.size()),
                     Json{{"count", at.size()}, {"first_index", at.front()}}));
  };
  if (!no_number.empty()) {
    const double value = *list.values[no_number.front()];
    tell("not_a_number", Severity::error, no_number,
         std::isnan(value) ? "NaN, not a number," : "an infinity");
  }
  if (!placeholder.empty()) {
    tell("placeholder_left_out", Severity::warning, placeholder,
         fmt::format("the placeholder {}", number(*list.values[placeholder.front()])));
  }
  tell("no_value", Severity::info, missing, "no value");
  return kept;
}

// A column of one side's values: logprobs or logits, and no difference.
bool holds_values(const std::string& column) {
  const FigureMeasure measure = measure_of(column);
  const auto has = [&](std::string_view part) {
    std::string name = column;
    std::erase_if(name, [](char c) { return c == '_' || c == ' ' || c == '-'; });
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
      return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    });
    return name.find(part) != std::string::npos;
  };
  return measure.kind != MeasureKind::difference && measure.kind != MeasureKind::agreement &&
         (has("logprob") || has("logit"));
}

struct ValueColumns {
  std::vector<std::size_t> sides;
  std::optional<std::size_t> steps;
};

// By their names; else, where each row is a token, two columns of log probabilities.
ValueColumns value_columns(const FigureTable& table) {
  ValueColumns found;
  std::vector<std::size_t> unnamed;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    const FigureMeasure measure = measure_of(table.columns[column]);
    if (holds_values(table.columns[column])) {
      found.sides.push_back(column);
    } else if (measure.place) {
      if (!found.steps) found.steps = column;
    } else {
      const bool below = std::all_of(table.rows.begin(), table.rows.end(), [&](const auto& row) {
        return !row.values[column] || *row.values[column] <= 0.0;
      });
      const bool any = std::any_of(table.rows.begin(), table.rows.end(), [&](const auto& row) {
        return row.values[column] && *row.values[column] < 0.0;
      });
      if (below && any && measure.kind == MeasureKind::unnamed) unnamed.push_back(column);
    }
  }
  const std::vector<std::string> head = figure_words(table.label_column);
  const bool tokens = std::any_of(head.begin(), head.end(), [](const std::string& word) {
    return word == "token" || word == "tokens" || word == "piece";
  });
  if (found.sides.empty() && tokens && unnamed.size() == 2) found.sides = unnamed;
  return found;
}

}  // namespace

bool is_figure_placeholder(double value) {
  return std::abs(value) == kPlaceholder || std::abs(value) >= kNoFigure;
}

void judge_list(const FigureList& list, std::vector<Finding>& findings) {
  const Kept kept = keep_values(list, findings);
  const std::vector<double>& values = kept.values;
  if (values.empty()) return;
  const auto size = [](double x, double y) { return std::abs(x) < std::abs(y); };
  const auto place = static_cast<std::size_t>(std::max_element(values.begin(), values.end(), size) -
                                              values.begin());
  const double largest = std::abs(values[place]);
  const std::size_t at = kept.indices[place];
  double sum = 0.0;
  for (const double value : values) sum += std::abs(value);
  const double mean = sum / static_cast<double>(values.size());
  const auto zeros = std::count(values.begin(), values.end(), 0.0);
  const auto below = std::count_if(values.begin(), values.end(), [](double v) { return v < 0.0; });
  findings.push_back(make_finding(
      "difference_list", Severity::info,
      fmt::format(
          "{}: n = {}, max {} at index {} (from 0), mean {} (absolute){}. The same tokens on "
          "both sides are taken on trust; a list of differences says how far, not why",
          escape_for_display(list.name), values.size(), number(largest), at,
          fmt::format("{:.5g}", mean),
          zeros > 0 ? fmt::format(", {} exactly 0", zeros) : std::string()),
      Json{{"n", values.size()},
           {"max", largest},
           {"max_index", at},
           {"mean", mean},
           {"zeros", zeros},
           {"negative", below}}));
  if (sum > 0.0 && values.size() >= 4 && largest > 0.5 * sum) {
    findings.push_back(make_finding(
        "one_place_dominates", Severity::notice,
        fmt::format(
            "{:.0f}% of all difference stands at index {}{}", 100.0 * largest / sum, at,
            at == 0 ? ", the first token: look at the hand-over from prompt to decoding" : ""),
        Json{{"index", at}, {"share", largest / sum}}));
  }
  if (below > 0 && below < static_cast<std::ptrdiff_t>(values.size())) {
    findings.push_back(make_finding(
        "both_signs", Severity::info,
        fmt::format("{} of {} differences are negative: both signs, as rounding has them", below,
                    values.size()),
        Json{{"negative", below}}));
  }
  const double allowed = 2.0 * kBf16Step;
  if (largest > allowed) {
    findings.push_back(make_finding(
        "beyond_bf16_step", Severity::notice,
        fmt::format("The largest, {}, is more than bf16 rounding of two logits between 16 and 32 "
                    "makes ({}): rounding inside the model added up, or the engines compute "
                    "differently",
                    number(largest), number(allowed)),
        Json{{"max", largest}, {"allowed", allowed}}));
  }
  if (const auto grid = find_difference_grid(values, kPrinted)) {
    findings.push_back(make_finding("quantised_logits_grid", Severity::notice,
                                    "Differences: " + grid_text(*grid),
                                    Json{{"step", grid->step}}));
  }
}

bool judge_value_pairs(const FigureTable& table, std::vector<Finding>& findings) {
  const ValueColumns columns = value_columns(table);
  if (columns.sides.size() != 2) return false;
  const std::vector<std::size_t>& sides = columns.sides;
  const std::optional<std::size_t> steps = columns.steps;
  FigureList list;
  list.name = table.columns[sides[0]] + " - " + table.columns[sides[1]];
  const FigureTable::Row* first = nullptr;
  const FigureTable::Row* largest = nullptr;
  double first_by = 0.0, largest_by = 0.0;
  std::int64_t count = 0;
  for (const FigureTable::Row& row : table.rows) {
    const auto& a = row.values[sides[0]];
    const auto& b = row.values[sides[1]];
    list.values.push_back(a && b ? std::optional(*a - *b) : std::nullopt);
    if (!a || !b) continue;
    ++count;
    const double by = *a - *b;
    if (by != 0.0 && first == nullptr) {
      first = &row;
      first_by = by;
    }
    if (std::abs(by) > std::abs(largest_by)) {
      largest = &row;
      largest_by = by;
    }
  }
  if (count == 0) return false;
  const auto place = [&](const FigureTable::Row* row) {
    const std::string label = escape_for_display(row->label);
    return steps && row->values[*steps]
               ? fmt::format("step {:.10g} (\"{}\")", *row->values[*steps], label)
               : fmt::format("row {} from 0 (\"{}\")", row - table.rows.data(), label);
  };
  const std::string name = escape_for_display(list.name);
  findings.push_back(make_finding(
      "value_pairs", first == nullptr ? Severity::info : Severity::notice,
      first == nullptr
          ? fmt::format("{}: equal in all {} rows as far as printed", name, count)
          : fmt::format("{}: {} rows with both; first other at {}, by {}; the largest difference "
                        "is {} at {}",
                        name, count, place(first), number(first_by), number(largest_by),
                        place(largest)),
      Json{{"rows", count},
           {"first_row", first == nullptr ? Json(nullptr) : Json(first - table.rows.data())},
           {"largest_row", largest == nullptr ? Json(nullptr) : Json(largest - table.rows.data())},
           {"largest", largest_by}}));
  if (first != nullptr) judge_list(list, findings);
  return true;
}

}  // namespace driftscope
