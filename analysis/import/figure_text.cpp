// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/figure_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace driftscope::figure_text {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::optional<double> cell_number(std::string_view cell) {
  // "0.72 ± 0.1", "0.72 (step 3)"
  for (const std::string_view tail : {"\u00b1", "+/-", "("}) {
    const std::size_t at = cell.find(tail);
    if (at != std::string_view::npos && at > 0) cell = cell.substr(0, at);
  }
  constexpr std::string_view kMarks = " \t\r\n*`+<~%";
  const std::size_t first = cell.find_first_not_of(kMarks);
  if (first == std::string_view::npos) return std::nullopt;
  cell = cell.substr(first, cell.find_last_not_of(kMarks) - first + 1);
  double value = 0.0;
  const auto [end, code] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (cell.empty() || code != std::errc() || end != cell.data() + cell.size()) return std::nullopt;
  return value;
}

namespace {

constexpr std::size_t kMostAround = 1000;  // bytes of text beside a table

std::vector<std::string> split_cells(std::string_view line, char separator) {
  std::vector<std::string> cells;
  std::string cell;
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == separator && !quoted) {
      cells.emplace_back(trimmed(cell));
      cell.clear();
    } else {
      cell += c;
    }
  }
  cells.emplace_back(trimmed(cell));
  return cells;
}

bool is_rule(std::string_view line) {
  return contains(line, "-") && line.find_first_not_of("|-: \t\r+") == std::string_view::npos;
}

std::optional<std::vector<std::vector<std::string>>> text_cells(std::string_view text,
                                                                std::string& around) {
  std::vector<std::vector<std::string>> lines;
  char separator = 0;
  std::size_t cells = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || is_rule(line)) continue;
    if (separator == 0) {
      separator = line.starts_with('|')  ? '|'
                  : contains(line, "\t") ? '\t'
                  : contains(line, ",")  ? ','
                  : contains(line, ";")  ? ';'
                                         : '\0';
      if (separator == 0) return std::nullopt;
    }
    if (separator == '|') {
      if (!line.starts_with('|')) {
        if (around.size() < kMostAround) around += std::string(line) + " ";
        continue;
      }
      line.remove_prefix(1);
      if (line.ends_with('|')) line.remove_suffix(1);
    }
    lines.push_back(split_cells(line, separator));
    cells += lines.back().size();
    if (lines.back().size() != lines.front().size() || cells > kMostCells) return std::nullopt;
  }
  if (lines.size() < 2 || lines.front().size() < 2) return std::nullopt;
  return lines;
}

struct KlName {
  std::string_view name;
  std::array<std::string_view, 4> parts;  // all of these, those that are empty left out
};
// Matched against a name without its spaces, dots and underscores.
constexpr std::array kKlNames{
    KlName{"kld_mean", {"mean", "kl", "", ""}},     KlName{"kld_max", {"max", "kl", "", ""}},
    KlName{"kld_median", {"median", "kl", "", ""}}, KlName{"kld_min", {"min", "kl", "", ""}},
    KlName{"kld_p999", {"999", "kl", "", ""}},      KlName{"kld_p99", {"99", "kl", "", ""}},
    KlName{"same_top", {"same", "top", "", ""}},    KlName{"rms_dp", {"rms", "dp", "", ""}},
    KlName{"ppl_base", {"ppl", "base", "", ""}},    KlName{"ppl_q", {"ppl", "", "", ""}}};

}  // namespace

// Columns of numbers under names, the first other column names the rows.
std::optional<FigureTable> table_of(const std::vector<std::string>& heads,
                                    const std::vector<std::vector<std::string>>& lines) {
  FigureTable table;
  std::vector<std::size_t> numeric, remarks;
  std::optional<std::size_t> label;
  for (std::size_t column = 0; column < heads.size(); ++column) {
    bool any = false, all = true;
    for (const auto& line : lines) {
      const std::string_view cell = line[column];
      const bool empty = cell.empty() || cell == "-" || lower(cell) == "n/a" || cell == "null";
      any = any || cell_number(cell).has_value();
      all = all && (empty || cell_number(cell));
    }
    if (any && all) {
      numeric.push_back(column);
    } else if (!label) {
      label = column;
    } else {
      remarks.push_back(column);
    }
  }
  if (numeric.empty()) return std::nullopt;
  if (label) table.label_column = heads[*label];
  for (const std::size_t column : numeric) table.columns.push_back(heads[column]);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    FigureTable::Row row{label ? lines[i][*label] : fmt::format("row {}", i), {}, {}};
    for (const std::size_t column : remarks) row.remarks += lines[i][column] + " ";
    for (const std::size_t column : numeric) row.values.push_back(cell_number(lines[i][column]));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::optional<FigureTable> text_table(std::string_view text) {
  std::string around;
  const auto cells = text_cells(text, around);
  if (!cells) return std::nullopt;
  // A heading of numbers is no heading.
  for (const std::string& head : cells->front()) {
    if (head.empty() || cell_number(head)) return std::nullopt;
  }
  auto table = table_of(cells->front(), {cells->begin() + 1, cells->end()});
  if (table) table->caption = std::move(around);
  return table;
}

std::string_view kl_name_of(std::string_view key) {
  std::string name;
  for (const char c : lower(key)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
  }
  for (const KlName& row : kKlNames) {
    if (std::all_of(row.parts.begin(), row.parts.end(),
                    [&](std::string_view part) { return contains(name, part); })) {
      return row.name;
    }
  }
  return {};
}

// "Mean    KLD:   0.000796 ±   0.000049", as llama.cpp prints its statistics.
void read_printed_statistics(std::string_view text, ReportedFigures& out) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::size_t colon = line.rfind(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view name = kl_name_of(line.substr(0, colon));
    const auto value = cell_number(line.substr(colon + 1));
    if (!name.empty() && value) out.kl.try_emplace(std::string(name), *value);
  }
}

}  // namespace driftscope::figure_text
