// SPDX-License-Identifier: Apache-2.0
// What the readers of reported figures share: cells, tables of cells, names of KL statistics.
// Internal to analysis/import.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/import/reported_figures.h"

namespace driftscope::figure_text {

inline constexpr std::size_t kMostCells = 1 << 20;

[[nodiscard]] std::string lower(std::string_view text);
[[nodiscard]] bool contains(std::string_view text, std::string_view part);
[[nodiscard]] std::string_view trimmed(std::string_view text);
// A cell that is a number; marks around it, an error and a remark behind it are taken off.
[[nodiscard]] std::optional<double> cell_number(std::string_view cell);
// Columns of numbers under names; the first other column names the rows. Lines are as long as
// heads.
[[nodiscard]] std::optional<FigureTable> table_of(
    const std::vector<std::string>& heads, const std::vector<std::vector<std::string>>& lines);
// CSV (comma or semicolon), TSV or a Markdown table.
[[nodiscard]] std::optional<FigureTable> text_table(std::string_view text);
// The name under which ReportedFigures::kl keeps a statistic; empty: none of them.
[[nodiscard]] std::string_view kl_name_of(std::string_view key);
// Statistics as llama.cpp prints them.
void read_printed_statistics(std::string_view text, ReportedFigures& out);

}  // namespace driftscope::figure_text
