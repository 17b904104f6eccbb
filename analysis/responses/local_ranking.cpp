// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/local_ranking.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/responses/populations.h"

namespace driftscope {
namespace {

// Of the vendor's log-softmax: logits and their logarithmic sum are f32 of up to some tens.
constexpr double kArithmetic = 1.0 / 262144.0;  // 2^-18
constexpr double kSignificance = 0.05;

double tolerance_of(const VendorValue& value) {
  return value.tolerance + kArithmetic * std::max(1.0, std::abs(value.logprob));
}

double mean_of(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return values.empty() ? 0.0 : sum / static_cast<double>(values.size());
}

class Ranker {
 public:
  Ranker(const VendorEvidence& evidence, std::span<const LocalCandidate> candidates)
      : m_evidence(evidence), m_candidates(candidates) {}

  LocalRanking run() {
    m_out.tokens = m_evidence.tokens.size();
    m_out.values = m_evidence.values.size();
    for (const VendorValue& value : m_evidence.values) {
      m_out.print_tolerance = std::max(m_out.print_tolerance, value.tolerance);
    }
    choose_temperature();
    measure();
    if (m_out.values > 0 && m_run > 0) tell_apart();
    conclude();
    return std::move(m_out);
  }

 private:
  [[nodiscard]] const LocalLogprobs* logprobs(const LocalCandidate& candidate,
                                              TemperatureUse use) const {
    if (!candidate.problem.empty()) return nullptr;
    if (use == TemperatureUse::stated) return candidate.stated ? &*candidate.stated : nullptr;
    return use == TemperatureUse::fitted ? &candidate.fitted : &candidate.plain;
  }
  [[nodiscard]] const LocalLogprobs& logprobs(const LocalRank& rank) const {
    return *logprobs(m_candidates[rank.candidate], m_out.temperature_use);
  }

  [[nodiscard]] double mean_abs(const std::vector<double>& local) const {
    std::vector<double> differences;
    for (std::size_t i = 0; i < local.size(); ++i) {
      differences.push_back(std::abs(m_evidence.values[i].logprob - local[i]));
    }
    return mean_of(differences);
  }

  // Over the values on which a temperature bears; infinite where there are none.
  [[nodiscard]] double best_mean(TemperatureUse use) const {
    double best = std::numeric_limits<double>::infinity();
    for (const LocalCandidate& candidate : m_candidates) {
      const LocalLogprobs* local = logprobs(candidate, use);
      if (local == nullptr) continue;
      std::vector<double> differences;
      for (std::size_t i = 0; i < local->values.size(); ++i) {
        const VendorValue& value = m_evidence.values[i];
        if (!value.raw) differences.push_back(std::abs(value.logprob - local->values[i]));
      }
      if (!differences.empty()) best = std::min(best, mean_of(differences));
    }
    return best;
  }

  // A temperature is believed where it halves what the best configuration without one leaves.
  void choose_temperature() {
    if (m_out.values == 0) return;
    double least = best_mean(TemperatureUse::none);
    for (const TemperatureUse use : {TemperatureUse::stated, TemperatureUse::fitted}) {
      const double found = best_mean(use);
      if (!(found < 0.5 * least)) continue;
      least = found;
      m_out.temperature_use = use;
    }
  }

  void measure() {
    for (std::size_t c = 0; c < m_candidates.size(); ++c) {
      LocalRank rank{.candidate = c};
      if (const LocalLogprobs* local = logprobs(m_candidates[c], m_out.temperature_use)) {
        ++m_run;
        rank.standing = LocalStanding::leading;
        rank.temperature = local->temperature;
        rank.mean_abs = mean_abs(local->values);
        for (std::size_t i = 0; i < local->values.size(); ++i) {
          const VendorValue& value = m_evidence.values[i];
          const double difference = std::abs(value.logprob - local->values[i]);
          rank.max_abs = std::max(rank.max_abs, difference);
          if (difference <= tolerance_of(value)) ++rank.within;
        }
      }
      m_out.ranks.push_back(rank);
    }
    const bool by_values = m_out.values > 0;
    const auto before = [&](const LocalRank& a, const LocalRank& b) {
      const bool ran_a = a.standing != LocalStanding::not_run;
      const bool ran_b = b.standing != LocalStanding::not_run;
      if (ran_a != ran_b) return ran_a;
      if (by_values && exact(a) != exact(b)) return exact(a);
      if (by_values) return a.mean_abs < b.mean_abs;
      return m_candidates[a.candidate].mean_log_likelihood >
             m_candidates[b.candidate].mean_log_likelihood;
    };
    std::stable_sort(m_out.ranks.begin(), m_out.ranks.end(), before);
  }

  [[nodiscard]] bool exact(const LocalRank& rank) const {
    return rank.within == static_cast<std::int64_t>(m_out.values);
  }

  [[nodiscard]] bool misses_many(const LocalRank& rank) const {
    const double misses = static_cast<double>(m_out.values) - static_cast<double>(rank.within);
    return std::exp(-misses) * static_cast<double>(m_run - 1) <= kSignificance;
  }

  // Tokens whose values are nearer to one configuration than to the other, by their mean |Δ|.
  void count_nearer(const LocalLogprobs& best, const LocalLogprobs& other, LocalRank& rank) const {
    double to_best = 0.0;
    double to_other = 0.0;
    for (std::size_t i = 0; i < m_evidence.values.size(); ++i) {
      const VendorValue& value = m_evidence.values[i];
      to_best += std::abs(value.logprob - best.values[i]);
      to_other += std::abs(value.logprob - other.values[i]);
      const bool last =
          i + 1 == m_evidence.values.size() || m_evidence.values[i + 1].step != value.step;
      if (!last) continue;
      if (to_best < to_other) ++rank.nearer_best;
      if (to_other < to_best) ++rank.nearer_this;
      to_best = to_other = 0.0;
    }
  }

  void tell_apart() {
    const LocalLogprobs& best = logprobs(m_out.ranks[0]);
    std::vector<double> p_values;
    for (std::size_t r = 1; r < m_run; ++r) {
      LocalRank& rank = m_out.ranks[r];
      const LocalLogprobs& other = logprobs(rank);
      std::vector<double> apart;
      rank.within_print = true;
      for (std::size_t i = 0; i < best.values.size(); ++i) {
        apart.push_back(std::abs(best.values[i] - other.values[i]));
        const bool narrow = apart.back() <= 2.0 * tolerance_of(m_evidence.values[i]);
        rank.within_print = rank.within_print && narrow;
      }
      rank.distance = mean_of(apart);
      count_nearer(best, other, rank);
      p_values.push_back(sign_test(rank.nearer_best, rank.nearer_best + rank.nearer_this));
    }
    const std::vector<double> corrected = holm_correction(p_values);
    const bool best_exact = exact(m_out.ranks[0]);
    for (std::size_t r = 1; r < m_run; ++r) {
      LocalRank& rank = m_out.ranks[r];
      rank.corrected_p = corrected[r - 1];
      const bool apart = best_exact ? !exact(rank) && (!rank.within_print || misses_many(rank))
                                    : m_out.ranks[0].mean_abs <= 0.5 * rank.distance &&
                                          rank.corrected_p <= kSignificance;
      if (apart) rank.standing = LocalStanding::told_apart;
    }
  }

  [[nodiscard]] std::string leaders(std::size_t& count, const LocalRank*& next) const {
    std::string names;
    for (std::size_t r = 0; r < m_run; ++r) {
      const LocalRank& rank = m_out.ranks[r];
      if (rank.standing != LocalStanding::leading) {
        if (next == nullptr) next = &rank;
        continue;
      }
      ++count;
      names += (names.empty() ? "" : ", ") + m_candidates[rank.candidate].name;
    }
    return names;
  }

  void conclude() {
    if (m_run == 0) {
      m_out.sentence = "unobservable: none of the configurations could run";
      return;
    }
    if (m_out.values == 0) {
      m_out.sentence = fmt::format(
          "unobservable: {}; the tokens alone do not tell configurations "
          "apart",
          m_evidence.no_values.empty() ? "no logprobs" : m_evidence.no_values);
      return;
    }
    std::size_t count = 0;
    const LocalRank* next = nullptr;
    const std::string names = leaders(count, next);
    const LocalRank& best = m_out.ranks[0];
    const LocalCandidate& first = m_candidates[best.candidate];
    const std::string fit = fmt::format("mean |Δ| {:.3g} over {} logprobs of {} tokens",
                                        best.mean_abs, m_out.values, m_out.tokens);
    if (next == nullptr && !(m_run == 1 && exact(best))) {
      m_out.sentence = undecided(best, fit);
      return;
    }
    m_out.verdict = exact(best) ? LocalVerdict::exact : LocalVerdict::nearest;
    const std::string against =
        next == nullptr ? std::string()
                        : fmt::format(", against {:.3g} for the next, {}", next->mean_abs,
                                      m_candidates[next->candidate].name);
    const std::string who =
        count == 1 ? fmt::format("{} ({})", first.name, first.description)
                   : fmt::format("one of {} (these numbers do not tell them apart)", names);
    m_out.sentence =
        fmt::format("this looks like {}{}: {}{}", who,
                    exact(best) ? ", exactly as far as it is printed" : "", fit, against);
    if (m_out.temperature_use != TemperatureUse::none) {
      m_out.sentence += fmt::format("; the logprobs are those of a temperature of {:.4g} ({})",
                                    best.temperature, name_of(m_out.temperature_use));
    }
  }

  [[nodiscard]] std::string undecided(const LocalRank& best, const std::string& fit) {
    m_out.none_near = m_run == 1;
    if (m_run == 1)
      return fmt::format("unobservable: one configuration only, and it does not fit exactly ({})",
                         fit);
    if (exact(best))
      return fmt::format(
          "unobservable: every configuration fits exactly as far as the numbers are "
          "printed ({})",
          fit);
    double widest = 0.0;
    for (std::size_t r = 1; r < m_run; ++r) widest = std::max(widest, m_out.ranks[r].distance);
    m_out.none_near = best.mean_abs > 0.5 * widest;
    if (m_out.none_near)
      return fmt::format(
          "unobservable: none is near. The nearest, {}, is off by more ({}) than half of what lies "
          "between it and any other, which is at most {:.3g} (half of {:.3g}): another model, "
          "prompt or template, or arithmetic that is not among these",
          m_candidates[best.candidate].name, fit, 0.5 * widest, widest);
    return fmt::format("unobservable: too few tokens to prefer {} to any other ({})",
                       m_candidates[best.candidate].name, fit);
  }

  const VendorEvidence& m_evidence;
  std::span<const LocalCandidate> m_candidates;
  LocalRanking m_out;
  std::size_t m_run = 0;
};

}  // namespace

std::string_view name_of(TemperatureUse use) {
  switch (use) {
    case TemperatureUse::none:
      return "none";
    case TemperatureUse::stated:
      return "stated";
    case TemperatureUse::fitted:
      return "fitted";
  }
  return "";
}

std::string_view name_of(LocalVerdict verdict) {
  switch (verdict) {
    case LocalVerdict::exact:
      return "exact";
    case LocalVerdict::nearest:
      return "nearest";
    case LocalVerdict::unobservable:
      return "unobservable";
  }
  return "";
}

std::string_view name_of(LocalStanding standing) {
  switch (standing) {
    case LocalStanding::leading:
      return "leading";
    case LocalStanding::told_apart:
      return "told_apart";
    case LocalStanding::not_run:
      return "not_run";
  }
  return "";
}

double sign_test(std::int64_t k, std::int64_t n) {
  // Binomial coefficients over 2^n, from the top down.
  double term = std::exp2(-static_cast<double>(n));
  if (term == 0.0) {  // beyond double: the normal approximation
    const double z = (static_cast<double>(k) - 0.5 - 0.5 * static_cast<double>(n)) /
                     (0.5 * std::sqrt(static_cast<double>(n)));
    return 0.5 * std::erfc(z / std::sqrt(2.0));
  }
  double sum = 0.0;
  for (std::int64_t hits = n; hits >= k; --hits) {
    sum += term;
    term *= static_cast<double>(hits) / static_cast<double>(n - hits + 1);
  }
  return std::min(1.0, sum);
}

namespace {

// The values of answers among them.
LocalLogprobs chosen(const LocalLogprobs& all, const std::vector<VendorValue>& values) {
  LocalLogprobs out{.temperature = all.temperature, .values = {}};
  for (std::size_t i = 0; i < all.values.size(); ++i) {
    if (!values[i].raw) out.values.push_back(all.values[i]);
  }
  return out;
}

std::vector<LocalCandidate> without_prompts(std::span<const LocalCandidate> candidates,
                                            const VendorEvidence& evidence) {
  std::vector<LocalCandidate> out(candidates.begin(), candidates.end());
  for (LocalCandidate& candidate : out) {
    candidate.plain = chosen(candidate.plain, evidence.values);
    candidate.fitted = chosen(candidate.fitted, evidence.values);
    if (candidate.stated) candidate.stated = chosen(*candidate.stated, evidence.values);
  }
  return out;
}

}  // namespace

LocalRanking rank_candidates(const VendorEvidence& evidence,
                             std::span<const LocalCandidate> candidates) {
  LocalRanking all = Ranker(evidence, candidates).run();
  VendorEvidence answers = evidence;
  const auto of_prompts = std::erase_if(answers.values, [](const VendorValue& v) { return v.raw; });
  if (of_prompts == 0 || answers.values.empty() || all.verdict == LocalVerdict::exact) return all;
  const auto those = without_prompts(candidates, evidence);
  LocalRanking alone = Ranker(answers, those).run();
  if (alone.verdict != LocalVerdict::exact) return all;
  alone.sentence += fmt::format(
      "; the {} logprobs of the prompt do not all fit it and are left out (another temperature, or "
      "another computation of the prompt)",
      of_prompts);
  return alone;
}

}  // namespace driftscope
