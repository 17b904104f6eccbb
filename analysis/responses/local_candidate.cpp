// SPDX-License-Identifier: Apache-2.0
// One configuration's logprobs of the vendor's tokens, with and without a temperature.
#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/responses/local_ranking.h"

namespace driftscope {
namespace {

constexpr std::size_t kRowsOfFit = 64;  // for the search; the result is computed from all
constexpr double kCoolest = 0.05;
constexpr double kHottest = 20.0;

}  // namespace

CandidateBuilder::CandidateBuilder(const VendorEvidence& evidence, std::string name,
                                   std::string description)
    : m_evidence(evidence) {
  m_out.name = std::move(name);
  m_out.description = std::move(description);
  for (const VendorValue& value : evidence.values) {
    if (!value.raw && value.step % stride() == 0) m_printing += value.tolerance * value.tolerance;
  }
}

std::size_t CandidateBuilder::stride() const {
  return std::max<std::size_t>(1, (m_evidence.tokens.size() + kRowsOfFit - 1) / kRowsOfFit);
}

void CandidateBuilder::add_row(std::span<const float> logits) {
  m_vocabulary = logits.size();
  const std::int32_t token = m_evidence.tokens[m_row_count];
  m_rows.insert(m_rows.end(), logits.begin(), logits.end());
  ++m_row_count;
  // Ties go to the lower id, as everywhere.
  const auto best = std::max_element(logits.begin(), logits.end());
  const double chosen = logits[static_cast<std::size_t>(token)];
  if (best - logits.begin() == token) ++m_out.greedy_matches;
  m_out.largest_gap = std::max(m_out.largest_gap, static_cast<double>(*best) - chosen);
  m_out.mean_log_likelihood += chosen - log_sum(m_row_count - 1, 1.0);
}

std::span<const float> CandidateBuilder::row(std::size_t step) const {
  return std::span(m_rows).subspan(step * m_vocabulary, m_vocabulary);
}

// ln Σ exp(scale · logit)
double CandidateBuilder::log_sum(std::size_t step, double scale) const {
  const std::span<const float> logits = row(step);
  const double top = scale * static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(scale * static_cast<double>(logit) - top);
  return top + std::log(sum);
}

LocalLogprobs CandidateBuilder::at_temperature(double temperature) const {
  LocalLogprobs out{.temperature = temperature, .values = {}};
  std::size_t step = std::numeric_limits<std::size_t>::max();
  double sum = 0.0;
  for (const VendorValue& value : m_evidence.values) {
    const double scale = value.raw ? 1.0 : 1.0 / temperature;
    if (value.step != step) sum = log_sum(step = value.step, scale);
    out.values.push_back(
        scale * static_cast<double>(row(step)[static_cast<std::size_t>(value.token)]) - sum);
  }
  return out;
}

// Over at most kRowsOfFit tokens, evenly spread.
double CandidateBuilder::squares(double temperature) const {
  const double scale = 1.0 / temperature;
  std::size_t step = std::numeric_limits<std::size_t>::max();
  double sum = 0.0;
  double total = 0.0;
  for (const VendorValue& value : m_evidence.values) {
    if (value.raw || value.step % stride() != 0) continue;
    if (value.step != step) sum = log_sum(step = value.step, scale);
    const double logit = row(step)[static_cast<std::size_t>(value.token)];
    const double difference = value.logprob - (scale * logit - sum);
    total += difference * difference;
  }
  return total;
}

// A coarse search over the logarithm, then golden section between the neighbours of the best. A
// temperature of few digits is taken where it fits no worse: people set such.
LocalLogprobs CandidateBuilder::fit_temperature() const {
  constexpr int kGrid = 24;
  const double low = std::log(kCoolest);
  const double width = (std::log(kHottest) - low) / kGrid;
  int best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i <= kGrid; ++i) {
    const double found = squares(std::exp(low + i * width));
    if (found < least) {
      least = found;
      best = i;
    }
  }
  double begin = low + (best - 1) * width;
  double end = low + (best + 1) * width;
  const double golden = (std::sqrt(5.0) - 1.0) / 2.0;
  double left = end - golden * (end - begin);
  double right = begin + golden * (end - begin);
  double at_left = squares(std::exp(left));
  double at_right = squares(std::exp(right));
  for (int i = 0; i < 32; ++i) {
    if (at_left < at_right) {
      end = right;
      right = left;
      at_right = at_left;
      at_left = squares(std::exp(left = end - golden * (end - begin)));
    } else {
      begin = left;
      left = right;
      at_left = at_right;
      at_right = squares(std::exp(right = begin + golden * (end - begin)));
    }
  }
  const double free = std::exp(0.5 * (begin + end));
  const double at_free = squares(free);
  double chosen = free;
  for (const double digits : {1000.0, 100.0}) {
    const double round = std::round(free * digits) / digits;
    if (round <= 0.0 || std::abs(round - free) > 1e-3 * free) continue;
    // No worse than printing alone can make it.
    if (squares(round) <= std::max(1.05 * at_free, m_printing)) chosen = round;
  }
  return at_temperature(chosen);
}

LocalCandidate CandidateBuilder::finish() {
  if (m_row_count > 0) m_out.mean_log_likelihood /= static_cast<double>(m_row_count);
  m_out.plain = at_temperature(1.0);
  if (m_evidence.temperature) m_out.stated = at_temperature(*m_evidence.temperature);
  const bool fits = std::any_of(m_evidence.values.begin(), m_evidence.values.end(),
                                [](const VendorValue& value) { return !value.raw; });
  m_out.fitted = fits ? fit_temperature() : m_out.plain;
  m_rows = {};
  return std::move(m_out);
}

}  // namespace driftscope
