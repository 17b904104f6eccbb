// SPDX-License-Identifier: Apache-2.0
// Agreement of the two rankings. Order: higher logit first, then lower token id.
#include <algorithm>
#include <cmath>

#include "analysis/metrics/families.h"

namespace driftscope {

namespace {

bool ranks_before(const RankedToken& x, const RankedToken& y) {
  if (x.logit != y.logit) return x.logit > y.logit;
  return x.token < y.token;
}

}  // namespace

std::vector<RankedToken> top_tokens(LogitsRow row, std::int64_t k) {
  if (k <= 0) return {};
  const auto wanted = static_cast<std::size_t>(std::min(k, static_cast<std::int64_t>(row.size())));
  std::vector<RankedToken> best;  // a heap whose front is the last of the best
  best.reserve(wanted);
  for (std::size_t id = 0; id < row.size(); ++id) {
    const float logit = row[id];
    if (best.size() == wanted) {
      // Ids rise, so an equal logit never displaces an earlier token. NaN compares false.
      if (!(logit > best.front().logit)) continue;
      std::pop_heap(best.begin(), best.end(), ranks_before);
      best.pop_back();
    } else if (std::isnan(logit)) {
      continue;
    }
    best.push_back({TokenId{static_cast<std::int32_t>(id)}, logit});
    std::push_heap(best.begin(), best.end(), ranks_before);
  }
  std::sort(best.begin(), best.end(), ranks_before);
  return best;
}

namespace metrics {

namespace {

// Rank-biased overlap looks at depth d with weight p^(d-1); 0.9 puts 86% of it on the first ten.
constexpr double kRboPersistence = 0.9;

struct UnionToken {
  TokenId token{};
  std::int32_t rank_a = 0, rank_b = 0;  // in the whole row, from 0
  float logit_a = 0.0F, logit_b = 0.0F;
};

std::optional<std::int32_t> rank_in_list(std::span<const RankedToken> list, TokenId token) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].token == token) return static_cast<std::int32_t>(i);
  }
  return std::nullopt;
}

std::int32_t rank_in_row(LogitsRow row, TokenId token) {
  const auto position = static_cast<std::size_t>(token.value);
  const float logit = row[position];
  std::int32_t before = 0;
  for (const float other : row.first(position)) before += static_cast<std::int32_t>(other >= logit);
  for (const float other : row.subspan(position))
    before += static_cast<std::int32_t>(other > logit);
  return before;
}

// Every token of either list with its ranks in both whole rows, so no entry is missing from a
// ranking; tokens that are NaN in the other row have no rank and are left out. By rank in A.
std::vector<UnionToken> union_of(LogitsRow a, LogitsRow b, std::span<const RankedToken> top_a,
                                 std::span<const RankedToken> top_b) {
  std::vector<UnionToken> tokens;
  const auto add = [&](TokenId token) {
    const auto position = static_cast<std::size_t>(token.value);
    if (std::isnan(a[position]) || std::isnan(b[position])) return;
    const auto rank_a = rank_in_list(top_a, token);
    const auto rank_b = rank_in_list(top_b, token);
    tokens.push_back({token, rank_a ? *rank_a : rank_in_row(a, token),
                      rank_b ? *rank_b : rank_in_row(b, token), a[position], b[position]});
  };
  for (const RankedToken& entry : top_a) add(entry.token);
  for (const RankedToken& entry : top_b) {
    if (!rank_in_list(top_a, entry.token)) add(entry.token);
  }
  std::sort(tokens.begin(), tokens.end(),
            [](const UnionToken& x, const UnionToken& y) { return x.rank_a < y.rank_a; });
  return tokens;
}

std::vector<RankFlip> flips_among(const std::vector<UnionToken>& tokens) {
  std::vector<RankFlip> flips;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    for (std::size_t j = i + 1; j < tokens.size(); ++j) {
      const UnionToken& x = tokens[i];
      const UnionToken& y = tokens[j];
      if (x.rank_b < y.rank_b) continue;
      flips.push_back({.x = x.token,
                       .y = y.token,
                       .rank_a_x = x.rank_a,
                       .rank_a_y = y.rank_a,
                       .rank_b_x = x.rank_b,
                       .rank_b_y = y.rank_b,
                       .gap_a = double{x.logit_a} - double{y.logit_a},
                       .gap_b = double{x.logit_b} - double{y.logit_b}});
    }
  }
  return flips;
}

std::size_t common_tokens(std::span<const RankedToken> x, std::span<const RankedToken> y) {
  return static_cast<std::size_t>(std::count_if(
      x.begin(), x.end(), [&](const RankedToken& entry) { return rank_in_list(y, entry.token); }));
}

// Kendall's tau over the union: (concordant - discordant) / pairs; a pair is discordant where the
// whole rows order it differently. 1 where there is no pair.
double kendall(std::size_t tokens, std::size_t discordant) {
  if (tokens < 2) return 1.0;
  const auto pairs = static_cast<double>(tokens * (tokens - 1) / 2);
  return 1.0 - 2.0 * static_cast<double>(discordant) / pairs;
}

// Extrapolated rank-biased overlap at depth K (Webber, Moffat, Zobel, "A similarity measure for
// indefinite rankings", ACM TOIS 28(4), 2010, equation 32):
//   RBO = A_K p^K + (1 - p) / p * sum_{d = 1 … K} A_d p^d,   A_d = |first d of both| / d.
// Summed as one minus the disagreement, so that equal lists give exactly 1.
double rank_biased_overlap(std::span<const RankedToken> x, std::span<const RankedToken> y) {
  const std::size_t depth = std::min(x.size(), y.size());
  double disagreement = 0.0;
  double weight = 1.0;  // p^(d - 1)
  double last = 0.0;
  for (std::size_t d = 1; d <= depth; ++d) {
    const std::size_t common = common_tokens(x.first(d), y.first(d));
    last = static_cast<double>(d - common) / static_cast<double>(d);
    disagreement += (1.0 - kRboPersistence) * weight * last;
    weight *= kRboPersistence;
  }
  return 1.0 - (disagreement + weight * last);
}

}  // namespace

RankingFigures compare_rankings(LogitsRow a, LogitsRow b, std::span<const RankedToken> top_a,
                                std::span<const RankedToken> top_b) {
  RankingFigures figures;
  if (top_a.empty() || top_b.empty()) return figures;
  const std::vector<UnionToken> tokens = union_of(a, b, top_a, top_b);
  figures.flips = flips_among(tokens);
  figures.top1_match = top_a.front().token == top_b.front().token ? 1.0 : 0.0;
  figures.topk_overlap = static_cast<double>(common_tokens(top_a, top_b)) /
                         static_cast<double>(std::max(top_a.size(), top_b.size()));
  figures.topk_kendall = kendall(tokens.size(), figures.flips.size());
  figures.rbo = rank_biased_overlap(top_a, top_b);
  return figures;
}

}  // namespace metrics
}  // namespace driftscope
