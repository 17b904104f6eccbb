// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/compare/listed_step.h"
#include "analysis/compare/value_words.h"
#include "analysis/report/documents.h"
#include "analysis/report/html_parts.h"

namespace driftscope {
namespace {

using html::escape;
using html::figure;

std::string row(std::string_view head, std::string_view text) {
  return fmt::format("<tr><td>{}</td><td class=\"text\">{}</td></tr>\n", escape(head),
                     escape(text));
}

bool is_same(Tier tier) { return tier == Tier::bitwise || tier == Tier::tolerance; }

bool is_import(const Comparison& comparison) {
  return comparison.imported_a || comparison.imported_b;
}

// Of lists nothing is known of the drift, which is taken over whole rows.
std::string drift_text(const Comparison& comparison, const Divergence& divergence) {
  if (comparison.listed()) {
    return "not known: it is taken over the whole vocabulary, and the files list a few tokens of "
           "each step";
  }
  return fmt::format("{} against {} usually ({} times)", figure(divergence.drift),
                     figure(divergence.usual_drift), figure(divergence.drift_excess));
}

std::string divergence_rows(const Comparison& comparison, const Divergence& divergence) {
  const auto side = [&](const std::optional<TokenId>& token, double margin) {
    const bool unknown = std::isnan(margin) && is_import(comparison);
    return fmt::format("{} (margin {})", html::token_text(comparison, token),
                       unknown ? "not known" : figure(margin));
  };
  return row("step", fmt::format("{}", divergence.step)) +
         row("A", side(divergence.token_a, divergence.margin_a)) +
         row("B", side(divergence.token_b, divergence.margin_b)) +
         row("drift there", drift_text(comparison, divergence)) +
         row("cause", name_of(divergence.cause)) + row("because", divergence.reason);
}

bool same_place(const Divergence& x, const Divergence& y) {
  return x.step == y.step && x.token_a == y.token_a && x.token_b == y.token_b;
}

std::string flip_section(const Comparison& comparison) {
  if (!comparison.first_flip) return "";
  std::string page = "<h2>First flip on A's own tokens</h2>";
  if (comparison.first_divergence &&
      same_place(*comparison.first_divergence, *comparison.first_flip)) {
    return page + fmt::format("<p class=\"note\">The same step, {}, with the same tokens.</p>\n",
                              comparison.first_flip->step);
  }
  return page + "<table><tbody>\n" + divergence_rows(comparison, *comparison.first_flip) +
         "</tbody></table>\n";
}

// A finding repeats the reason of its divergence, which stands in the table above it: once is
// enough on one page.
std::string_view without_reason(std::string_view text, const std::optional<Divergence>& shown) {
  if (!shown || shown->reason.empty() || !text.ends_with(shown->reason)) return text;
  text.remove_suffix(shown->reason.size());
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::string verdict_section(const Comparison& comparison) {
  std::string page =
      fmt::format("<div class=\"verdict {}\"><b>{}</b><br>{}</div>\n",
                  is_same(comparison.verdict) ? "same" : "parted",
                  escape(name_of(comparison.verdict)), escape(comparison.verdict_text));
  if (comparison.first_divergence) {
    page += "<h2>First divergence</h2><table><tbody>\n" +
            divergence_rows(comparison, *comparison.first_divergence) + "</tbody></table>\n";
  }
  page += flip_section(comparison);
  page +=
      "<h2>Tiers</h2><table><thead><tr><th>tier</th><th>holds</th><th class=\"text\">detail</th>"
      "</tr></thead><tbody>\n";
  for (const TierCheck& check : comparison.tiers) {
    page += fmt::format("<tr><td>{}</td><td>{}</td><td class=\"text\">{}</td></tr>\n",
                        escape(name_of(check.tier)),
                        !check.holds   ? "not checked"
                        : *check.holds ? "yes"
                                       : "no",
                        escape(check.detail));
  }
  return page + "</tbody></table>\n";
}

std::string findings_section(const Comparison& comparison) {
  std::string page = "<h2>Findings</h2>\n";
  if (comparison.findings.empty()) return page + "<p class=\"note\">None.</p>\n";
  page += "<ul>\n";
  for (const Finding& finding : comparison.findings) {
    const std::string_view text = without_reason(
        without_reason(finding.text, comparison.first_divergence), comparison.first_flip);
    page += fmt::format("<li class=\"{}\"><b>{}</b> {}</li>\n", escape(name_of(finding.severity)),
                        escape(name_of(finding.severity)), escape(text));
  }
  return page + "</ul>\n";
}

// The prompt in tokens, if those are known.
std::string prompt_length(const Comparison& comparison) {
  if (is_import(comparison) && comparison.prompt_a.empty()) return "not known as tokens";
  return fmt::format("{} tokens", comparison.prompt_a.size());
}

std::string prompt_words(const Comparison& comparison) {
  if (!comparison.prompt_text.empty() || !is_import(comparison)) return comparison.prompt_text;
  const bool known = comparison.imported_a && !comparison.imported_a->prompt_text.empty();
  return known ? comparison.imported_a->prompt_text : "not known: the files do not repeat it";
}

std::string runs_section(const Comparison& comparison) {
  std::string page = "<h2>Runs</h2><table><tbody>\n";
  const auto model = [&](const std::string& name) {
    return name.empty() && is_import(comparison) ? std::string("not known") : name;
  };
  page += row("model A", model(comparison.model_a)) + row("model B", model(comparison.model_b));
  page += row("configuration A", comparison.config_a_name) +
          row("configuration B", comparison.config_b_name);
  page += row("state", trace_state_name(comparison.state));
  page += row("steps compared", describe_steps(comparison));
  page += row("equal tokens at the start", fmt::format("{}", comparison.tokens_equal));
  page += row("prompt", prompt_length(comparison));
  page += row("prompt text", prompt_words(comparison));
  if (comparison.control.present) {
    page +=
        row("A run again", fmt::format("{} steps, largest difference {}", comparison.control.steps,
                                       figure(comparison.control.max_abs)));
  }
  page += "</tbody></table>\n";
  if (!comparison.command.empty()) {
    page +=
        fmt::format("<p class=\"note\">To repeat:</p><pre>{}</pre>\n", escape(comparison.command));
  }
  page += "<h2>What differs between A and B</h2>\n";
  if (comparison.envelope_difference.empty()) {
    return page + fmt::format("<p class=\"note\">{}</p>\n", is_import(comparison)
                                                                ? "No field that both files state."
                                                                : "Nothing.");
  }
  page +=
      "<table><thead><tr><th>field</th><th class=\"text\">A</th><th class=\"text\">B</th></tr>"
      "</thead><tbody>\n";
  for (const FieldDifference& difference : comparison.envelope_difference) {
    page +=
        fmt::format("<tr><td>{}</td><td class=\"text\">{}</td><td class=\"text\">{}</td></tr>\n",
                    escape(difference.field), escape(difference.a), escape(difference.b));
  }
  return page + "</tbody></table>\n";
}

std::vector<double> column(const Comparison& comparison, std::string_view metric) {
  std::vector<double> values;
  const auto index = metric_index(metric);
  for (const auto& step : comparison.steps) {
    values.push_back(index && *index < step->metrics.values.size()
                         ? step->metrics.values[*index]
                         : std::numeric_limits<double>::quiet_NaN());
  }
  return values;
}

template <class Value>
std::vector<double> computed_column(const Comparison& comparison, Value value) {
  std::vector<double> values;
  for (const auto& step : comparison.steps) values.push_back(value(*step));
  return values;
}

// Of lists, differences are known of the tokens that both sides list; of rows of two kinds, what is
// left without the shift of each row.
std::vector<html::Series> difference_series(const Comparison& comparison) {
  if (!comparison.listed() && !numbers_comparable(comparison)) {
    return {{"rms", "d", column(comparison, "centred_rms")}};
  }
  if (!comparison.listed()) {
    return {{"max", "c", column(comparison, "max_abs")}, {"rms", "d", column(comparison, "rms")}};
  }
  return {{"largest", "c",
           computed_column(
               comparison,
               [](const StepComparison& step) { return largest_listed_difference(step.metrics); })},
          {"A's token", "d", computed_column(comparison, [](const StepComparison& step) {
             return listed_difference(step.metrics, step.token_a);
           })}};
}

std::string difference_title(const Comparison& comparison) {
  if (comparison.listed()) return "Difference of the logits that both sides list";
  if (numbers_comparable(comparison)) return "Difference of the logits";
  return "Difference of the rows, less the mean of each";
}

std::string difference_plot(const Comparison& comparison, const std::string& unit,
                            std::int64_t marked) {
  if (comparison.listed() && !numbers_comparable(comparison)) {
    return "<p class=\"note\">Differences are not known: the sides' numbers are not of one kind."
           "</p>\n";
  }
  return html::line_plot(difference_series(comparison),
                         {.title = in_fitting_words(comparison, difference_title(comparison)),
                          .unit = unit + ", logarithmic",
                          .logarithmic = true,
                          .marked_step = marked});
}

std::string plots_section(const Comparison& comparison) {
  const std::string unit(value_unit(comparison));
  const std::int64_t marked = comparison.first_divergence ? comparison.first_divergence->step
                              : comparison.first_flip     ? comparison.first_flip->step
                                                          : -1;
  std::string page = "<h2>Along the run</h2>\n";
  page += difference_plot(comparison, unit, marked);
  page += html::line_plot(
      {{"A", "a", column(comparison, "margin_a")}, {"B", "b", column(comparison, "margin_b")}},
      {.title = "Margin of the best token",
       .unit = unit,
       .logarithmic = false,
       .marked_step = marked});
  page += html::line_plot({{"pairs", "c", column(comparison, "rank_flips")}},
                          {.title = "Pairs of the top K in another order",
                           .unit = "pairs",
                           .logarithmic = false,
                           .marked_step = marked});
  return page + html::tap_heatmap(comparison);
}

// The step worth a look: where the runs part, else where a choice flips, else where they differ
// most.
const StepComparison* chosen_step(const Comparison& comparison) {
  if (comparison.steps.empty()) return nullptr;
  std::int64_t wanted = 0;
  if (comparison.first_divergence) {
    wanted = comparison.first_divergence->step;
  } else if (comparison.first_flip) {
    wanted = comparison.first_flip->step;
  } else if (comparison.listed()) {
    double largest = 0.0;
    for (const auto& step : comparison.steps) {
      const double size = largest_listed_difference(step->metrics);
      if (!(size > largest) || !numbers_comparable(comparison)) continue;  // or not known
      largest = size;
      wanted = step->step;
    }
  } else {
    for (const RunStatistic& statistic : comparison.statistics) {
      if (statistic.metric == "max_abs") wanted = std::max<std::int64_t>(0, statistic.argmax_step);
    }
  }
  for (const auto& step : comparison.steps) {
    if (step->step == wanted) return step.get();
  }
  return comparison.steps.back().get();
}

std::string ranking_section(const Comparison& comparison) {
  const StepComparison* step = chosen_step(comparison);
  if (step == nullptr) return "";
  return fmt::format("<h2>Best tokens at step {}</h2>\n", step->step) +
         html::ranking_table(comparison, *step);
}

// The rows that the table lacks, and why.
std::string unknown_metrics(const Comparison& comparison) {
  if (!comparison.listed()) return "";
  std::string names;
  for (const RunStatistic& statistic : comparison.statistics) {
    if (statistic.count == 0) names += (names.empty() ? "" : ", ") + statistic.metric;
  }
  return fmt::format(
      "<p class=\"note\">Not known, because the files list a few tokens of each step and no whole "
      "rows: {}.</p>\n",
      escape(names));
}

std::string statistics_section(const Comparison& comparison) {
  std::string page =
      "<h2>Metrics over the run</h2><table><thead><tr><th>metric</th><th>unit</th><th>max</th>"
      "<th>at step</th><th>p99</th><th>p50</th><th>mean</th></tr></thead><tbody>\n";
  for (const RunStatistic& statistic : comparison.statistics) {
    const auto index = metric_index(statistic.metric);
    if (!index || statistic.count == 0) continue;
    const MetricSpec& spec = metric_registry()[*index];
    page += fmt::format(
        "<tr><td title=\"{}\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
        "<td>{}</td></tr>\n",
        escape(in_fitting_words(comparison, spec.definition)), escape(spec.id),
        escape(metric_unit(comparison, spec)), figure(statistic.maximum), statistic.argmax_step,
        figure(statistic.p99), figure(statistic.p50), figure(statistic.mean));
  }
  return page + "</tbody></table>\n" + unknown_metrics(comparison);
}

std::string images_section(std::span<const ReportImage> images) {
  std::string page;
  for (const ReportImage& image : images) {
    page += fmt::format("<h2>{}</h2><img alt=\"{}\" src=\"data:image/png;base64,{}\">\n",
                        escape(image.title), escape(image.title), html::base64(image.png));
  }
  return page;
}

}  // namespace

std::string html_document(const Comparison& comparison, std::span<const ReportImage> images) {
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
      "<meta name=\"color-scheme\" content=\"light dark\">"
      "<title>Driftscope: A against B</title><style>";
  page += html::style_sheet();
  page += "</style></head><body>\n<h1>Driftscope: A against B</h1>\n";
  page += verdict_section(comparison);
  page += findings_section(comparison);
  page += "<h2>Tokens</h2>\n" + html::token_ribbons(comparison);
  page += plots_section(comparison);
  page += images_section(images);
  page += ranking_section(comparison);
  page += statistics_section(comparison);
  page += runs_section(comparison);
  return page + "</body></html>\n";
}

}  // namespace driftscope
