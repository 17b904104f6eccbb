// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/verdict_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/compare/conclusion.h"
#include "analysis/compare/value_words.h"
#include "kernels/base/display_text.h"

namespace driftscope {

namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kLabelColumns = 14;
constexpr std::size_t kLongestValue = 40;  // of a differing field
constexpr std::size_t kMostFields = 12;

enum class Ink : std::uint8_t { plain, strong, dim, good, middling, bad };

std::string_view sequence_of(Ink ink) {
  switch (ink) {
    case Ink::plain:
      return "";
    case Ink::strong:
      return "\x1b[1m";
    case Ink::dim:
      return "\x1b[2m";
    case Ink::good:
      return "\x1b[1;32m";
    case Ink::middling:
      return "\x1b[1;33m";
    case Ink::bad:
      return "\x1b[1;31m";
  }
  return "";
}

Ink ink_of(Tier tier) {
  switch (tier) {
    case Tier::bitwise:
    case Tier::tolerance:
    case Tier::token:
      return Ink::good;
    case Tier::semantic:
    case Tier::inconclusive:
      return Ink::middling;
    case Tier::different:
      return Ink::bad;
  }
  return Ink::plain;
}

// Characters, not bytes; wide ones count once.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
  }));
}

// Rows of a label and text that is broken at spaces.
class Block {
 public:
  explicit Block(bool colour) : m_colour(colour) {}

  // Lines after the first are indented by `hang` columns.
  void add(std::string_view label, std::string_view text, Ink ink = Ink::plain,
           std::size_t hang = 0) {
    std::string_view rest = text;
    bool first = true;
    while (first || !rest.empty()) {
      const std::string indent(first ? 0 : hang, ' ');
      const std::size_t length = length_of_line(rest, kColumns - kLabelColumns - indent.size());
      put(first ? label : "", indent + std::string(rest.substr(0, length)), ink);
      rest.remove_prefix(length);
      while (rest.starts_with(' ')) rest.remove_prefix(1);
      first = false;
    }
  }
  // A row that is never broken.
  void add_whole(std::string_view label, std::string_view text) { put(label, text, Ink::plain); }
  void add_gap() { m_text += '\n'; }
  [[nodiscard]] std::string take() { return std::move(m_text); }

 private:
  static std::size_t length_of_line(std::string_view text, std::size_t columns) {
    if (width_of(text) <= columns) return text.size();
    std::size_t best = std::string_view::npos;
    for (std::size_t i = text.find(' '); i != std::string_view::npos; i = text.find(' ', i + 1)) {
      if (best != std::string_view::npos && width_of(text.substr(0, i)) > columns) break;
      best = i;
    }
    return best == std::string_view::npos ? text.size() : best;
  }
  void put(std::string_view label, std::string_view text, Ink ink) {
    const std::string padded = fmt::format("{:<{}}", label, kLabelColumns);
    m_text += paint(padded, Ink::dim);
    m_text += paint(text, ink);
    m_text += '\n';
  }
  [[nodiscard]] std::string paint(std::string_view text, Ink ink) const {
    if (!m_colour || ink == Ink::plain || text.empty()) return std::string(text);
    return fmt::format("{}{}\x1b[0m", sequence_of(ink), text);
  }
  std::string m_text;
  bool m_colour;
};

std::string_view answer(const std::optional<bool>& holds) {
  if (!holds) return "?";
  return *holds ? "yes" : "no";
}

void add_tiers(Block& block, const Comparison& comparison) {
  std::string_view label = "tiers";
  for (const TierCheck& check : comparison.tiers) {
    const bool stated = check.tier == Tier::different || check.tier == Tier::inconclusive;
    if (stated || (check.tier == Tier::semantic && !check.holds)) continue;
    block.add(label,
              fmt::format("{:<10}{:<4}{}", name_of(check.tier), answer(check.holds), check.detail),
              Ink::plain, 14);
    label = "";
  }
}

void add_sides(Block& block, const Comparison& comparison) {
  const auto side = [&](char letter, const std::string& model, const std::string& config) {
    std::string text(1, letter);
    if (!config.empty()) text += fmt::format("  {}", escape_for_display(config));
    if (!model.empty()) text += fmt::format("  on {}", escape_for_display(model));
    return text;
  };
  block.add("sides", side('A', comparison.model_a, comparison.config_a_name));
  block.add("", side('B', comparison.model_b, comparison.config_b_name));
}

std::string token_line(const Comparison& comparison, char side, const std::optional<TokenId>& token,
                       double margin) {
  const std::string text = describe_token(comparison, token);
  // Places in the file's own list are no ids of the model.
  const bool own = token && !interned(comparison);
  const std::string id = own ? fmt::format("id {}", token->value) : std::string();
  const bool imported = comparison.imported_a || comparison.imported_b;
  return fmt::format("{}  {}{}  {:<9}  margin {}", side, text,
                     std::string(width_of(text) < 24 ? 24 - width_of(text) : 0, ' '), id,
                     imported && std::isnan(margin) ? "not known" : figure(margin));
}

void add_divergence(Block& block, const Comparison& comparison, std::string_view label,
                    const Divergence& divergence, std::string_view what) {
  block.add(label, fmt::format("step {} {}", divergence.step, what), Ink::strong);
  block.add_whole("", token_line(comparison, 'A', divergence.token_a, divergence.margin_a));
  block.add_whole("", token_line(comparison, 'B', divergence.token_b, divergence.margin_b));
  if (divergence.rows_a != divergence.rows_b && divergence.rows_a > 0 && divergence.rows_b > 0) {
    block.add("in flight", fmt::format("{} (A) and {} (B) at this step",
                                       counted(divergence.rows_a, "row"), divergence.rows_b));
  }
  if (!std::isnan(divergence.drift)) {
    std::string drift =
        fmt::format("{} at this step, {} times the run's usual {}", figure(divergence.drift),
                    figure(divergence.drift_excess), figure(divergence.usual_drift));
    if (divergence.rounding_bound > 0.0) {
      drift += fmt::format("; a-priori bound {}", figure(divergence.rounding_bound));
    }
    block.add("drift", drift);
  }
  block.add("cause", name_of(divergence.cause), Ink::strong);
  block.add("", divergence.reason);
}

void add_divergences(Block& block, const Comparison& comparison) {
  const auto& divergence = comparison.first_divergence;
  const auto& flip = comparison.first_flip;
  if (divergence) {
    add_divergence(
        block, comparison, "divergence", *divergence,
        fmt::format("(counted from 0), after {}", counted(comparison.tokens_equal, "equal token")));
  } else {
    block.add("divergence", fmt::format("none in {}", counted(comparison.tokens_equal, "token")));
  }
  const bool same = divergence && flip && divergence->step == flip->step;
  if (flip && !same) {
    add_divergence(block, comparison, "first flip", *flip, "(B fed A's tokens)");
  }
}

const RunStatistic* find_statistic(const Comparison& comparison, std::string_view metric) {
  const auto found =
      std::find_if(comparison.statistics.begin(), comparison.statistics.end(),
                   [&](const RunStatistic& statistic) { return statistic.metric == metric; });
  return found == comparison.statistics.end() || found->count == 0 ? nullptr : &*found;
}

std::string describe_rank_flips(const Comparison& comparison, const RunStatistic& flips) {
  const std::string extent = fmt::format("within the top {} over {}", comparison.policy.top_k,
                                         counted(flips.count, "step"));
  const auto chosen = std::count_if(comparison.steps.begin(), comparison.steps.end(),
                                    [](const auto& step) { return step->flipped; });
  if (flips.sum == 0.0 && chosen == 0) return fmt::format("none {}", extent);
  return fmt::format("{} {}, most at step {} ({}); the choice changed at {}",
                     counted(static_cast<std::int64_t>(flips.sum), "pair"), extent,
                     flips.argmax_step, flips.maximum, counted(chosen, "step"));
}

void add_drift(Block& block, const Comparison& comparison) {
  if (const RunStatistic* max_abs = find_statistic(comparison, "max_abs")) {
    block.add("logits",
              fmt::format("max_abs: median {}, p99 {}, largest {} at step {}", figure(max_abs->p50),
                          figure(max_abs->p99), figure(max_abs->maximum), max_abs->argmax_step));
  }
  if (const RunStatistic* flips = find_statistic(comparison, "rank_flips")) {
    block.add("rank flips", describe_rank_flips(comparison, *flips));
  }
}

Ink ink_of(Severity severity) {
  return severity == Severity::error     ? Ink::bad
         : severity == Severity::warning ? Ink::middling
                                         : Ink::plain;
}

// What is told before any number: with other prompts, or a broken one, numbers say little.
void add_prompt_findings(Block& block, const Comparison& comparison) {
  constexpr std::array kPrompts{std::string_view{"prompt_ids_differ"},
                                std::string_view{"double_bos"},
                                std::string_view{"missing_bos"},
                                std::string_view{"template_twice"},
                                std::string_view{"retokenised_ids_differ"},
                                std::string_view{"special_tokens_as_text"},
                                std::string_view{"date_in_template"},
                                std::string_view{"trailing_whitespace"},
                                std::string_view{"unknown_template"}};
  bool any = false;
  for (const Finding& finding : comparison.findings) {
    if (std::find(kPrompts.begin(), kPrompts.end(), finding.id) == kPrompts.end()) continue;
    block.add("prompt", finding.text, ink_of(finding.severity));
    any = true;
  }
  if (any) block.add_gap();
}

void add_findings(Block& block, const Comparison& comparison) {
  // Those that the block does not tell in another place.
  constexpr std::array kShown{std::string_view{"imported"},
                              std::string_view{"imported_finding"},
                              std::string_view{"whole_rows_missing"},
                              std::string_view{"listed_differences"},
                              std::string_view{"numbers_not_comparable"},
                              std::string_view{"rows_shifted"},
                              std::string_view{"tokens_from_rows"},
                              std::string_view{"prompt_not_known"},
                              std::string_view{"differences_on_grid"},
                              std::string_view{"checkpoints_differ"},
                              std::string_view{"nan_in_logits"},
                              std::string_view{"infinity_in_logits"},
                              std::string_view{"first_tap_drift"},
                              std::string_view{"tap_jump"},
                              std::string_view{"drift_without_flip"},
                              std::string_view{"lane_ended_early"},
                              std::string_view{"divergence_at_step_0"},
                              std::string_view{"plans_differ"},
                              std::string_view{"ranks_differ"},
                              std::string_view{"noise_excess"},
                              std::string_view{"drift_without_cause"},
                              std::string_view{"route_flips"},
                              std::string_view{"routes_equal"}};
  for (const Finding& finding : comparison.findings) {
    if (std::find(kShown.begin(), kShown.end(), finding.id) == kShown.end()) continue;
    const bool begins = finding.id == "first_tap_drift";
    const bool grows = finding.id == "tap_jump";
    const bool plans = finding.id == "plans_differ" || finding.id == "ranks_differ";
    const bool routes = finding.id.starts_with("route");
    const Ink ink = ink_of(finding.severity);
    block.add(begins   ? "begins"
              : grows  ? "grows"
              : plans  ? "order"
              : routes ? "routes"
                       : name_of(finding.severity),
              finding.text, ink);
  }
}

void add_reference(Block& block, const Comparison& comparison) {
  const ReferenceResult& reference = comparison.reference;
  if (!reference.present) return;
  const bool own = comparison.split.steps > 0;
  std::string text = fmt::format("A is {} and B {} from {} weights in f64 (median over {})",
                                 figure(reference.error_a), figure(reference.error_b),
                                 own ? "its own" : "the same", counted(reference.steps, "step"));
  if (const RunStatistic* noise = find_statistic(comparison, "noise_ratio");
      noise != nullptr && noise->count > 0) {
    text += fmt::format("; drift is {} times that noise (median), at most {} times",
                        figure(noise->p50), figure(noise->maximum));
  } else if (!reference.shared_rounding.empty()) {
    text += fmt::format("; that holds {}, which f64 does not have, so no noise ratio is known",
                        reference.shared_rounding);
  }
  block.add("reference", text);
}

void add_split(Block& block, const Comparison& comparison) {
  const DriftSplit& split = comparison.split;
  if (split.steps == 0) return;
  const auto add = [&](std::string_view label, std::string_view what, const DriftPart& part) {
    block.add(label, fmt::format("{:<25}max_abs {}, mean KL {}", what, figure(part.max_abs),
                                 figure(part.mean_kl)));
  };
  add("split", "weights differ", split.weights);
  add("", "arithmetic differs, A", split.arithmetic_a);
  add("", "arithmetic differs, B", split.arithmetic_b);
}

void add_control(Block& block, const Comparison& comparison) {
  const ControlResult& control = comparison.control;
  if (comparison.imported_a) {
    block.add("control", "none: an imported side cannot be run again");
  } else if (!control.present || control.steps == 0) {
    block.add("control", "not run");
  } else if (control.bits_equal) {
    block.add("control",
              fmt::format("A against A: same bits at all {}", counted(control.steps, "step")));
  } else {
    block.add("control",
              fmt::format("A against A: max_abs {} over {}: A does not repeat itself",
                          figure(control.max_abs), counted(control.steps, "step")),
              Ink::bad);
  }
}

std::string shortened(const std::string& value) {
  std::string text = escape_for_display(value);
  if (width_of(text) <= kLongestValue) return text;
  std::size_t end = kLongestValue - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
  return text.substr(0, end) + "…";
}

void add_fields(Block& block, const Comparison& comparison) {
  const auto& fields = comparison.envelope_difference;
  if (fields.empty() && (comparison.imported_a || comparison.imported_b)) {
    block.add("differs", "no field that both files state");
    return;
  }
  if (fields.empty()) {
    block.add("differs", "no knob and no field of the envelopes");
    return;
  }
  std::string_view label = "differs";
  for (std::size_t i = 0; i < fields.size() && i < kMostFields; ++i) {
    const std::string name =
        fields[i].field.starts_with("knob.") ? fields[i].field.substr(5) : fields[i].field;
    block.add(label, fmt::format("{:<24} {} -> {}", escape_for_display(name),
                                 shortened(fields[i].a), shortened(fields[i].b)));
    label = "";
  }
  if (fields.size() > kMostFields) {
    block.add("", fmt::format("and {} more", fields.size() - kMostFields));
  }
}

// Escaped but for its backslashes: a command is there to be copied.
std::string safe_command(std::string_view command) {
  std::string safe;
  while (true) {
    const std::size_t end = command.find('\\');
    safe += escape_for_display(command.substr(0, end));
    if (end == std::string_view::npos) return safe;
    safe += '\\';
    command.remove_prefix(end + 1);
  }
}

}  // namespace

std::string verdict_block(const Comparison& comparison, bool colour) {
  Block block(colour);
  block.add("verdict", comparison.verdict_text, ink_of(comparison.verdict));
  block.add_gap();
  add_prompt_findings(block, comparison);
  add_sides(block, comparison);
  add_tiers(block, comparison);
  add_divergences(block, comparison);
  add_drift(block, comparison);
  add_findings(block, comparison);
  add_reference(block, comparison);
  add_split(block, comparison);
  add_control(block, comparison);
  add_fields(block, comparison);
  if (!comparison.command.empty()) {
    block.add_whole("repeat", safe_command(comparison.command));
  }
  return block.take();
}

}  // namespace driftscope
