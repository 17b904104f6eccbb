// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "analysis/import/json_document.h"
#include "analysis/import/response_file.h"
#include "analysis/probe/ladder_parts.h"
#include "analysis/responses/response_compare.h"
#include "analysis/responses/response_lint.h"
#include "analysis/responses/response_set.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

void add_response(ProbeGroup& group, const Exchange& exchange) {
  ++group.asked;
  ++group.failed;  // until it is known to be whole
  if (exchange.status != 200 || !exchange.error.empty()) return;
  auto responses = read_responses(exchange.body, exchange.key());
  if (!responses || responses->empty()) return;
  Response response = std::move((*responses)[0]);
  grade_response(response);
  for (const auto& [name, value] : exchange.headers) response.headers.push_back({name, value});
  const bool cut =
      std::any_of(response.warnings.begin(), response.warnings.end(),
                  [](const ResponseWarning& warning) { return warning.id == "stream_cut"; });
  if (!response.error.empty() || response.choices.empty() || cut) return;
  --group.failed;
  ++group.answered;
  group.responses.push_back(std::move(response));
}

std::int64_t count_classes(const std::vector<std::int64_t>& classes) {
  const std::set<std::int64_t> distinct(classes.begin(), classes.end());
  return static_cast<std::int64_t>(distinct.size());
}

void number_texts(std::vector<ProbeGroup>& groups) {
  std::vector<Answer> answers;
  for (const ProbeGroup& group : groups) {
    for (const Response& response : group.responses) answers.push_back({&response, 0});
  }
  std::vector<std::int64_t> classes(answers.size());
  const std::vector<AnswerCluster> clusters = cluster_answers(answers);
  for (std::size_t i = 0; i < clusters.size(); ++i) {
    for (const std::size_t member : clusters[i].members)
      classes[member] = static_cast<std::int64_t>(i);
  }
  // What was thought before it, and why it ended, are part of an answer.
  std::map<std::tuple<std::int64_t, std::string, std::string>, std::int64_t> known;
  auto next = classes.begin();
  for (ProbeGroup& group : groups) {
    for (const Response& response : group.responses) {
      const ResponseChoice& choice = response.choices[0];
      const auto [place, is_new] =
          known.try_emplace({*next++, choice.reasoning.text,
                             std::string(normalised_finish_reason(choice.finish_reason))},
                            static_cast<std::int64_t>(known.size()));
      group.text_class.push_back(place->second);
    }
    group.unique = count_classes(group.text_class);
  }
}

template <class Visit>
void each_logprob(Response& response, Visit&& visit) {
  for (ResponseChoice& choice : response.choices) {
    for (ResponseStep& step : choice.content.steps) {
      visit(step.logprob);
      for (TokenAlternative& other : step.alternatives) visit(other.logprob);
    }
  }
}

// One server prints all of its answers alike: the longest number tells the digits of all. What an
// answer with short numbers hides would depend on which answer comes first.
void share_decimals(std::vector<ProbeGroup>& groups) {
  std::map<std::int64_t, int> decimals;  // by replica; -1: as many as a float holds
  for (ProbeGroup& group : groups) {
    for (Response& response : group.responses) {
      int& most = decimals.try_emplace(group.replica, 0).first->second;
      each_logprob(response, [&](const Logprob& value) {
        if (!value.usable()) return;
        most = most < 0 || value.decimals < 0 ? -1 : std::max(most, value.decimals);
      });
    }
  }
  for (ProbeGroup& group : groups) {
    for (Response& response : group.responses) {
      each_logprob(response, [&](Logprob& value) { value.decimals = decimals[group.replica]; });
    }
  }
}

bool differ(const Logprob& a, const Logprob& b) {
  if (!a.usable() || !b.usable()) return a.state != b.state;
  return std::abs(a.value - b.value) > print_tolerance(a) + print_tolerance(b);
}

// Chosen tokens and what is listed beside them, as long as the tokens are the same.
bool same_numbers(const Response& a, const Response& b) {
  const auto& steps_a = a.choices[0].content.steps;
  const auto& steps_b = b.choices[0].content.steps;
  for (std::size_t i = 0; i < std::min(steps_a.size(), steps_b.size()); ++i) {
    if (!same_token(steps_a[i].token, steps_b[i].token)) return true;
    if (differ(steps_a[i].logprob, steps_b[i].logprob)) return false;
    for (const TokenAlternative& of_a : steps_a[i].alternatives) {
      for (const TokenAlternative& of_b : steps_b[i].alternatives) {
        if (same_token(of_a.token, of_b.token) && differ(of_a.logprob, of_b.logprob)) return false;
      }
    }
  }
  return true;
}

// The first answers of each class stand for it. Beyond so many classes each answer is its own.
void number_numbers(std::vector<ProbeGroup>& groups) {
  constexpr std::size_t kMostClasses = 64;
  struct Class {
    std::int64_t text;
    const Response* response;
  };
  std::vector<Class> known;
  std::int64_t next = 0;
  for (ProbeGroup& group : groups) {
    for (std::size_t i = 0; i < group.responses.size(); ++i) {
      const auto found = std::find_if(known.begin(), known.end(), [&](const Class& other) {
        return other.text == group.text_class[i] &&
               same_numbers(*other.response, group.responses[i]);
      });
      if (found != known.end()) {
        group.number_class.push_back(found - known.begin());
        continue;
      }
      group.number_class.push_back(next++);
      if (known.size() < kMostClasses) known.push_back({group.text_class[i], &group.responses[i]});
    }
    group.unique_numbers = count_classes(group.number_class);
  }
}

// What routes say that names a version, with the field's place in their answer.
struct VersionField {
  std::string_view route;
  std::array<std::string_view, 2> path;
};
constexpr std::array<VersionField, 9> kVersionFields{{{"/models", {"id", ""}},
                                                      {"/models", {"root", ""}},
                                                      {"/version", {"version", ""}},
                                                      {"/props", {"model_path", ""}},
                                                      {"/props", {"build_info", ""}},
                                                      {"/info", {"model_id", "model_sha"}},
                                                      {"/info", {"version", "docker_label"}},
                                                      {"/get_model_info", {"model_path", ""}},
                                                      {"/get_model_info", {"weight_version", ""}}}};

std::string_view route_of(std::string_view url) {
  const std::size_t last = url.rfind('/');
  return last == std::string_view::npos ? url : url.substr(last);
}

}  // namespace

std::string name_of(const ProbeGroup& group) {
  return fmt::format("replica {}, {} in flight{}", group.replica, group.concurrency,
                     group.stage == ProbeStage::across ? " across replicas" : "");
}

std::vector<ProbeGroup> group_exchanges(const std::vector<Exchange>& exchanges) {
  std::map<std::tuple<ProbeStage, std::int64_t, std::int64_t>, ProbeGroup> groups;
  for (const Exchange& exchange : exchanges) {
    if (exchange.stage == ProbeStage::discovery) continue;
    ProbeGroup& group = groups[{exchange.stage, exchange.concurrency, exchange.replica}];
    group.stage = exchange.stage;
    group.replica = exchange.replica;
    group.concurrency = exchange.concurrency;
    add_response(group, exchange);
  }
  std::vector<ProbeGroup> list;
  for (auto& [key, group] : groups) list.push_back(std::move(group));
  share_decimals(list);
  number_texts(list);
  number_numbers(list);
  return list;
}

std::vector<ProbeVersion> versions_of(const std::vector<Exchange>& exchanges) {
  std::vector<ProbeVersion> versions;
  for (const Exchange& exchange : exchanges) {
    if (exchange.stage != ProbeStage::discovery || exchange.status != 200) continue;
    JsonDocument document;
    if (!document.parse(exchange.body)) continue;
    const std::string_view route = route_of(exchange.url);
    const JsonValue data = document.root()["data"];
    const JsonValue root = data.is_array() ? data.at(0) : document.root();
    for (const VersionField& field : kVersionFields) {
      if (route != field.route) continue;
      for (const std::string_view name : field.path) {
        const std::string value = name.empty() ? std::string() : root[name].text();
        if (value.empty()) continue;
        versions.push_back({exchange.replica, fmt::format("{} {}", route, name), value});
      }
    }
  }
  return versions;
}

std::string version_of(const Response& response) {
  std::string version = response.model;
  for (const std::string* part :
       {&response.fingerprint, &response.provider, &response.weight_version}) {
    if (!part->empty() && *part != "fp_ollama") version += " " + *part;
  }
  return version;
}

std::optional<double> temperature_asked(const std::vector<Exchange>& exchanges) {
  for (const Exchange& exchange : exchanges) {
    if (exchange.request.empty()) continue;
    JsonDocument document;
    if (!document.parse(exchange.request)) continue;
    return document.root()["temperature"].number();
  }
  return std::nullopt;
}

std::string parting(const Response& a, const Response& b) {
  const ResponseComparison c = compare_responses(a, 0, b, 0);
  if (c.divergence || !c.texts_equal) return c.verdict;
  const ResponseChoice& of_a = a.choices[0];
  const ResponseChoice& of_b = b.choices[0];
  if (of_a.reasoning.text != of_b.reasoning.text) return "the reasoning before the answers differs";
  if (of_a.finish_reason != of_b.finish_reason) {
    return fmt::format("the texts are equal, they end differently ({} and {})",
                       escape_for_display(of_a.finish_reason),
                       escape_for_display(of_b.finish_reason));
  }
  if (!c.drift.first_step) return "the texts are equal, the logprobs of tokens not chosen differ";
  return fmt::format("the texts are equal, the logprobs differ by up to {:.3g} (first at step {})",
                     c.drift.max_abs, *c.drift.first_step);
}

double chance_of_separation(const std::vector<std::int64_t>& sizes) {
  // k! / multinomial(total; sizes): any matching of classes to groups would be taken.
  double chance = 1.0;
  std::int64_t placed = 0;
  for (std::size_t group = 0; group < sizes.size(); ++group) {
    chance *= static_cast<double>(group + 1);
    for (std::int64_t i = 1; i <= sizes[group]; ++i) {
      ++placed;
      chance *= static_cast<double>(i) / static_cast<double>(placed);
    }
  }
  return std::min(chance, 1.0);
}

double chance_of_company(std::int64_t alone, std::int64_t together, std::int64_t odd) {
  // Hypergeometric: of `odd` answers drawn from all, every one is of those together.
  double chance = 1.0;
  for (std::int64_t i = 0; i < odd; ++i) {
    chance *= static_cast<double>(together - i) / static_cast<double>(alone + together - i);
  }
  return chance;
}

std::string more_samples(const ChanceOfTimes& chance, double most,
                         const std::vector<ProbeGroup>& groups) {
  std::int64_t asked = 0;
  for (const ProbeGroup& group : groups) asked = std::max(asked, group.asked);
  for (std::int64_t times = 2; times <= 100; ++times) {
    if (chance(times) <= most) return fmt::format(" {}, if they go on like this", times * asked);
  }
  return {};
}

}  // namespace driftscope
