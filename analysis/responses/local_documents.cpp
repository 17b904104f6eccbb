// SPDX-License-Identifier: Apache-2.0
// The ranking of local configurations, as JSON and for a terminal.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analysis/compare/findings.h"
#include "analysis/responses/local_ranking.h"

namespace driftscope {

using Json = nlohmann::ordered_json;

Json ranking_json(const LocalRanking& ranking, std::span<const LocalCandidate> candidates) {
  Json ranks = Json::array();
  const bool measured = ranking.values > 0;
  for (const LocalRank& rank : ranking.ranks) {
    const LocalCandidate& candidate = candidates[rank.candidate];
    const bool ran = rank.standing != LocalStanding::not_run;
    const auto number = [&](bool known, double value) {
      return ran && known ? json_number(value) : Json();
    };
    ranks.push_back(
        {{"name", candidate.name},
         {"description", candidate.description},
         {"problem", candidate.problem.empty() ? Json() : Json(candidate.problem)},
         {"standing", measured || !ran ? Json(std::string(name_of(rank.standing))) : Json()},
         {"temperature", number(measured, rank.temperature)},
         {"fitted_temperature", number(measured, candidate.fitted.temperature)},
         {"mean_abs", number(measured, rank.mean_abs)},
         {"max_abs", number(measured, rank.max_abs)},
         {"within_printing", ran && measured ? Json(rank.within) : Json()},
         {"distance_to_best", number(measured, rank.distance)},
         {"tokens_nearer_to_best", ran && measured ? Json(rank.nearer_best) : Json()},
         {"tokens_nearer_to_this", ran && measured ? Json(rank.nearer_this) : Json()},
         {"p_value_corrected", number(measured, rank.corrected_p)},
         {"greedy_matches", ran ? Json(candidate.greedy_matches) : Json()},
         {"mean_log_likelihood", number(true, candidate.mean_log_likelihood)},
         {"largest_gap", number(true, candidate.largest_gap)}});
  }
  return {{"verdict", std::string(name_of(ranking.verdict))},
          {"sentence", ranking.sentence},
          {"tokens", ranking.tokens},
          {"logprobs", ranking.values},
          {"print_tolerance", ranking.print_tolerance},
          {"temperature_use", std::string(name_of(ranking.temperature_use))},
          {"configurations", ranks}};
}

namespace {

// Nothing leads where nothing is told: what is not told apart is possible, unless none is near.
std::string_view mark_of(const LocalRanking& ranking, const LocalRank& rank) {
  if (ranking.values == 0) return "";
  if (rank.standing != LocalStanding::leading) return "apart";
  if (ranking.verdict != LocalVerdict::unobservable) return "leads";
  return ranking.none_near ? "-" : "possible";
}

}  // namespace

std::string ranking_text(const LocalRanking& ranking, std::span<const LocalCandidate> candidates) {
  std::string out = ranking.sentence + "\n";
  const bool measured = ranking.values > 0;
  for (const LocalRank& rank : ranking.ranks) {
    const LocalCandidate& candidate = candidates[rank.candidate];
    if (rank.standing == LocalStanding::not_run) {
      out += fmt::format("  not run  {:<26} {}\n", candidate.name, candidate.problem);
      continue;
    }
    out += fmt::format("  {:<8} {:<26}", mark_of(ranking, rank), candidate.name);
    if (measured) {
      out += fmt::format(" mean |Δ| {:<9.3g} max {:<9.3g} {} of {} within printing;", rank.mean_abs,
                         rank.max_abs, rank.within, ranking.values);
    }
    out += fmt::format(" first choice {} of {}, {:.5g} nats a token\n", candidate.greedy_matches,
                       ranking.tokens, candidate.mean_log_likelihood);
  }
  return out;
}

}  // namespace driftscope
