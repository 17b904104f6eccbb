// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/local_sides.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

namespace driftscope {
namespace {

constexpr std::size_t kMostNamed = 8;  // sides in one sentence

std::set<std::size_t> leaders_of(const LocalSide& side) {
  std::set<std::size_t> leaders;
  for (const LocalRank& rank : side.ranking.ranks) {
    if (rank.standing == LocalStanding::leading) leaders.insert(rank.candidate);
  }
  return leaders;
}

bool is_told(const LocalSide& side) { return side.ranking.verdict != LocalVerdict::unobservable; }

std::vector<std::string> names_of(const LocalSide& side, const std::set<std::size_t>& indices) {
  std::vector<std::string> names;
  for (const LocalRank& rank : side.ranking.ranks) {  // best first
    if (indices.contains(rank.candidate)) names.push_back(side.candidates[rank.candidate].name);
  }
  return names;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 8;
  const auto shown = std::span(names).first(std::min(kMost, names.size()));
  return fmt::format("{}{}", fmt::join(shown, ", "),
                     names.size() > kMost ? fmt::format(" and {} more", names.size() - kMost) : "");
}

// "A exactly int8", "A nearest to int8", or of several that lead "A only among 7 that these numbers
// do not tell apart", with the one of them that leads all sides, or their names.
std::string standing_of(const LocalSide& side, const std::vector<std::string>& common) {
  const std::vector<std::string> names = names_of(side, leaders_of(side));
  const bool exact = side.ranking.verdict == LocalVerdict::exact;
  if (names.size() == 1)
    return fmt::format("{} {} {}", side.name, exact ? "exactly" : "nearest to", names.front());
  const std::string which = common.size() == 1 ? common.front() : std::string();
  return fmt::format(
      "{} only among {} that these numbers do not tell apart{}", side.name, names.size(),
      which.empty() ? fmt::format(" ({})", listed(names)) : fmt::format(", {} one of them", which));
}

// "A exactly int8; B nearest to bf16; C is unobservable"
std::string each_side(std::span<const LocalSide> sides, const std::vector<std::string>& common) {
  std::string told, unknown;
  std::size_t told_count = 0;
  std::size_t unknown_count = 0;
  for (const LocalSide& side : sides) {
    if (!is_told(side)) {
      if (++unknown_count <= kMostNamed)
        unknown += fmt::format("{}{}", unknown.empty() ? "" : ", ", side.name);
      continue;
    }
    if (++told_count > kMostNamed) continue;
    told += (told.empty() ? "" : "; ") + standing_of(side, common);
  }
  const auto more = [](std::size_t count) {
    return count > kMostNamed ? fmt::format(" and {} more", count - kMostNamed) : std::string();
  };
  told += more(told_count);
  if (unknown_count == 0) return told;
  return fmt::format("{}{}{}{} {} unobservable", told, told.empty() ? "" : "; ", unknown,
                     more(unknown_count), unknown_count == 1 ? "is" : "are");
}

}  // namespace

std::string_view name_of(SidesAgreement agreement) {
  switch (agreement) {
    case SidesAgreement::same:
      return "same";
    case SidesAgreement::differ:
      return "differ";
    case SidesAgreement::open:
      return "open";
  }
  return "";
}

SidesComparison compare_local_sides(std::span<const LocalSide> sides) {
  SidesComparison out;
  std::set<std::size_t> common;
  const LocalSide* first = nullptr;
  std::size_t told = 0;
  for (const LocalSide& side : sides) {
    if (!is_told(side)) continue;
    const std::set<std::size_t> leaders = leaders_of(side);
    if (++told == 1) {
      first = &side;
      common = leaders;
    } else {
      std::erase_if(common, [&](std::size_t index) { return !leaders.contains(index); });
    }
  }
  if (first != nullptr) out.common = names_of(*first, common);
  if (told >= 2 && common.empty()) {
    out.agreement = SidesAgreement::differ;
    out.sentence = fmt::format("the files differ: {}", each_side(sides, {}));
  } else if (told == sides.size() && told > 0) {
    out.agreement = SidesAgreement::same;
    out.sentence = each_side(sides, out.common);
    if (out.common.size() > 1)
      out.sentence += fmt::format("; any of {} may have given all", listed(out.common));
  } else {
    out.sentence = fmt::format("whether one configuration gave all {} files is not known: {}",
                               sides.size(), each_side(sides, {}));
  }
  return out;
}

nlohmann::ordered_json sides_json(const SidesComparison& comparison) {
  return {{"agreement", std::string(name_of(comparison.agreement))},
          {"sentence", comparison.sentence},
          {"common", comparison.common}};
}

}  // namespace driftscope
