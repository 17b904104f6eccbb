// SPDX-License-Identifier: Apache-2.0
#include "app/cli/vendor_outcomes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "analysis/responses/response_documents.h"
#include "analysis/responses/response_overview.h"
#include "kernels/base/display_text.h"

namespace driftscope::cli {
namespace {

using Json = nlohmann::ordered_json;

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

// Every answer against every other; those of other custom_ids answer other questions.
struct Matrix {
  Json json = Json::array();
  std::vector<AnswerPair> pairs;
  std::int64_t other_questions = 0;
};

Json cell_json(const Answer& a, const Answer& b, const ResponseComparison& c) {
  return {{"a", a.name()},
          {"b", b.name()},
          {"verdict", std::string(name_of(c.tier))},
          {"step", c.divergence && c.divergence->step >= 0 ? Json(c.divergence->step) : Json()},
          {"cause", c.divergence ? Json(std::string(name_of(c.divergence->cause))) : Json()},
          {"max_abs", c.drift.count > 0 ? Json(c.drift.max_abs) : Json()}};
}

Matrix compare_pairs(const std::vector<Answer>& answers, std::size_t count) {
  Matrix matrix;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = i + 1; j < count; ++j) {
      const Answer& a = answers[i];
      const Answer& b = answers[j];
      if (answer_other_questions(*a.response, *b.response)) {
        ++matrix.other_questions;
        continue;
      }
      matrix.pairs.push_back({fmt::format("{} {}", i, j),
                              compare_responses(*a.response, a.choice, *b.response, b.choice)});
      matrix.json.push_back(cell_json(a, b, matrix.pairs.back().comparison));
    }
  }
  return matrix;
}

Json clusters_json(const std::vector<Answer>& answers, const std::vector<AnswerCluster>& clusters) {
  Json groups = Json::array();
  for (const AnswerCluster& cluster : clusters) {
    Json members = Json::array();
    for (const std::size_t index : cluster.members) members.push_back(answers[index].name());
    groups.push_back({{"size", cluster.members.size()}, {"members", members}});
  }
  return groups;
}

// The text of the pairs: what many of them find in the same words stands once, behind them.
class PairsText {
 public:
  PairsText(const std::vector<AnswerPair>& pairs, PairsShown shown)
      : m_pairs(pairs), m_shown(shown) {
    for (const AnswerPair& pair : pairs) {
      for (const Finding& finding : pair.comparison.findings) ++m_counts[key_of(finding)];
    }
  }

  // `behind_first`: what belongs to the only pair.
  [[nodiscard]] std::string text(const std::string& behind_first) const {
    std::string out;
    if (m_pairs.size() > 1)
      out += fmt::format("{} pairs: {}\n\n", m_pairs.size(), counts_text(m_pairs));
    std::map<std::string, std::vector<const AnswerPair*>> alike;
    for (const AnswerPair& pair : m_pairs) alike[pair.comparison.verdict].push_back(&pair);
    std::size_t left_out = 0;
    for (const AnswerPair& pair : m_pairs) {
      const auto& same = alike[pair.comparison.verdict];
      if (!is_shown(pair, *same.front())) {
        ++left_out;
        continue;
      }
      if (m_pairs.size() > 1) out += fmt::format("[{}] ", escape_for_display(pair.key));
      out += pair_text(pair.comparison);
      if (m_shown == PairsShown::differing && same.size() > 1) out += others_text(same);
      out += behind_first + "\n";
    }
    out += repeated_text();
    if (left_out > 0)
      out += fmt::format("not shown: {} pair{} that {} not differ, or as another does (--all)\n",
                         left_out, left_out == 1 ? "" : "s", left_out == 1 ? "does" : "do");
    return out;
  }

 private:
  static std::string key_of(const Finding& finding) { return finding.id + '\n' + finding.text; }
  [[nodiscard]] bool is_shown(const AnswerPair& pair, const AnswerPair& first_alike) const {
    if (m_shown == PairsShown::all) return true;
    return pair.comparison.tier > Tier::semantic && &pair == &first_alike;
  }
  // A warning that not every pair has belongs to those that have it.
  [[nodiscard]] bool stands_once(const Finding& finding) const {
    const std::size_t count = m_counts.at(key_of(finding));
    const bool grave = finding.severity > Severity::notice;
    return count > 1 && (!grave || count == m_pairs.size());
  }
  [[nodiscard]] std::string pair_text(const ResponseComparison& comparison) const {
    ResponseComparison own = comparison;
    std::erase_if(own.findings, [&](const Finding& finding) { return stands_once(finding); });
    return comparison_text(own);
  }
  static std::string others_text(const std::vector<const AnswerPair*>& same) {
    constexpr std::size_t kNamed = 8;
    std::string keys;
    for (std::size_t i = 1; i < std::min(same.size(), kNamed + 1); ++i)
      keys += (i == 1 ? "" : ", ") + escape_for_display(same[i]->key);
    if (same.size() > kNamed + 1) keys += fmt::format(" and {} more", same.size() - kNamed - 1);
    return fmt::format("  as {} {} more: {}\n", same.size() == 2 ? "does" : "do", same.size() - 1,
                       keys);
  }
  [[nodiscard]] std::string repeated_text() const {
    std::vector<Finding> repeated;
    std::set<std::string> seen;
    for (const AnswerPair& pair : m_pairs) {
      for (Finding finding : pair.comparison.findings) {
        if (!stands_once(finding) || !seen.insert(key_of(finding)).second) continue;
        finding.text = fmt::format("{} of {} pairs: {}", m_counts.at(key_of(finding)),
                                   m_pairs.size(), finding.text);
        repeated.push_back(std::move(finding));
      }
    }
    return findings_text(repeated);
  }

  const std::vector<AnswerPair>& m_pairs;
  PairsShown m_shown;
  std::map<std::string, std::size_t> m_counts;
};

}  // namespace

VendorOutcome compare_sides(const std::vector<Response>& a, const std::vector<Response>& b,
                            PairsShown shown) {
  const PairedSides sides = pair_sides(a, b);
  VendorOutcome outcome;
  // Answers that only one side has were not compared.
  const bool alone = !sides.only_a.empty() || !sides.only_b.empty();
  outcome.reached.tier = alone ? Tier::inconclusive : weakest_tier(sides.pairs);
  outcome.reached.known = known_tier(sides.pairs);
  outcome.json = {{"pairs", pairs_json(sides.pairs)},
                  {"only_a", sides.only_a},
                  {"only_b", sides.only_b},
                  {"verdict", std::string(name_of(outcome.reached.tier))}};
  const bool single = a.size() == 1 && b.size() == 1;
  if (sides.pairs.size() == 1) shown = PairsShown::all;
  outcome.text += PairsText(sides.pairs, shown)
                      .text(single ? findings_text(findings_of_sides(a[0], b[0])) : std::string());
  for (const std::string& key : sides.only_a)
    outcome.text += fmt::format("only in A: {}\n", escape_for_display(key));
  for (const std::string& key : sides.only_b)
    outcome.text += fmt::format("only in B: {}\n", escape_for_display(key));
  return outcome;
}

VendorOutcome compare_all(const std::vector<Response>& responses) {
  constexpr std::size_t kMostInMatrix = 64;
  const std::vector<Answer> answers = answers_of(responses);
  const std::vector<AnswerCluster> clusters = cluster_answers(answers);
  const std::size_t shown = std::min(answers.size(), kMostInMatrix);
  const Matrix matrix = compare_pairs(answers, shown);
  VendorOutcome outcome;
  outcome.compared = !matrix.pairs.empty();
  outcome.reached = {.tier = weakest_tier(matrix.pairs), .known = known_tier(matrix.pairs)};
  outcome.json = {{"answers", answers.size()},
                  {"unique", clusters.size()},
                  {"clusters", clusters_json(answers, clusters)},
                  {"matrix", matrix.json},
                  {"verdict", std::string(name_of(outcome.reached.tier))}};
  outcome.text = fmt::format("{} answers, {} unique\n", answers.size(), clusters.size()) +
                 clusters_text(answers, clusters) + errors_text(responses);
  if (outcome.compared) outcome.text += fmt::format("pairs: {}\n", counts_text(matrix.pairs));
  if (matrix.other_questions > 0) {
    outcome.text +=
        fmt::format("not compared, as other custom_ids are other questions: {} of the pairs\n",
                    matrix.other_questions);
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

VendorOutcome describe_responses(const std::vector<Response>& responses, bool steps) {
  VendorOutcome outcome;
  outcome.compared = false;
  Json list = Json::array();
  for (const Response& response : responses) {
    list.push_back(response_json(response, steps));
    outcome.text += response_text(response);
  }
  outcome.json = {{"responses", list}};
  return outcome;
}

}  // namespace driftscope::cli
