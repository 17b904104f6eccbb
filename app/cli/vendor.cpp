// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analysis/import/formats.h"
#include "analysis/import/response_file.h"
#include "analysis/responses/response_documents.h"
#include "analysis/responses/response_lint.h"
#include "app/cli/command.h"
#include "app/cli/experiment.h"
#include "engine/model/files.h"
#include "kernels/base/display_text.h"

namespace driftscope::cli {
namespace {

constexpr int kInconclusive = 3;
constexpr int kBeyondTier = 1;

struct VendorOptions {
  std::vector<std::string> files;
  std::string fail_on;
  bool json = false;
  bool steps = false;
  bool formats = false;
};

using Json = nlohmann::ordered_json;

std::string formats_text() {
  std::string out;
  for (const ResponseFormat& row : response_formats()) {
    out += fmt::format("{:<18} {}\n", row.name, row.summary);
  }
  return out;
}

Result<std::vector<Response>> read_file(const std::string& path) {
  std::string from_stdin;
  std::optional<MappedFile> mapped;
  std::string_view text;
  if (path == "-") {
    auto read = read_text_file(path);
    if (!read) return tl::unexpected(read.error());
    from_stdin = std::move(*read);
    text = from_stdin;
  } else {
    auto opened = MappedFile::open(path);
    if (!opened) return tl::unexpected(opened.error());
    mapped = std::move(*opened);
    text = mapped->bytes();
  }
  auto responses = read_responses(text, path == "-" ? "standard input" : path);
  if (!responses) return responses;
  for (Response& response : *responses) grade_response(response);
  return responses;
}

// Two files: side A and side B. More: every answer against every other.
struct Outcome {
  Json json;
  std::string text;
  Tier tier = Tier::bitwise;
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
  outcome.tier = weakest_tier(sides.pairs);
  outcome.json = {{"pairs", pairs_json(sides.pairs)},
                  {"only_a", sides.only_a},
                  {"only_b", sides.only_b},
                  {"verdict", std::string(name_of(outcome.tier))}};
  if (sides.pairs.size() > 1) {
    outcome.text += fmt::format("{} pairs: {}\n\n", sides.pairs.size(), counts_text(sides.pairs));
  }
  for (const AnswerPair& pair : sides.pairs) {
    if (sides.pairs.size() > 1) outcome.text += fmt::format("[{}] ", escape_for_display(pair.key));
    outcome.text += comparison_text(pair.comparison) + "\n";
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
    outcome.text += fmt::format("  {:>5} times: \"{}\"  (first {})\n", cluster.members.size(),
                                escape_for_display(cluster.text.substr(0, 60)),
                                escape_for_display(answers[cluster.members.front()].name()));
  }
  outcome.json["clusters"] = groups;
  Json matrix = Json::array();
  std::vector<AnswerPair> pairs;
  const std::size_t shown = std::min(answers.size(), kMostInMatrix);
  for (std::size_t i = 0; i < shown; ++i) {
    for (std::size_t j = i + 1; j < shown; ++j) {
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
  outcome.json["verdict"] = std::string(name_of(outcome.tier));
  if (!pairs.empty()) outcome.text += fmt::format("pairs: {}\n", counts_text(pairs));
  if (shown < answers.size())
    outcome.text += fmt::format("pairs of the first {} answers only\n", shown);
  return outcome;
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

Result<int> run(const VendorOptions& options, CommandContext& context) {
  if (options.formats) {
    auto printed = context.console.print(formats_text());
    if (!printed) return tl::unexpected(printed.error());
    return 0;
  }
  if (options.files.empty()) {
    return fail(ErrorKind::usage, "no file; give one saved response to look at, or two to compare");
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
  std::vector<std::vector<Response>> sides;
  std::vector<Response> all;
  for (const std::string& path : options.files) {
    auto responses = read_file(path);
    if (!responses) return tl::unexpected(responses.error());
    all.insert(all.end(), responses->begin(), responses->end());
    sides.push_back(std::move(*responses));
  }
  const bool compared = sides.size() == 2 || answers_of(all).size() > 1;
  Outcome outcome = sides.size() == 2 ? two_sides(sides[0], sides[1])
                    : compared        ? many(all)
                                      : single(all, options.steps);
  if (sides.size() != 2 && compared && options.json) {
    outcome.json["responses"] = single(all, options.steps).json["responses"];
  }
  if (sides.size() == 2 && options.json) {
    outcome.json["responses"] = single(all, options.steps).json["responses"];
  }
  auto printed = context.console.print(options.json ? outcome.json.dump(2) + "\n" : outcome.text);
  if (!printed) return tl::unexpected(printed.error());
  if (!compared) return 0;
  if (outcome.tier == Tier::inconclusive) return kInconclusive;
  return fail_on && outcome.tier > *fail_on ? kBeyondTier : 0;
}

}  // namespace

void declare_vendor(CLI::App& app, CommandContext& context) {
  auto options = bind_command<VendorOptions>(app, context, &run);
  app.add_option("files", options->files,
                 "Saved responses (JSON, JSON Lines, SSE, curl -i, HAR); - for stdin. One is "
                 "described, two are compared, more are clustered");
  app.add_option("--fail-on", options->fail_on,
                 "Exit 1 if a pair does not reach this tier: bitwise, tolerance, token, semantic");
  app.add_flag("--steps", options->steps, "Every token in the JSON document");
  app.add_flag("--json", options->json, "One JSON document");
  app.add_flag("--formats", options->formats, "List the formats that are read");
}

}  // namespace driftscope::cli
