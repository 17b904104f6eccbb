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
#include "analysis/responses/response_lint.h"
#include "analysis/responses/sample_groups.h"
#include "app/cli/command.h"
#include "app/cli/vendor_checks.h"
#include "app/cli/vendor_figures.h"
#include "app/cli/vendor_input.h"
#include "app/cli/vendor_local.h"
#include "app/cli/vendor_logits.h"
#include "app/cli/vendor_outcomes.h"
#include "app/cli/vendor_policy.h"
#include "app/cli/vendor_population.h"
#include "app/cli/vendor_stream.h"
#include "kernels/base/display_text.h"

namespace driftscope::cli {
namespace {

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
  const bool headers_only =
      std::all_of(responses->begin(), responses->end(),
                  [](const Response& response) { return response.format == kHeadersOnly; });
  if (headers_only && !responses->empty()) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: holds the headers of an answer and ends where its body begins; "
                            "save the body too (curl -i prints both, -I and -D the headers alone)",
                            escape_for_display(input.name())));
  }
  for (Response& response : *responses) grade_response(response);
  return responses;
}

// The answers against configurations of a local model instead of against each other.
Result<int> compare_with_model(const VendorOptions& options, const std::vector<Response>& all,
                               const std::vector<Assertion>& checks,
                               const std::vector<std::vector<Response>>& sides,
                               const std::vector<Input>& inputs, CommandContext& context) {
  std::vector<LocalFile> files;
  for (std::size_t i = 0; i < sides.size(); ++i)
    files.push_back({.name = inputs[i].name(), .responses = sides[i]});
  auto local = rank_locally(options.local, files, context);
  if (!local) return tl::unexpected(local.error());
  Json document = describe_responses(all, options.steps).json;
  document["local"] = std::move(local->json);
  int checked_code = 0;
  if (!checks.empty()) {
    CheckedSides checked = check_sides(checks, sides);
    document["checks"] = std::move(checked.json);
    local->text = checked.text + "\n" + local->text;
    checked_code = checked.exit_code;
  }
  auto printed = context.console.print(options.json ? document.dump(2) + "\n" : local->text);
  if (!printed) return tl::unexpected(printed.error());
  return checked_code != 0 ? checked_code : local->exit_code;
}

// What must hold before anything is read. Errors: usage.
Result<std::optional<Tier>> check_options(const VendorOptions& options) {
  if (options.files.empty())
    return fail(ErrorKind::usage, "no file; give one saved response to look at, or two to compare");
  const auto from_stdin = std::count(options.files.begin(), options.files.end(), "-");
  if (from_stdin + (options.expect == "-" ? 1 : 0) > 1) {
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
  if (options.population && options.files.size() != 2)
    return fail(ErrorKind::usage, "--population: give two files, one for each side");
  if (options.population && fail_on && *fail_on != Tier::semantic) {
    return fail(ErrorKind::usage,
                fmt::format("--population with --fail-on {}: populations are found to have changed "
                            "or not; give --fail-on semantic, which fails where one has",
                            name_of(*fail_on)));
  }
  return fail_on;
}

int exit_code_of(const ReachedTier& reached, std::optional<Tier> fail_on, CommandContext& context) {
  const PolicyOutcome outcome = judge_policy(reached, fail_on);
  if (!outcome.sentence.empty()) context.console.note(outcome.sentence);
  return outcome.exit_code;
}

Result<std::vector<Input>> open_inputs(const std::vector<std::string>& files) {
  std::vector<Input> inputs;
  for (const std::string& path : files) {
    auto input = Input::open(path);
    if (!input) return tl::unexpected(input.error());
    inputs.push_back(std::move(*input));
  }
  return inputs;
}

// Two files of logits or of many lines, which are not held at once. Empty: they are neither.
Result<std::optional<int>> compare_files(const VendorOptions& options,
                                         const std::vector<Input>& inputs, bool whole,
                                         std::optional<Tier> fail_on, CommandContext& context) {
  if (inputs.size() != 2) return std::nullopt;
  if (is_kld_file(inputs[0].bytes()) && is_kld_file(inputs[1].bytes())) {
    if (whole)
      return fail(ErrorKind::usage, "--expect and --model look at answers; logit files hold none");
    return compare_logit_files(inputs[0], inputs[1], options.json, context);
  }
  // Checks and a local model look at whole answers, which are then read at once.
  if (whole) return std::nullopt;
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
  if (!*compared) return std::nullopt;
  return exit_code_of(**compared, fail_on, context);
}

VendorOutcome compare_answers(const VendorOptions& options,
                              const std::vector<std::vector<Response>>& sides,
                              const std::vector<Response>& all) {
  VendorOutcome outcome;
  if (options.population) {
    SerialParallel serial;
    PopulationReport report = describe_populations(sample_sides(sides[0], sides[1]),
                                                   options.permutations, options.seed, serial);
    outcome.json = std::move(report.json);
    outcome.text = std::move(report.text);
    outcome.reached = reached_by(report.tier);
    return outcome;
  }
  const bool pairs = sides.size() == 2;
  if (!pairs && answers_of(all).size() < 2) return describe_responses(all, options.steps);
  // Beside checks the answers themselves are of interest where they differ.
  const bool brief = !options.expect.empty() && !options.all;
  outcome = pairs
                ? compare_sides(sides[0], sides[1], brief ? PairsShown::differing : PairsShown::all)
                : compare_all(all);
  if (options.json)
    outcome.json["responses"] = describe_responses(all, options.steps).json["responses"];
  return outcome;
}

Result<int> report_answers(const VendorOptions& options,
                           const std::vector<std::vector<Response>>& sides,
                           const std::vector<Response>& all, const std::vector<Assertion>& checks,
                           std::optional<Tier> fail_on, CommandContext& context) {
  VendorOutcome outcome = compare_answers(options, sides, all);
  int checked_code = 0;
  if (!checks.empty()) {
    CheckedSides checked = check_sides(checks, sides);
    outcome.json["checks"] = std::move(checked.json);
    outcome.text = checked.text + "\n" + outcome.text;
    checked_code = checked.exit_code;
  }
  auto printed = context.console.print(options.json ? outcome.json.dump(2) + "\n" : outcome.text);
  if (!printed) return tl::unexpected(printed.error());
  if (checked_code != 0) return checked_code;
  // A file of answers to several questions is described; nothing that was asked for is open.
  const bool described = !outcome.compared && sides.size() == 1 && !fail_on;
  return described ? 0 : exit_code_of(outcome.reached, fail_on, context);
}

Result<int> run(const VendorOptions& options, CommandContext& context) {
  if (options.formats || options.check_kinds) {
    auto printed = context.console.print(options.formats ? formats_text() : check_kinds_text());
    if (!printed) return tl::unexpected(printed.error());
    return 0;
  }
  const auto fail_on = check_options(options);
  if (!fail_on) return tl::unexpected(fail_on.error());
  std::vector<Assertion> checks;
  if (!options.expect.empty()) {
    auto read = load_checks(options.expect);
    if (!read) return tl::unexpected(read.error());
    checks = std::move(*read);
  }
  const auto inputs = open_inputs(options.files);
  if (!inputs) return tl::unexpected(inputs.error());
  const bool whole = !checks.empty() || options.local.given();
  auto done = compare_files(options, *inputs, whole, *fail_on, context);
  if (!done) return tl::unexpected(done.error());
  if (*done) return **done;
  std::vector<std::vector<Response>> sides;
  std::vector<Response> all;
  for (const Input& input : *inputs) {
    auto responses = responses_of(input);
    const bool lists =
        responses && responses->size() == 1 && responses->front().format == "token-list";
    if ((!responses || lists) && inputs->size() == 1 && is_reported_figures(input.bytes()))
      return print_figures(input.bytes(), input.name(), options.json, context);
    if (!responses) return tl::unexpected(responses.error());
    all.insert(all.end(), responses->begin(), responses->end());
    sides.push_back(std::move(*responses));
  }
  if (options.local.given())
    return compare_with_model(options, all, checks, sides, *inputs, context);
  return report_answers(options, sides, all, checks, *fail_on, context);
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
  app.add_flag(
      "--all", options->all,
      fmt::format("Every pair as text, also with --expect and of files of more than {} lines",
                  kFewLines));
  app.add_option("--threads", options->threads,
                 "For files of many lines; 0: all cores. The result does not depend on it")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_flag("--json", options->json, "One JSON document");
  app.add_flag("--formats", options->formats, "List the formats that are read");
}

}  // namespace driftscope::cli
