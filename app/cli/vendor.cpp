// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/import/formats.h"
#include "analysis/import/logits/logit_formats.h"
#include "analysis/import/logits/token_difr.h"
#include "analysis/import/reported_figures.h"
#include "analysis/import/response_file.h"
#include "analysis/responses/kld_statistics.h"
#include "analysis/responses/response_documents.h"
#include "analysis/responses/response_lint.h"
#include "analysis/responses/response_overview.h"
#include "analysis/responses/sample_groups.h"
#include "app/cli/command.h"
#include "app/cli/vendor_checks.h"
#include "app/cli/vendor_figures.h"
#include "app/cli/vendor_input.h"
#include "app/cli/vendor_local.h"
#include "app/cli/vendor_population.h"
#include "app/cli/vendor_stream.h"
#include "kernels/base/display_text.h"

namespace driftscope::cli {
namespace {

constexpr int kInconclusive = 3;
constexpr int kBeyondTier = 1;

using Json = nlohmann::ordered_json;

struct VendorOptions {
  std::vector<std::string> files;
  std::string fail_on;
  std::string expect;
  LocalOptions local;
  bool json = false;
  bool steps = false;
  bool formats = false;
  bool check_kinds = false;
  bool population = false;
  bool all = false;
  int threads = 0;
  std::int64_t permutations = 0;
  std::uint64_t seed = 1;
};

std::string formats_text() {
  std::string out;
  for (const ResponseFormat& row : response_formats()) {
    out += fmt::format("{:<18} {}\n", row.name, row.summary);
  }
  return out;
}

using Input = VendorInput;

Result<std::vector<Response>> responses_of(const Input& input) {
  if (is_kld_file(input.bytes())) {
    return fail(ErrorKind::usage,
                fmt::format("{}: is a llama.cpp logit file; give two of them, base first",
                            escape_for_display(input.name())));
  }
  if (find_logit_format(input.bytes()) != nullptr) {
    return fail(ErrorKind::usage,
                fmt::format("{}: holds logits, not an answer; compare two such files with: "
                            "driftscope import A B -o pair.h5 && driftscope compare pair.h5",
                            escape_for_display(input.name())));
  }
  auto responses = is_token_difr(input.bytes()) ? read_token_difr(input.bytes(), input.name())
                                                : read_responses(input.bytes(), input.name());
  if (!responses) return responses;
  for (Response& response : *responses) grade_response(response);
  return responses;
}

Json mean_json(const MeanAndError& value) { return {{"mean", value.mean}, {"error", value.error}}; }

Json spread_json(const Spread& s) {
  return {{"mean", mean_json(s.mean)},
          {"max", s.maximum},
          {"p99.9", s.p999},
          {"p99", s.p99},
          {"p95", s.p95},
          {"p90", s.p90},
          {"p75", s.p75},
          {"median", s.median},
          {"p25", s.p25},
          {"p10", s.p10},
          {"p5", s.p5},
          {"p1", s.p1},
          {"p0.1", s.p01},
          {"min", s.minimum}};
}

// Two llama.cpp logit files, base first.
Result<int> compare_logit_files(const Input& base, const Input& other, bool json,
                                CommandContext& context) {
  const auto a = read_kld_file(base.bytes(), base.name());
  if (!a) return tl::unexpected(a.error());
  const auto b = read_kld_file(other.bytes(), other.name());
  if (!b) return tl::unexpected(b.error());
  const auto s = compare_kld_files(*a, *b);
  if (!s) return tl::unexpected(s.error());
  const Json document{{"tokens", s->tokens},
                      {"perplexity_base", mean_json(s->perplexity_base)},
                      {"perplexity", mean_json(s->perplexity_other)},
                      {"log_ratio", mean_json(s->log_ratio)},
                      {"correlation", s->correlation},
                      {"kld", spread_json(s->divergence)},
                      {"probability_change", spread_json(s->probability_change)},
                      {"rms_probability_change", mean_json(s->rms_probability_change)},
                      {"same_top", mean_json(s->same_top)}};
  auto printed = context.console.print(json ? document.dump(2) + "\n" : kld_text(*s));
  if (!printed) return tl::unexpected(printed.error());
  return 0;
}

// Two files: side A and side B. More: every answer against every other.
struct Outcome {
  Json json;
  std::string text;
  Tier tier = Tier::bitwise;
  Tier at_best = Tier::bitwise;  // the strongest that nothing contradicts
};

Json pairs_json(const std::vector<AnswerPair>& pairs) {
  Json list = Json::array();
  for (const AnswerPair& pair : pairs) {
    Json entry = comparison_json(pair.comparison);
    entry["key"] = pair.key;
    list.push_back(std::move(entry));
  }
  return list;
}

std::string counts_text(const std::vector<AnswerPair>& pairs) {
  std::array<int, 6> counts{};
  for (const AnswerPair& pair : pairs) ++counts[static_cast<std::size_t>(pair.comparison.tier)];
  std::string out;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    out +=
        fmt::format("{}{} {}", out.empty() ? "" : ", ", counts[i], name_of(static_cast<Tier>(i)));
  }
  return out;
}

Outcome two_sides(const std::vector<Response>& a, const std::vector<Response>& b) {
  const PairedSides sides = pair_sides(a, b);
  Outcome outcome;
  // Answers that only one side has were not compared.
  const bool alone = !sides.only_a.empty() || !sides.only_b.empty();
  outcome.tier = alone ? Tier::inconclusive : weakest_tier(sides.pairs);
  outcome.at_best = alone ? Tier::inconclusive : best_tier(sides.pairs);
  outcome.json = {{"pairs", pairs_json(sides.pairs)},
                  {"only_a", sides.only_a},
                  {"only_b", sides.only_b},
                  {"verdict", std::string(name_of(outcome.tier))}};
  if (sides.pairs.size() > 1) {
    outcome.text += fmt::format("{} pairs: {}\n\n", sides.pairs.size(), counts_text(sides.pairs));
  }
  for (const AnswerPair& pair : sides.pairs) {
    if (sides.pairs.size() > 1) outcome.text += fmt::format("[{}] ", escape_for_display(pair.key));
    outcome.text += comparison_text(pair.comparison);
    if (a.size() == 1 && b.size() == 1 && &pair == &sides.pairs.front())
      outcome.text += findings_text(findings_of_sides(a[0], b[0]));
    outcome.text += "\n";
  }
  for (const std::string& key : sides.only_a)
    outcome.text += fmt::format("only in A: {}\n", escape_for_display(key));
  for (const std::string& key : sides.only_b)
    outcome.text += fmt::format("only in B: {}\n", escape_for_display(key));
  return outcome;
}

Outcome many(const std::vector<Response>& responses) {
  constexpr std::size_t kMostInMatrix = 64;
  const std::vector<Answer> answers = answers_of(responses);
  const std::vector<AnswerCluster> clusters = cluster_answers(answers);
  Outcome outcome;
  outcome.json = {{"answers", answers.size()}, {"unique", clusters.size()}};
  outcome.text = fmt::format("{} answers, {} unique\n", answers.size(), clusters.size());
  Json groups = Json::array();
  for (const AnswerCluster& cluster : clusters) {
    Json members = Json::array();
    for (const std::size_t index : cluster.members) members.push_back(answers[index].name());
    groups.push_back({{"size", cluster.members.size()}, {"members", members}});
  }
  outcome.text += clusters_text(answers, clusters) + errors_text(responses);
  outcome.json["clusters"] = groups;
  Json matrix = Json::array();
  std::vector<AnswerPair> pairs;
  const std::size_t shown = std::min(answers.size(), kMostInMatrix);
  std::int64_t other_questions = 0;
  for (std::size_t i = 0; i < shown; ++i) {
    for (std::size_t j = i + 1; j < shown; ++j) {
      const std::string& id_a = answers[i].response->custom_id;
      const std::string& id_b = answers[j].response->custom_id;
      if (!id_a.empty() && !id_b.empty() && id_a != id_b) {
        ++other_questions;
        continue;
      }
      pairs.push_back(
          {fmt::format("{} {}", i, j), compare_responses(*answers[i].response, answers[i].choice,
                                                         *answers[j].response, answers[j].choice)});
      const ResponseComparison& c = pairs.back().comparison;
      matrix.push_back(
          {{"a", answers[i].name()},
           {"b", answers[j].name()},
           {"verdict", std::string(name_of(c.tier))},
           {"step", c.divergence && c.divergence->step >= 0 ? Json(c.divergence->step) : Json()},
           {"cause", c.divergence ? Json(std::string(name_of(c.divergence->cause))) : Json()},
           {"max_abs", c.drift.count > 0 ? Json(c.drift.max_abs) : Json()}});
    }
  }
  outcome.json["matrix"] = matrix;
  outcome.tier = weakest_tier(pairs);
  outcome.at_best = best_tier(pairs);
  outcome.json["verdict"] = std::string(name_of(outcome.tier));
  if (!pairs.empty()) outcome.text += fmt::format("pairs: {}\n", counts_text(pairs));
  if (other_questions > 0) {
    outcome.text +=
        fmt::format("not compared, as other custom_ids are other questions: {} of the pairs\n",
                    other_questions);
  }
  if (shown < answers.size())
    outcome.text += fmt::format("pairs of the first {} answers only\n", shown);
  std::vector<const Response*> all;
  for (const Response& response : responses) {
    if (!response.choices.empty()) all.push_back(&response);
  }
  outcome.text += findings_text(common_findings(all));
  return outcome;
}

Outcome population(const std::vector<Response>& a, const std::vector<Response>& b,
                   const VendorOptions& options) {
  SerialParallel serial;
  PopulationReport report =
      describe_populations(sample_sides(a, b), options.permutations, options.seed, serial);
  return {.json = std::move(report.json),
          .text = std::move(report.text),
          .tier = report.tier,
          .at_best = report.tier};
}

Outcome single(const std::vector<Response>& responses, bool steps) {
  Outcome outcome;
  Json list = Json::array();
  for (const Response& response : responses) {
    list.push_back(response_json(response, steps));
    outcome.text += response_text(response);
  }
  outcome.json = {{"responses", list}};
  return outcome;
}

// The answers against configurations of a local model instead of against each other.
Result<int> compare_with_model(const VendorOptions& options, const std::vector<Response>& all,
                               const std::vector<Assertion>& checks,
                               const std::vector<std::vector<Response>>& sides,
                               CommandContext& context) {
  auto local = rank_locally(options.local, all, context);
  if (!local) return tl::unexpected(local.error());
  Json document = single(all, options.steps).json;
  document["local"] = std::move(local->json);
  int checked_code = 0;
  if (!checks.empty()) {
    CheckedSides checked = check_sides(checks, sides);
    document["checks"] = std::move(checked.json);
    local->text += checked.text;
    checked_code = checked.exit_code;
  }
  auto printed = context.console.print(options.json ? document.dump(2) + "\n" : local->text);
  if (!printed) return tl::unexpected(printed.error());
  return checked_code != 0 ? checked_code : local->exit_code;
}

// A tier that is not reached only because the evidence for it is absent is not missed.
int exit_code_of(const ReachedTier& reached, std::optional<Tier> fail_on) {
  if (reached.tier == Tier::inconclusive) return kInconclusive;
  if (!fail_on || reached.tier <= *fail_on) return 0;
  return reached.at_best > *fail_on ? kBeyondTier : kInconclusive;
}

Result<int> run(const VendorOptions& options, CommandContext& context) {
  if (options.formats) {
    auto printed = context.console.print(formats_text());
    if (!printed) return tl::unexpected(printed.error());
    return 0;
  }
  if (options.check_kinds) {
    auto printed = context.console.print(check_kinds_text());
    if (!printed) return tl::unexpected(printed.error());
    return 0;
  }
  if (options.files.empty()) {
    return fail(ErrorKind::usage, "no file; give one saved response to look at, or two to compare");
  }
  if (std::count(options.files.begin(), options.files.end(), "-") +
          (options.expect == "-" ? 1 : 0) >
      1) {
    return fail(ErrorKind::usage,
                "- is standard input, which can be read once only; give a file for the other");
  }
  std::optional<Tier> fail_on;
  if (!options.fail_on.empty()) {
    fail_on = tier_from_name(options.fail_on);
    if (!fail_on) {
      return fail(ErrorKind::usage,
                  fmt::format("--fail-on {}: is no tier; give bitwise, tolerance, token "
                              "or semantic",
                              escape_for_display(options.fail_on)));
    }
  }
  if (auto fits = check_local(options.local); !fits) return tl::unexpected(fits.error());
  if (options.local.given() && (options.population || fail_on)) {
    return fail(ErrorKind::usage,
                "--model holds answers against a local model, not against each other; leave "
                "--population and --fail-on out");
  }
  std::vector<Assertion> checks;
  if (!options.expect.empty()) {
    auto read = load_checks(options.expect);
    if (!read) return tl::unexpected(read.error());
    checks = std::move(*read);
  }
  std::vector<Input> inputs;
  for (const std::string& path : options.files) {
    auto input = Input::open(path);
    if (!input) return tl::unexpected(input.error());
    inputs.push_back(std::move(*input));
  }
  if (inputs.size() == 2 && is_kld_file(inputs[0].bytes()) && is_kld_file(inputs[1].bytes())) {
    if (!checks.empty() || options.local.given()) {
      return fail(ErrorKind::usage, "--expect and --model look at answers; logit files hold none");
    }
    return compare_logit_files(inputs[0], inputs[1], options.json, context);
  }
  // Checks and a local model look at whole answers, which are then read at once.
  if (inputs.size() == 2 && checks.empty() && !options.local.given()) {
    auto compared = compare_long_files(inputs[0], inputs[1],
                                       {.json = options.json,
                                        .steps = options.steps,
                                        .all = options.all,
                                        .population = options.population,
                                        .threads = options.threads,
                                        .permutations = options.permutations,
                                        .seed = options.seed},
                                       context);
    if (!compared) return tl::unexpected(compared.error());
    if (*compared) return exit_code_of(**compared, fail_on);
  }
  std::vector<std::vector<Response>> sides;
  std::vector<Response> all;
  for (const Input& input : inputs) {
    auto responses = responses_of(input);
    const bool lists =
        responses && responses->size() == 1 && responses->front().format == "token-list";
    if ((!responses || lists) && inputs.size() == 1 && is_reported_figures(input.bytes())) {
      return print_figures(input.bytes(), input.name(), options.json, context);
    }
    if (!responses) return tl::unexpected(responses.error());
    all.insert(all.end(), responses->begin(), responses->end());
    sides.push_back(std::move(*responses));
  }
  if (options.population && sides.size() != 2) {
    return fail(ErrorKind::usage, "--population: give two files, one for each side");
  }
  if (options.local.given()) return compare_with_model(options, all, checks, sides, context);
  const bool compared = sides.size() == 2 || answers_of(all).size() > 1;
  Outcome outcome = options.population  ? population(sides[0], sides[1], options)
                    : sides.size() == 2 ? two_sides(sides[0], sides[1])
                    : compared          ? many(all)
                                        : single(all, options.steps);
  if (compared && !options.population && options.json) {
    outcome.json["responses"] = single(all, options.steps).json["responses"];
  }
  int checked_code = 0;
  if (!checks.empty()) {
    CheckedSides checked = check_sides(checks, sides);
    outcome.json["checks"] = std::move(checked.json);
    outcome.text += checked.text;
    checked_code = checked.exit_code;
  }
  auto printed = context.console.print(options.json ? outcome.json.dump(2) + "\n" : outcome.text);
  if (!printed) return tl::unexpected(printed.error());
  if (checked_code != 0) return checked_code;
  if (!compared) return 0;
  return exit_code_of({.tier = outcome.tier, .at_best = outcome.at_best}, fail_on);
}

}  // namespace

void declare_vendor(CLI::App& app, CommandContext& context) {
  auto options = bind_command<VendorOptions>(app, context, &run);
  app.add_option("files", options->files,
                 "Saved responses (JSON, JSON Lines, SSE, curl -i, HAR) or two llama.cpp logit "
                 "files; - for stdin. One is described, two are compared, more are clustered");
  app.add_option("--fail-on", options->fail_on,
                 "Exit 1 if a pair does not reach this tier: bitwise, tolerance, token, semantic");
  app.add_option("--expect", options->expect,
                 "JSON file of checks that every answer must pass (--check-kinds lists them); "
                 "exit 1 if one fails");
  declare_local(app, options->local);
  app.add_flag("--check-kinds", options->check_kinds, "List the kinds of checks");
  app.add_flag("--steps", options->steps, "Every token in the JSON document");
  app.add_flag("--population", options->population,
               "Two files of many samples: do both sides answer from the same distribution?");
  app.add_option("--permutations", options->permutations,
                 "Of the two-sample test; 0: 1000, or 100 for each prompt if that is more")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--seed", options->seed, "Chooses the permutations")->capture_default_str();
  app.add_flag("--all", options->all,
               fmt::format("Every pair as text, also of files of more than {} lines", kFewLines));
  app.add_option("--threads", options->threads,
                 "For files of many lines; 0: all cores. The result does not depend on it")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_flag("--json", options->json, "One JSON document");
  app.add_flag("--formats", options->formats, "List the formats that are read");
}

}  // namespace driftscope::cli
