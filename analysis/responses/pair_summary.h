// SPDX-License-Identifier: Apache-2.0
// Thousands of compared pairs in a page: how many of which kind, and the ones to look at first.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/responses/response_set.h"

namespace driftscope {

class PairSummary {
 public:
  // Pairs of each list that are named.
  static constexpr std::size_t kListed = 10;

  // In the pairs' order: of equals, the earlier is listed.
  void add(const AnswerPair& pair);
  // The strongest tier that every pair reaches; inconclusive where one is, or for no pairs.
  [[nodiscard]] Tier weakest() const;
  // The strongest that no conclusive pair contradicts; bitwise where there is none.
  [[nodiscard]] Tier known() const { return m_known; }
  [[nodiscard]] std::int64_t pairs() const { return m_pairs; }
  // Lines ended by '\n'.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] nlohmann::ordered_json json() const;

 private:
  struct Entry {
    double weight = 0.0;
    std::string key;
    std::string sentence;
  };
  using List = std::vector<Entry>;  // by falling weight
  static void insert(List& list, double weight, const AnswerPair& pair);
  static std::string list_text(const char* title, const List& list);

  std::int64_t m_pairs = 0;
  Tier m_known = Tier::bitwise;
  std::array<std::int64_t, 6> m_tiers{};
  std::array<std::int64_t, 8> m_causes{};
  std::vector<std::int64_t> m_parting_steps;
  double m_drift_sum = 0.0;  // of the pairs' mean absolute drifts
  std::int64_t m_drift_pairs = 0;
  double m_largest_drift = 0.0;
  List m_widest, m_earliest, m_drifted, m_unknown;
};

}  // namespace driftscope
