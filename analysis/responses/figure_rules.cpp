// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/figure_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <numeric>

#include "analysis/compare/findings.h"
#include "kernels/base/display_text.h"
#include "kernels/plan/dtype.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

// llama.cpp codes log probabilities in steps of at most 16 nats / 65535.
constexpr double kCodeStep = 16.0 / 65535.0;
constexpr double kNearTieUlps = 4.0;
constexpr double kFloatUnit = 6e-8;  // between neighbours in single precision, of their size
constexpr double kAllMass = 1.001;   // of probabilities, as printed

std::string number(double value) { return fmt::format("{:.5g}", value); }

std::string in_quotes(const std::string& text) {
  return fmt::format("\"{}\"", escape_for_display(text));
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

namespace {

// Said to be, or all below 0 and together no more than probabilities make.
bool are_logprobs(const FigureTop& top) {
  double mass = 0.0;
  bool below = true;
  for (const auto& [token, value] : top.tokens) {
    below = below && value <= 0.0;
    mass += std::exp(value);
  }
  return top.logprobs || (below && mass <= kAllMass);
}

// Two values that print alike: `unit` of the last digit apart at the most.
void tell_printed_tie(const FigureTop& top, double best, const std::string& step,
                      const std::string& first, const std::string& second,
                      std::vector<Finding>& findings) {
  findings.push_back(make_finding(
      "near_tie", Severity::notice,
      fmt::format("{}near-tie: {} and {} both print as {}: {}whether it is an exact tie is not in "
                  "the figures",
                  step, in_quotes(first), in_quotes(second), number(best),
                  top.resolution > 0.0
                      ? fmt::format("at most {} apart, the last digit that is printed; ",
                                    number(top.resolution))
                      : std::string()),
      Json{{"step", top.step}, {"margin_at_most", top.resolution}}));
}

}  // namespace

void judge_top(const ReportedFigures& figures, const FigureTop& top,
               std::vector<Finding>& findings) {
  auto tokens = top.tokens;
  const auto faults = std::erase_if(tokens, [](const auto& entry) {
    return !std::isfinite(entry.second) || is_figure_placeholder(entry.second);
  });
  if (faults > 0) {
    findings.push_back(make_finding(
        "placeholder_left_out", Severity::warning,
        fmt::format("{} of the values of the best tokens {} no number or a placeholder; left out",
                    faults, faults == 1 ? "is" : "are"),
        Json{{"count", faults}}));
  }
  if (tokens.size() < 2) return;
  std::stable_sort(tokens.begin(), tokens.end(),
                   [](const auto& x, const auto& y) { return x.second > y.second; });
  const double best = tokens[0].second;
  const double margin = best - tokens[1].second;
  const auto tied = std::count_if(tokens.begin(), tokens.end(),
                                  [&](const auto& entry) { return entry.second == best; });
  const bool bf16 =
      !are_logprobs(top) && std::all_of(tokens.begin(), tokens.end(), [](const auto& entry) {
        return double{round_to(Dtype::bf16, static_cast<float>(entry.second))} == entry.second;
      });
  const std::string step = top.step_known ? fmt::format("Step {}: ", top.step) : std::string();
  const std::string unit = bf16 && best != 0.0
                               ? fmt::format("; all values are bf16 numbers, {} apart at that size",
                                             number(unit_in_last_place(Dtype::bf16, best)))
                               : std::string();
  const Json evidence{{"step", top.step}, {"margin", margin}, {"tied", tied}, {"bf16", bf16}};
  // The digits of a decimal tell an exact tie only where they resolve single precision.
  const bool resolved = top.resolution > 0.0 && top.resolution <= kFloatUnit * std::abs(best);
  if (margin == 0.0 && !bf16 && !resolved) {
    return tell_printed_tie(top, best, step, tokens[0].first, tokens[1].first, findings);
  }
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

namespace {

std::string tokens_text(const FigureDivergence& divergence) {
  if (divergence.tokens.size() != 2) return {};
  return fmt::format(": {} against {}", escape_for_display(divergence.tokens[0]),
                     escape_for_display(divergence.tokens[1]));
}

// What the report says of the whole, where that is all or does not fit with the rest.
bool tell_same_tokens(const FigureDivergence& divergence, std::vector<Finding>& findings) {
  const auto add = [&](const char* id, Severity severity, const std::string& text) {
    findings.push_back(
        make_finding(id, severity, text,
                     Json{{"same_tokens", divergence.same_tokens == true},
                          {"step", divergence.step ? Json(*divergence.step) : Json(nullptr)}}));
    return true;
  };
  if (!divergence.step) {
    if (!divergence.same_tokens) return true;
    return *divergence.same_tokens
               ? add("no_divergence", Severity::info,
                     "The report says that both runs give the same tokens, and names no place "
                     "where they differ; how near the values are is not in it")
               : add("divergence_without_place", Severity::warning,
                     "The report says that the tokens differ, but not where");
  }
  if (divergence.same_tokens == true) {
    return add("contradiction", Severity::error,
               fmt::format("The report contradicts itself: it says that both runs give the same "
                           "tokens, and that they first differ at step {} (counted from 0){}. "
                           "Which holds cannot be told",
                           *divergence.step, tokens_text(divergence)));
  }
  if (divergence.tokens.size() == 2 && divergence.tokens[0] == divergence.tokens[1]) {
    return add("contradiction", Severity::error,
               fmt::format("The report contradicts itself: the first difference is said to be at "
                           "step {} (counted from 0), with the same token on both sides ({})",
                           *divergence.step, escape_for_display(divergence.tokens[0])));
  }
  return false;
}

}  // namespace

void judge_divergence(const ReportedFigures& figures, std::vector<Finding>& findings) {
  if (!figures.divergence) return;
  const FigureDivergence& divergence = *figures.divergence;
  if (tell_same_tokens(divergence, findings)) return;
  const std::int64_t step = *divergence.step;
  std::string text = fmt::format(
      "First divergence at step {} (counted from 0), after {} equal tokens", step, step);
  text += tokens_text(divergence);
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

namespace {

Json kl_evidence(const ReportedFigures& figures) {
  Json evidence = Json::object();
  for (const auto& [name, value] : figures.kl) evidence[name] = json_number(value);
  return evidence;
}

// Figures that no two distributions have.
void find_impossible_kl(const ReportedFigures& figures, std::vector<Finding>& findings) {
  const auto add = [&](const std::string& name, double value, std::string_view why) {
    findings.push_back(make_finding("impossible_value", Severity::error,
                                    fmt::format("{} is {}: {}", name, number(value), why),
                                    Json{{"name", name}, {"value", json_number(value)}}));
  };
  for (const auto& [name, value] : figures.kl) {
    if (!std::isfinite(value)) add(name, value, "no number");
  }
  const auto value = [&](const char* name) {
    const auto found = figures.kl.find(name);
    return found == figures.kl.end() ? std::optional<double>() : std::optional(found->second);
  };
  const auto same = value("same_top");
  if (same && (*same < 0.0 || *same > 100.0)) {
    add("The share of positions with the same best token", *same,
        "impossible, a share is between 0 and 100%");
  }
  const auto most = value("kld_max");
  for (const char* name : {"kld_mean", "kld_median", "kld_p99", "kld_p999", "kld_min"}) {
    const auto less = value(name);
    if (less && most && *less > *most) {
      add(name, *less, fmt::format("impossible, the largest is {}", number(*most)));
    }
  }
  const auto mean = value("kld_mean");
  if (mean && *mean < -kCodeStep) add("kld_mean", *mean, "impossible, no KL divergence is below 0");
}

}  // namespace

void judge_kl(const ReportedFigures& figures, std::vector<Finding>& findings) {
  const auto value = [&](const char* name) -> std::optional<double> {
    const auto found = figures.kl.find(name);
    return found == figures.kl.end() || !std::isfinite(found->second)
               ? std::nullopt
               : std::optional(found->second);
  };
  find_impossible_kl(figures, findings);
  if (const auto same = value("same_top"); same && *same >= 0.0 && *same <= 100.0) {
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
    findings.push_back(make_finding("kl_statistics", Severity::info, text, kl_evidence(figures)));
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
