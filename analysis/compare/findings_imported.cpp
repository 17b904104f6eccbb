// SPDX-License-Identifier: Apache-2.0
// What a reader must know of sides that came from other programs' files, and the cause of a
// divergence where such a side lists a few tokens only.
#include <fmt/format.h>

#include <cmath>

#include "analysis/compare/difference_grid.h"
#include "analysis/compare/findings.h"
#include "analysis/compare/imported_side.h"
#include "analysis/compare/value_words.h"

namespace driftscope {

namespace {

using Json = nlohmann::ordered_json;

// Two logits between 16 and 32 in bf16 may each be rounded by one step of 1/8.
constexpr double kBf16Gap = 0.25;
constexpr double kBugScale = 0.5;
constexpr std::size_t kMostFindings = 20;

void tell_side(const ImportedSide& side, std::string_view letter, std::vector<Finding>& findings) {
  findings.push_back(make_finding(
      "imported", Severity::info,
      fmt::format("{} was read from a file ({}) with {}; configuration, times and the type of the "
                  "logits are not known",
                  letter, side.format, describe_values(side)),
      {{"side", letter},
       {"format", side.format},
       {"values", side.values},
       {"rows", side.listed ? "listed" : "full"}}));
  if (!side.tokens_given) {
    findings.push_back(make_finding(
        "tokens_from_rows", Severity::notice,
        fmt::format("{}: the file holds rows and no tokens; the best token of each row stands for "
                    "the token, and row i of one side is compared with row i of the other as if "
                    "both were computed after the same tokens",
                    letter),
        {{"side", letter}}));
  }
}

// What the reader of the file found, as its envelope keeps it.
void tell_file_findings(const std::string& envelope, std::string_view letter,
                        std::vector<Finding>& findings) {
  const Json json = Json::parse(envelope, nullptr, false);
  if (!json.is_object() || !json.contains("import") || !json["import"].is_object()) return;
  const Json& import = json["import"];
  if (!import.contains("findings") || !import["findings"].is_array()) return;
  std::size_t told = 0;
  for (const Json& entry : import["findings"]) {
    const bool whole = entry.is_object() && entry.contains("id") && entry["id"].is_string() &&
                       entry.contains("text") && entry["text"].is_string();
    if (!whole || told++ >= kMostFindings) continue;
    const auto severity = entry.contains("severity") && entry["severity"].is_string()
                              ? severity_from_name(entry["severity"].get<std::string>())
                              : std::nullopt;
    findings.push_back(make_finding("imported_finding", severity.value_or(Severity::notice),
                                    fmt::format("{}: {}", letter, entry["text"].get<std::string>()),
                                    {{"side", letter}, {"id", entry["id"]}}));
  }
}

struct ListedDifferences {
  std::int64_t tokens = 0, steps = 0, first_step = -1, largest_step = -1;
  TokenId largest_token{};
  double largest = 0.0, sum = 0.0;
};

ListedDifferences listed_differences(const Comparison& comparison) {
  ListedDifferences out;
  for (const auto& step : comparison.steps) {
    bool any = false;
    for (const RankedToken& a : step->metrics.top_a) {
      for (const RankedToken& b : step->metrics.top_b) {
        if (a.token != b.token) continue;
        const double size = std::abs(double{b.logit} - double{a.logit});
        if (std::isnan(size)) continue;
        any = true;
        ++out.tokens;
        out.sum += size;
        if (size > 0.0 && out.first_step < 0) out.first_step = step->step;
        if (size > out.largest) {
          out.largest = size;
          out.largest_step = step->step;
          out.largest_token = a.token;
        }
      }
    }
    out.steps += any ? 1 : 0;
  }
  return out;
}

void tell_lists(const Comparison& comparison, std::vector<Finding>& findings) {
  findings.push_back(make_finding(
      "whole_rows_missing", Severity::notice,
      "The files list some tokens of each step, not the whole vocabulary: largest and mean "
      "difference over it, KL, entropy, headroom, ranks beyond the lists and equality of bits are "
      "not known and left empty",
      Json::object()));
  if (!numbers_comparable(comparison)) return;  // told by tell_kinds()
  const ListedDifferences d = listed_differences(comparison);
  if (d.tokens == 0) {
    findings.push_back(make_finding("listed_differences", Severity::notice,
                                    "No token has a value on both sides at any step: there is "
                                    "nothing to measure drift by",
                                    {{"tokens", 0}}));
    return;
  }
  const std::string extent = fmt::format("{} listed on both sides at {}",
                                         counted(d.tokens, "value"), counted(d.steps, "step"));
  // Half a nat is a factor of 1.6 in probability: no rounding of a working program.
  const bool beyond = d.largest > kBugScale;
  findings.push_back(make_finding(
      "listed_differences",
      beyond            ? Severity::warning
      : d.largest > 0.0 ? Severity::notice
                        : Severity::info,
      d.largest == 0.0
          ? fmt::format("The {} are equal", extent)
          : fmt::format("The {} differ by {:.5g} in the mean and {:.5g} at most (step {}, {}), "
                        "first at step {}{}",
                        extent, d.sum / static_cast<double>(d.tokens), d.largest, d.largest_step,
                        describe_token(comparison, d.largest_token), d.first_step,
                        beyond ? ": far beyond rounding" : ""),
      {{"values", d.tokens},
       {"steps", d.steps},
       {"max_abs", d.largest},
       {"mean_abs", d.sum / static_cast<double>(d.tokens)},
       {"argmax_step", d.largest_step},
       {"first_step", d.first_step}}));
}

// What the sides' numbers are, where no difference between them means anything.
void tell_kinds(const Comparison& comparison, std::vector<Finding>& findings) {
  if (numbers_comparable(comparison)) return;
  const auto kind = [](const std::optional<ImportedSide>& side) {
    return side ? describe_values(*side) : std::string("logits");
  };
  findings.push_back(make_finding(
      "numbers_not_comparable", Severity::warning,
      fmt::format("The sides' numbers cannot be compared (A: {}; B: {}): {}",
                  kind(comparison.imported_a), kind(comparison.imported_b),
                  comparison.listed()
                      ? "no difference between them is computed"
                      : "log probabilities are logits less one number per row, so only what does "
                        "not depend on that number is computed (ranks, margins, KL, centred_rms)"),
      Json::object()));
}

// Values of two f32 numbers each, of a size of tens.
constexpr double kStoredTolerance = 1e-4;

void tell_grid(const Comparison& comparison, std::vector<Finding>& findings) {
  std::vector<double> moved;
  for (const auto& step : comparison.steps) {
    add_relative_differences(step->metrics.top_a, step->metrics.top_b, moved);
  }
  const auto grid = find_difference_grid(moved, kStoredTolerance);
  if (!grid) return;
  findings.push_back(make_finding(
      "differences_on_grid", Severity::notice,
      fmt::format(
          "{} of {} differences between the sides that are not 0 are multiples of {}: the "
          "logits were rounded to a coarse type (bf16 between 16 and 32: 0.125) before they "
          "were compared, so exact ties and flips by one step are to be expected",
          grid->on_grid, grid->count, grid->step),
      {{"step", grid->step}, {"on_grid", grid->on_grid}, {"count", grid->count}}));
}

// Gaps between tokens of one list are gaps of logits: also of log probabilities, but not of what
// stands for a measured value or went through samplers, nor where the list holds next to nothing.
bool gaps_mean_something(const std::optional<ImportedSide>& side,
                         const std::vector<RankedToken>& list) {
  constexpr double kLeastMass = 0.01;
  if (!side || side->values == kPlaceholders || side->values == kProbabilities ||
      side->values == kSampled) {
    return false;
  }
  if (side->values == "logit" || list.size() < 2) return true;
  double mass = 0.0;
  for (const RankedToken& entry : list) {
    if (!std::isnan(entry.logit)) mass += std::exp(double{entry.logit});
  }
  return mass > kLeastMass;
}

bool best_of(const std::vector<RankedToken>& list, TokenId token) {
  if (list.empty()) return true;
  for (const RankedToken& entry : list) {
    if (entry.token == token) return entry.logit == list.front().logit;
  }
  return false;
}

}  // namespace

void find_imported(const RunContext& context, std::vector<Finding>& findings) {
  const Comparison& comparison = context.comparison;
  if (!comparison.imported_a && !comparison.imported_b) return;
  if (comparison.imported_a) tell_side(*comparison.imported_a, "A", findings);
  if (comparison.imported_b) tell_side(*comparison.imported_b, "B", findings);
  if (!prompts_known(context.facts)) {
    findings.push_back(make_finding(
        "prompt_not_known", Severity::notice,
        "The prompt is not known on both sides: whether both answered the same one is taken on "
        "trust",
        Json::object()));
  }
  tell_kinds(comparison, findings);
  if (comparison.listed()) tell_lists(comparison, findings);
  if (numbers_comparable(comparison)) tell_grid(comparison, findings);
  tell_file_findings(context.facts.envelope_a, "A", findings);
  tell_file_findings(context.facts.envelope_b, "B", findings);
}

bool listed_gaps_mean_something(const Comparison& comparison, const StepComparison& step) {
  return gaps_mean_something(comparison.imported_a, step.metrics.top_a) &&
         gaps_mean_something(comparison.imported_b, step.metrics.top_b);
}

std::pair<FlipCause, std::string> explain_listed(const Divergence& d, const StepComparison& step,
                                                 const RunContext& context) {
  const bool a = best_of(step.metrics.top_a, *d.token_a);
  const bool b = best_of(step.metrics.top_b, *d.token_b);
  if (!a || !b) {
    return {FlipCause::sampler,
            fmt::format("sampler: {} not the most likely one of its list: it was drawn at a "
                        "temperature above 0, so two answers differ without any drift",
                        a   ? "B's token is"
                        : b ? "A's token is"
                            : "each side's token is")};
  }
  const Comparison& comparison = context.comparison;
  if (!listed_gaps_mean_something(comparison, step)) {
    return {FlipCause::unexplained,
            fmt::format("unexplained: the values at this step are no measured log probabilities or "
                        "logits on both sides (A: {}; B: {}), so whether it is a near-tie cannot "
                        "be told from this evidence",
                        comparison.imported_a ? describe_values(*comparison.imported_a) : "-",
                        comparison.imported_b ? describe_values(*comparison.imported_b) : "-")};
  }
  if (std::isnan(d.gap_a) && std::isnan(d.gap_b)) {
    return {FlipCause::unexplained,
            "unexplained: no side lists both tokens with their values, so whether it is a near-tie "
            "cannot be told from this evidence"};
  }
  const double gap = std::fmax(0.0, std::isnan(d.gap_a) ? 0.0 : d.gap_a) +
                     std::fmax(0.0, std::isnan(d.gap_b) ? 0.0 : d.gap_b);
  const bool both = !std::isnan(d.gap_a) && !std::isnan(d.gap_b);
  if (gap == 0.0) {
    return {
        FlipCause::tie_break,
        fmt::format("tie: the two tokens have exactly the same value {}: the order among equals "
                    "decided",
                    both ? "on both sides" : "on the side that lists both")};
  }
  const double seen = context.comparison.policy.near_tie_drift_factor * d.p95_pair_drift;
  const std::string apart = fmt::format(
      "the two tokens are {} apart ({})", figure(gap),
      both ? "both margins together" : "one side's margin; the other does not list both");
  if (gap <= seen) {
    return {
        FlipCause::near_tie,
        fmt::format("near-tie: {}, within {} times {}, the 95th percentile of how far the other "
                    "steps' drift moves the two best tokens",
                    apart, figure(context.comparison.policy.near_tie_drift_factor),
                    figure(d.p95_pair_drift))};
  }
  if (gap <= kBf16Gap) {
    return {FlipCause::near_tie,
            fmt::format("near-tie: {}, as much as bf16 rounding alone moves two logits between 16 "
                        "and 32 ({}); the type of the logits is not known",
                        apart, figure(kBf16Gap))};
  }
  return {FlipCause::unexplained,
          fmt::format("unexplained: {}, more than bf16 rounding ({}) or the drift before ({}) "
                      "accounts for, and lists of a few tokens say no more",
                      apart, figure(kBf16Gap), figure(seen))};
}

}  // namespace driftscope
