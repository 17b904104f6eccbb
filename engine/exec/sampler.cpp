// SPDX-License-Identifier: Apache-2.0
#include "engine/exec/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/exec/philox.h"
#include "kernels/plan/portable_math.h"

namespace driftscope {
namespace {

// Index of the highest value; the lowest such index; NaN loses to everything.
template <class Value>
std::size_t highest(std::span<const Value> values) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i] > values[best] || (std::isnan(values[best]) && !std::isnan(values[i]))) best = i;
  }
  return best;
}

TokenId token(std::size_t index) { return TokenId{static_cast<std::int32_t>(index)}; }

}  // namespace

TokenId greedy_choice(std::span<const float> logits) {
  return logits.empty() ? TokenId{0} : token(highest(logits));
}

bool Sampler::has_penalties() const {
  return m_config.repetition_penalty != 1.0 || m_config.presence_penalty != 0.0 ||
         m_config.frequency_penalty != 0.0;
}

TokenId Sampler::choose(std::span<const float> logits, std::span<const TokenId> prompt,
                        std::span<const TokenId> output, std::uint64_t draw) {
  m_drawn = false;
  if (m_config.temperature == 0.0 && !has_penalties()) return greedy_choice(logits);
  m_logits.assign(logits.begin(), logits.end());
  if (has_penalties()) penalise(prompt, output);
  if (m_config.temperature == 0.0) return token(highest(std::span<const double>(m_logits)));
  collect_candidates();
  if (m_candidates.empty()) return greedy_choice(logits);
  keep_top_k();
  // From here on values are exp(logit - highest), so sums need no maximum of their own.
  const double top =
      std::max_element(m_candidates.begin(), m_candidates.end(), [](const auto& a, const auto& b) {
        return a.value < b.value;
      })->value;
  if (std::isinf(top)) return greedy_choice(logits);
  for (Candidate& candidate : m_candidates) {
    candidate.score = candidate.value - top;
    candidate.value = portable::exp(candidate.score);
  }
  keep_top_p();
  keep_min_p();
  m_drawn = true;
  m_draw = {};
  return m_config.method == SamplerMethod::gumbel_max ? race(draw) : invert(draw);
}

void Sampler::penalise(std::span<const TokenId> prompt, std::span<const TokenId> output) {
  m_counts.assign(m_logits.size(), 0);
  m_seen.assign(m_logits.size(), 0);
  for (const TokenId id : prompt) m_seen[static_cast<std::size_t>(id.value)] = 1;
  for (const TokenId id : output) {
    m_seen[static_cast<std::size_t>(id.value)] = 1;
    ++m_counts[static_cast<std::size_t>(id.value)];
  }
  for (std::size_t i = 0; i < m_logits.size(); ++i) {
    double& logit = m_logits[i];
    if (m_seen[i] != 0) {
      logit = logit > 0 ? logit / m_config.repetition_penalty : logit * m_config.repetition_penalty;
    }
    if (m_counts[i] > 0) {
      logit -= m_config.presence_penalty + m_config.frequency_penalty * m_counts[i];
    }
  }
}

void Sampler::collect_candidates() {
  m_candidates.clear();
  for (std::size_t i = 0; i < m_logits.size(); ++i) {
    const double value = m_logits[i] / m_config.temperature;
    if (std::isnan(value)) continue;
    m_candidates.push_back({.score = value, .value = value, .id = static_cast<std::int32_t>(i)});
  }
}

namespace {

// Higher value first, then lower id: a total order, so every partial sort has one result.
constexpr auto kBetter = [](const auto& a, const auto& b) {
  return a.value != b.value ? a.value > b.value : a.id < b.id;
};

}  // namespace

void Sampler::keep_top_k() {
  const auto k = static_cast<std::size_t>(std::max<std::int64_t>(m_config.top_k, 0));
  if (k == 0 || k >= m_candidates.size()) return;
  std::nth_element(m_candidates.begin(), m_candidates.begin() + static_cast<std::ptrdiff_t>(k),
                   m_candidates.end(), kBetter);
  m_candidates.resize(k);
  // Back to rising id, so that later sums do not depend on how nth_element arranged them.
  std::sort(m_candidates.begin(), m_candidates.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
}

void Sampler::keep_top_p() {
  if (m_config.top_p >= 1.0) return;
  double total = 0.0;
  for (const Candidate& candidate : m_candidates) total += candidate.value;  // order: rising id
  // A heap gives the best one by one; few are needed where the distribution is peaked.
  const auto worse = [](const auto& a, const auto& b) { return kBetter(b, a); };
  std::make_heap(m_candidates.begin(), m_candidates.end(), worse);
  auto end = m_candidates.end();
  double reached = 0.0;
  while (end != m_candidates.begin()) {
    std::pop_heap(m_candidates.begin(), end, worse);
    --end;
    reached += end->value;  // order: falling probability
    if (reached >= m_config.top_p * total) break;
  }
  m_candidates.erase(m_candidates.begin(), end);
  std::sort(m_candidates.begin(), m_candidates.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
}

void Sampler::keep_min_p() {
  if (m_config.min_p <= 0.0) return;
  // The highest value is exp(0) = 1: it survives every step before this one.
  std::erase_if(m_candidates, [&](const Candidate& c) { return c.value < m_config.min_p; });
}

TokenId Sampler::invert(std::uint64_t draw) {
  double total = 0.0;
  for (const Candidate& candidate : m_candidates) total += candidate.value;  // order: rising id
  m_draw.uniform = philox_uniform(m_config.seed, draw);
  const double target = m_draw.uniform * total;
  double cumulative = 0.0;
  std::int32_t last_possible = m_candidates.front().id;
  for (const Candidate& candidate : m_candidates) {
    if (candidate.value == 0.0) continue;
    m_draw.lower = cumulative / total;
    cumulative += candidate.value;
    m_draw.upper = cumulative / total;
    last_possible = candidate.id;
    if (cumulative > target) break;  // always reached, unless the product rounded up to the total
  }
  return TokenId{last_possible};
}

TokenId Sampler::race(std::uint64_t draw) {
  const auto before = [](const DrawCandidate& a, const DrawCandidate& b) {
    const double sum_a = a.score + a.noise;
    const double sum_b = b.score + b.noise;
    return sum_a != sum_b ? sum_a > sum_b : a.id < b.id;
  };
  std::vector<DrawCandidate>& best = m_draw.candidates;
  for (const Candidate& candidate : m_candidates) {
    if (candidate.value == 0.0) continue;
    const double uniform =
        philox_token_uniform(m_config.seed, draw, static_cast<std::uint32_t>(candidate.id));
    const DrawCandidate runner{.id = TokenId{candidate.id},
                               .score = candidate.score,
                               .noise = -portable::log(-portable::log(uniform))};
    if (best.size() == kDrawCandidates && !before(runner, best.back())) continue;
    best.insert(std::upper_bound(best.begin(), best.end(), runner, before), runner);
    if (best.size() > kDrawCandidates) best.pop_back();
  }
  return best.front().id;
}

}  // namespace driftscope
