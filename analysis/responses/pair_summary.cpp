// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/pair_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

constexpr std::size_t kShownSentence = 200;

// Both margins together; a pair without any is looked at before those with small ones.
double gap_of(const ResponseDivergence& divergence) {
  if (!divergence.margin_a && !divergence.margin_b) return 0.0;
  return std::max(0.0, divergence.margin_a.value_or(0.0)) +
         std::max(0.0, divergence.margin_b.value_or(0.0));
}

std::int64_t median_of(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A sentence's front that ends at a character's boundary.
std::string shortened(const std::string& sentence) {
  if (sentence.size() <= kShownSentence) return sentence;
  std::size_t end = kShownSentence;
  while (end > 0 && (static_cast<unsigned char>(sentence[end]) & 0xC0U) == 0x80U) --end;
  return sentence.substr(0, end) + " …";
}

}  // namespace

void PairSummary::insert(List& list, double weight, const AnswerPair& pair) {
  if (list.size() == kListed && weight <= list.back().weight) return;
  const auto at = std::find_if(list.begin(), list.end(),
                               [&](const Entry& entry) { return entry.weight < weight; });
  list.insert(at,
              {.weight = weight, .key = pair.key, .sentence = shortened(pair.comparison.verdict)});
  if (list.size() > kListed) list.pop_back();
}

void PairSummary::add(const AnswerPair& pair) {
  const ResponseComparison& comparison = pair.comparison;
  ++m_pairs;
  if (comparison.tier != Tier::inconclusive) m_known = std::max(m_known, comparison.at_best);
  ++m_tiers[static_cast<std::size_t>(comparison.tier)];
  if (comparison.tier == Tier::inconclusive) insert(m_unknown, 0.0, pair);
  if (comparison.drift.count > 0) {
    ++m_drift_pairs;
    m_drift_sum += comparison.drift.mean_abs;
    m_largest_drift = std::max(m_largest_drift, comparison.drift.max_abs);
    if (comparison.drift.first_step) insert(m_drifted, comparison.drift.max_abs, pair);
  }
  if (!comparison.divergence || comparison.tier == Tier::inconclusive) return;
  const ResponseDivergence& divergence = *comparison.divergence;
  ++m_causes[static_cast<std::size_t>(divergence.cause)];
  insert(m_widest, gap_of(divergence), pair);
  if (divergence.step < 0) return;
  m_parting_steps.push_back(divergence.step);
  insert(m_earliest, -static_cast<double>(divergence.step), pair);
}

Tier PairSummary::weakest() const {
  Tier weakest = m_pairs == 0 ? Tier::inconclusive : Tier::bitwise;
  for (std::size_t i = 0; i < m_tiers.size(); ++i) {
    if (m_tiers[i] > 0) weakest = std::max(weakest, static_cast<Tier>(i));
  }
  return weakest;
}

std::string PairSummary::list_text(const char* title, const List& list) {
  if (list.empty()) return {};
  std::string out = fmt::format("{}\n", title);
  for (const Entry& entry : list) {
    out += fmt::format("  [{}] {}\n", escape_for_display(entry.key), entry.sentence);
  }
  return out;
}

std::string PairSummary::text() const {
  std::string counts;
  for (std::size_t i = 0; i < m_tiers.size(); ++i) {
    if (m_tiers[i] == 0) continue;
    counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", m_tiers[i],
                          name_of(static_cast<Tier>(i)));
  }
  std::string out = fmt::format("{} pairs: {}\n", m_pairs, counts.empty() ? "none" : counts);
  std::string causes;
  for (std::size_t i = 0; i < m_causes.size(); ++i) {
    if (m_causes[i] == 0) continue;
    causes += fmt::format("{}{} {}", causes.empty() ? "" : ", ", m_causes[i],
                          name_of(static_cast<ResponseCause>(i)));
  }
  if (!causes.empty()) out += fmt::format("the answers part by: {}\n", causes);
  if (!m_parting_steps.empty()) {
    out += fmt::format("first divergence: token {} at the earliest, {} in the median of {} pairs\n",
                       *std::min_element(m_parting_steps.begin(), m_parting_steps.end()),
                       median_of(m_parting_steps), m_parting_steps.size());
  }
  if (m_drift_pairs > 0) {
    out += fmt::format(
        "drift while the tokens agree: {:.4g} in the mean of {} pairs, {:.4g} at "
        "most\n",
        m_drift_sum / static_cast<double>(m_drift_pairs), m_drift_pairs, m_largest_drift);
  }
  out += list_text("widest gaps at the first divergence:", m_widest);
  out += list_text("earliest divergences:", m_earliest);
  out += list_text("largest drift of a logprob:", m_drifted);
  return out + list_text("inconclusive, the first of them:", m_unknown);
}

nlohmann::ordered_json PairSummary::json() const {
  using Json = nlohmann::ordered_json;
  Json tiers = Json::object();
  for (std::size_t i = 0; i < m_tiers.size(); ++i) {
    tiers[std::string(name_of(static_cast<Tier>(i)))] = m_tiers[i];
  }
  Json causes = Json::object();
  for (std::size_t i = 0; i < m_causes.size(); ++i) {
    if (m_causes[i] > 0) causes[std::string(name_of(static_cast<ResponseCause>(i)))] = m_causes[i];
  }
  const auto keys = [](const List& list) {
    Json names = Json::array();
    for (const Entry& entry : list) names.push_back(entry.key);
    return names;
  };
  return {{"pairs", m_pairs},
          {"tiers", tiers},
          {"causes", causes},
          {"median_first_divergence",
           m_parting_steps.empty() ? Json() : Json(median_of(m_parting_steps))},
          {"largest_drift", m_drift_pairs > 0 ? Json(m_largest_drift) : Json()},
          {"widest", keys(m_widest)},
          {"earliest", keys(m_earliest)},
          {"most_drifted", keys(m_drifted)},
          {"inconclusive", keys(m_unknown)}};
}

}  // namespace driftscope
