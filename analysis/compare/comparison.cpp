// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/comparison.h"

#include <algorithm>
#include <array>

namespace driftscope {

namespace {

constexpr std::array kTiers{Tier::bitwise,  Tier::tolerance, Tier::token,
                            Tier::semantic, Tier::different, Tier::inconclusive};
constexpr std::array kCauses{FlipCause::tie_break, FlipCause::near_tie, FlipCause::excess_drift,
                             FlipCause::input,     FlipCause::sampler,  FlipCause::unexplained};
constexpr std::array kSeverities{Severity::info, Severity::notice, Severity::warning,
                                 Severity::error};

template <class Values>
std::optional<typename Values::value_type> find_by_name(const Values& values,
                                                        std::string_view name) {
  for (const auto value : values) {
    if (name_of(value) == name) return value;
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(Tier tier) {
  switch (tier) {
    case Tier::bitwise:
      return "bitwise";
    case Tier::tolerance:
      return "tolerance";
    case Tier::token:
      return "token";
    case Tier::semantic:
      return "semantic";
    case Tier::different:
      return "different";
    case Tier::inconclusive:
      return "inconclusive";
  }
  return "?";
}

std::string_view name_of(FlipCause cause) {
  switch (cause) {
    case FlipCause::tie_break:
      return "tie_break";
    case FlipCause::near_tie:
      return "near_tie";
    case FlipCause::excess_drift:
      return "excess_drift";
    case FlipCause::input:
      return "input";
    case FlipCause::sampler:
      return "sampler";
    case FlipCause::unexplained:
      return "unexplained";
  }
  return "?";
}

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::info:
      return "info";
    case Severity::notice:
      return "notice";
    case Severity::warning:
      return "warning";
    case Severity::error:
      return "error";
  }
  return "?";
}

std::optional<Tier> tier_from_name(std::string_view name) { return find_by_name(kTiers, name); }
std::optional<FlipCause> flip_cause_from_name(std::string_view name) {
  return find_by_name(kCauses, name);
}
std::optional<Severity> severity_from_name(std::string_view name) {
  return find_by_name(kSeverities, name);
}

const TokenPiece* Comparison::piece(TokenId id) const {
  const auto found =
      std::lower_bound(pieces.begin(), pieces.end(), id,
                       [](const TokenPiece& entry, TokenId wanted) { return entry.id < wanted; });
  return found != pieces.end() && found->id == id ? &*found : nullptr;
}

}  // namespace driftscope
