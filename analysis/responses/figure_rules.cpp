// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/figure_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <numeric>

#include "analysis/compare/difference_grid.h"
#include "analysis/compare/findings.h"
#include "kernels/base/display_text.h"
#include "kernels/plan/dtype.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPrinted = 1e-6;  // half a unit of the last digit that reports print, at the least
// llama.cpp codes log probabilities in steps of at most 16 nats / 65535.
constexpr double kCodeStep = 16.0 / 65535.0;
constexpr double kNearTieUlps = 4.0;
constexpr double kBf16Step = 0.125;  // of logits between 16 and 32

std::string number(double value) { return fmt::format("{:.5g}", value); }

std::string in_quotes(const std::string& text) {
  return fmt::format("\"{}\"", escape_for_display(text));
}

std::string grid_text(const DifferenceGrid& grid) {
  return fmt::format(
      "{} of {} that are not 0 are multiples of {}: the values were rounded to a "
      "coarse type before they were compared (quantised logits grid: bf16 logits "
      "between 16 and 32 stand 0.125 apart, types of 8 bits further), so ties and "
      "flips by one step are to be expected",
      grid.on_grid, grid.count, grid.step);
}

// "… exact 0.125 increments": the step of a grid that a sentence speaks of.
std::optional<double> grid_in_words(std::string_view sentence) {
  std::string text(sentence);
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto has = [&](std::string_view part) { return text.find(part) != std::string::npos; };
  if (!has("increment") && !has("multiple") && !has("grid") && !has("steps of") &&
      !has("spacing")) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool starts = std::isdigit(static_cast<unsigned char>(text[i])) != 0 &&
                        (i == 0 || std::isalnum(static_cast<unsigned char>(text[i - 1])) == 0);
    if (!starts) continue;
    double value = 0.0;
    const auto [end, code] = std::from_chars(text.data() + i, text.data() + text.size(), value);
    if (code != std::errc()) continue;
    if (end < text.data() + text.size() && *end == '/') {  // "1/8"
      double below = 0.0;
      const auto divided = std::from_chars(end + 1, text.data() + text.size(), below);
      if (divided.ec == std::errc() && below > 0.0) value /= below;
    }
    int exponent = 0;
    if (value > 0.0 && value <= 1.0 && std::frexp(value, &exponent) == 0.5) return value;
  }
  return std::nullopt;
}

}  // namespace

void judge_list(const FigureList& list, std::vector<Finding>& findings) {
  const auto& values = list.values;
  const auto size = [](double x, double y) { return std::abs(x) < std::abs(y); };
  const auto at = std::max_element(values.begin(), values.end(), size) - values.begin();
  const double largest = std::abs(values[static_cast<std::size_t>(at)]);
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

void judge_top(const ReportedFigures& figures, const FigureTop& top,
               std::vector<Finding>& findings) {
  auto tokens = top.tokens;
  std::stable_sort(tokens.begin(), tokens.end(),
                   [](const auto& x, const auto& y) { return x.second > y.second; });
  const double best = tokens[0].second;
  const double margin = best - tokens[1].second;
  const auto tied = std::count_if(tokens.begin(), tokens.end(),
                                  [&](const auto& entry) { return entry.second == best; });
  const bool bf16 = std::all_of(tokens.begin(), tokens.end(), [](const auto& entry) {
    return double{round_to(Dtype::bf16, static_cast<float>(entry.second))} == entry.second;
  });
  const std::string step = top.step_known ? fmt::format("Step {}: ", top.step) : std::string();
  const std::string unit = bf16 && best != 0.0
                               ? fmt::format("; all values are bf16 numbers, {} apart at that size",
                                             number(unit_in_last_place(Dtype::bf16, best)))
                               : std::string();
  const Json evidence{{"step", top.step}, {"margin", margin}, {"tied", tied}, {"bf16", bf16}};
  if (margin == 0.0) {
    std::string chosen = "which one is chosen depends on how ties are broken";
    if (figures.top_k == 1) {
      chosen = fmt::format(
          "top_k = 1 does not decide between them: a sampler that keeps every token of the k-th "
          "value keeps {} and draws, so two runs differ about {:.0f}% of the time",
          tied == 2 ? "both" : fmt::format("all {}", tied),
          100.0 * (1.0 - 1.0 / static_cast<double>(tied)));
    }
    findings.push_back(
        make_finding("exact_tie", Severity::warning,
                     fmt::format("{}exact {}tie: {} and {} both have {}, margin 0{}; {}", step,
                                 bf16 ? "bf16 " : "", in_quotes(tokens[0].first),
                                 in_quotes(tokens[1].first), number(best), unit, chosen),
                     evidence));
    return;
  }
  const double ulps = margin / unit_in_last_place(Dtype::bf16, best);
  const bool near = bf16 && ulps <= kNearTieUlps;
  findings.push_back(make_finding(
      near ? "near_tie" : "margin", near ? Severity::notice : Severity::info,
      fmt::format("{}{} leads {} by {}{}{}", step, in_quotes(tokens[0].first),
                  in_quotes(tokens[1].first), number(margin), unit,
                  near ? fmt::format(": a near-tie, {} steps of bf16", number(ulps)) : ""),
      evidence));
}

void judge_divergence(const ReportedFigures& figures, std::vector<Finding>& findings) {
  if (!figures.divergence || !figures.divergence->step) return;
  const FigureDivergence& divergence = *figures.divergence;
  const std::int64_t step = *divergence.step;
  std::string text = fmt::format(
      "First divergence at step {} (counted from 0), after {} equal tokens", step, step);
  if (divergence.tokens.size() == 2) {
    text += fmt::format(": {} against {}", escape_for_display(divergence.tokens[0]),
                        escape_for_display(divergence.tokens[1]));
  }
  text += figures.tops.empty()
              ? ". No logits are given: the margin is unknown, and whether it is a near-tie cannot "
                "be told"
              : "";
  if (divergence.same_prompt == true) text += "; the prompts are the same, so the input is not why";
  if (divergence.same_prompt == false) text += "; the prompts differ, so they are different tasks";
  if (figures.temperature == 0.0) text += "; temperature 0, so no draw is to blame";
  Json evidence{{"step", step}, {"margin", nullptr}};
  if (divergence.tokens.size() == 2) evidence["tokens"] = divergence.tokens;
  findings.push_back(make_finding("first_divergence", Severity::warning, text, evidence));
}

void judge_kl(const ReportedFigures& figures, std::vector<Finding>& findings) {
  const auto value = [&](const char* name) -> std::optional<double> {
    const auto found = figures.kl.find(name);
    return found == figures.kl.end() ? std::nullopt : std::optional(found->second);
  };
  if (const auto same = value("same_top")) {
    const double share = *same > 1.0 ? *same / 100.0 : *same;
    const double flips = 1.0 - share;
    findings.push_back(make_finding(
        "same_top", Severity::notice,
        flips <= 0.0
            ? std::string("The best token is the same at every position")
            : fmt::format("The best token is the same at {:.5g}% of the positions: under teacher "
                          "forcing about 1 in {:.0f} flips",
                          100.0 * share, 1.0 / flips),
        Json{{"same_top", share}}));
  }
  if (const auto least = value("kld_min")) {
    // A sum over a vocabulary of codes: each entry is off by at most half a step.
    const bool rounding = *least < 0.0 && *least >= -kCodeStep;
    const bool fault = *least < -kCodeStep;
    findings.push_back(make_finding(
        fault ? "kl_negative" : "kl_min", fault ? Severity::warning : Severity::info,
        fault ? fmt::format("The least KL divergence is {}: below 0 by more than rounding makes; "
                            "the two distributions are not over the same tokens",
                            number(*least))
        : rounding
            ? fmt::format("The least KL divergence is ~0 (printed as {}: slightly negative by the "
                          "rounding of coded log probabilities, no error)",
                          number(*least))
            : fmt::format("The least KL divergence is {}", number(*least)),
        Json{{"min", *least}, {"shown", fault || !rounding ? *least : 0.0}}));
  }
  const auto mean = value("kld_mean");
  const auto median = value("kld_median");
  const auto most = value("kld_max");
  if (mean || most) {
    std::string text = "KL divergence:";
    if (mean) text += fmt::format(" mean {}", number(*mean));
    if (median) text += fmt::format(", median {}", number(*median));
    if (const auto p99 = value("kld_p99")) text += fmt::format(", 99% {}", number(*p99));
    if (const auto p999 = value("kld_p999")) text += fmt::format(", 99.9% {}", number(*p999));
    if (most) text += fmt::format(", max {}", number(*most));
    if (most && median && *median > 0.0 && *most > 100.0 * *median) {
      text += "; a few positions are far worse than the rest: look at those, the mean hides them";
    }
    findings.push_back(make_finding("kl_statistics", Severity::info, text, Json(figures.kl)));
  }
  const auto base = value("ppl_base");
  const auto other = value("ppl_q");
  if (base && other && *base > 0.0) {
    findings.push_back(
        make_finding("perplexity", Severity::info,
                     fmt::format("Perplexity {} against {}: {:+.3g}%", number(*other),
                                 number(*base), 100.0 * (*other / *base - 1.0)),
                     Json{{"base", *base}, {"other", *other}}));
  }
}

void judge_observations(const ReportedFigures& figures, std::vector<Finding>& findings) {
  for (const std::string& sentence : figures.observations) {
    const auto grid = grid_in_words(sentence);
    if (grid) {
      findings.push_back(make_finding(
          "quantised_logits_grid", Severity::notice,
          fmt::format(
              "Quantised logits grid: the report says {}; differences on multiples of {} are "
              "the mark of logits in a coarse type (bf16 between 16 and 32: 0.125). Said, not "
              "measured: the differences themselves are not in the file",
              in_quotes(sentence), number(*grid)),
          Json{{"step", *grid}}));
    } else {
      findings.push_back(make_finding("observation", Severity::info,
                                      fmt::format("The report says: {}", in_quotes(sentence)),
                                      Json::object()));
    }
  }
}

std::vector<Finding> judge_figures(const ReportedFigures& figures) {
  std::vector<Finding> findings;
  judge_divergence(figures, findings);
  for (const FigureTop& top : figures.tops) judge_top(figures, top, findings);
  if (figures.table) judge_table(*figures.table, findings);
  for (const FigureList& list : figures.lists) judge_list(list, findings);
  judge_kl(figures, findings);
  judge_observations(figures, findings);
  return findings;
}

}  // namespace driftscope
