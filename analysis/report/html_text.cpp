// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/compare/value_words.h"
#include "analysis/report/html_parts.h"
#include "kernels/base/display_text.h"

namespace driftscope::html {

std::string escape(std::string_view text) {
  std::string safe;
  for (const char c : escape_for_display(text)) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string figure(double value) {
  if (std::isnan(value)) return "–";
  if (std::isinf(value)) return value > 0 ? "∞" : "−∞";
  return fmt::format("{:.4g}", value);
}

std::string token_text(const Comparison& comparison, const std::optional<TokenId>& id) {
  if (!id) return "(end)";
  const TokenPiece* piece = comparison.piece(*id);
  return piece == nullptr ? fmt::format("#{}", id->value) : piece->bytes;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8U | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += k <= count ? kDigits[(group >> (18U - 6U * k)) & 0x3FU] : '=';
    }
  }
  return text;
}

namespace {

constexpr std::size_t kRibbonTokens = 4000;

const LaneView* free_lane(const Comparison& comparison, Lane lane) {
  const auto found = std::find_if(comparison.lanes.begin(), comparison.lanes.end(),
                                  [lane](const LaneView& view) { return view.lane == lane; });
  return found == comparison.lanes.end() ? nullptr : &*found;
}

std::string ribbon(const Comparison& comparison, const LaneView& lane, std::string_view css_class,
                   std::int64_t marked) {
  std::string html =
      fmt::format("<div class=\"ribbon {}\"><b>{}</b> ", css_class, css_class == "a" ? "A" : "B");
  const std::size_t shown = std::min(lane.tokens.size(), kRibbonTokens);
  for (std::size_t i = 0; i < shown; ++i) {
    const bool here = static_cast<std::int64_t>(i) == marked;
    const std::string id = interned(comparison) ? "" : fmt::format(", id {}", lane.tokens[i].value);
    html += fmt::format("<span{} title=\"step {}{}\">{}</span>",
                        here                                                   ? " class=\"parted\""
                        : marked >= 0 && static_cast<std::int64_t>(i) > marked ? " class=\"after\""
                                                                               : "",
                        i, id, escape(token_text(comparison, lane.tokens[i])));
  }
  if (shown < lane.tokens.size()) {
    html += fmt::format(" <i>… and {} more</i>", lane.tokens.size() - shown);
  }
  if (!lane.stop.empty()) html += fmt::format(" <i>[{}]</i>", escape(lane.stop));
  return html + "</div>\n";
}

struct RankedRow {
  TokenId token{};
  std::optional<std::size_t> rank_a, rank_b;
  std::optional<double> logit_a, logit_b;
};

std::vector<RankedRow> ranked_rows(const StepMetrics& metrics) {
  std::vector<RankedRow> rows;
  for (std::size_t i = 0; i < metrics.top_a.size(); ++i) {
    rows.push_back({.token = metrics.top_a[i].token,
                    .rank_a = i,
                    .rank_b = {},
                    .logit_a = double{metrics.top_a[i].logit},
                    .logit_b = {}});
  }
  for (std::size_t i = 0; i < metrics.top_b.size(); ++i) {
    const TokenId token = metrics.top_b[i].token;
    auto row = std::find_if(rows.begin(), rows.end(),
                            [token](const RankedRow& entry) { return entry.token == token; });
    if (row == rows.end()) {
      rows.push_back({.token = token, .rank_a = {}, .rank_b = {}, .logit_a = {}, .logit_b = {}});
      row = rows.end() - 1;
    }
    row->rank_b = i;
    row->logit_b = double{metrics.top_b[i].logit};
  }
  return rows;
}

std::string rank_cell(const std::optional<std::size_t>& rank) {
  return rank ? fmt::format("<td>{}</td>", *rank + 1) : std::string("<td>–</td>");
}
std::string logit_cell(const std::optional<double>& logit) {
  return logit ? fmt::format("<td>{:.6g}</td>", *logit) : std::string("<td>–</td>");
}

}  // namespace

std::string token_ribbons(const Comparison& comparison) {
  const std::int64_t marked =
      comparison.first_divergence ? comparison.first_divergence->step : std::int64_t{-1};
  std::string html;
  for (const auto& [lane, css_class] : {std::pair{Lane::a, "a"}, std::pair{Lane::b, "b"}}) {
    const LaneView* view = free_lane(comparison, lane);
    if (view != nullptr) html += ribbon(comparison, *view, css_class, marked);
  }
  return html;
}

std::string ranking_table(const Comparison& comparison, const StepComparison& step) {
  const bool ids = !interned(comparison);
  std::string html = in_fitting_words(
      comparison,
      fmt::format("<table><thead><tr><th>token</th>{}<th>rank A</th><th>rank B</th>"
                  "<th>logit A</th><th>logit B</th><th>B − A</th></tr></thead><tbody>\n",
                  ids ? "<th>id</th>" : ""));
  for (const RankedRow& row : ranked_rows(step.metrics)) {
    const bool both = row.logit_a && row.logit_b && numbers_comparable(comparison);
    html += fmt::format("<tr{}><td class=\"text\">{}</td>{}{}{}{}{}<td>{}</td></tr>\n",
                        row.rank_a != row.rank_b ? " class=\"moved\"" : "",
                        escape(token_text(comparison, row.token)),
                        ids ? fmt::format("<td>{}</td>", row.token.value) : "",
                        rank_cell(row.rank_a), rank_cell(row.rank_b), logit_cell(row.logit_a),
                        logit_cell(row.logit_b), both ? figure(*row.logit_b - *row.logit_a) : "–");
  }
  return html + "</tbody></table>\n";
}

}  // namespace driftscope::html
