// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/responses/response_lint.h"
#include "analysis/responses/response_pair.h"

namespace driftscope {

bool ResponsePair::numbers_comparable() const {
  const auto usable = [](const Response& response) {
    return response.scale == LogprobScale::log_probability && !response.fake_certainty &&
           !response.after_sampling;
  };
  if (m_a.after_sampling && m_b.after_sampling) return true;
  return usable(m_a) && usable(m_b);
}

std::string ResponsePair::kinds_of_numbers() const {
  const auto kind = [](const Response& response) {
    if (response.after_sampling) return "values after the samplers";
    if (response.scale == LogprobScale::logit) return "logits";
    if (response.scale == LogprobScale::probability) return "probabilities";
    return response.fake_certainty ? "placeholders" : "log probabilities";
  };
  const std::string a = kind(m_a);
  const std::string b = kind(m_b);
  if (a != b) return fmt::format("A's logprob fields hold {} and B's {}", a, b);
  const char* why = m_a.scale == LogprobScale::logit
                        ? ", of which only the gaps within a step mean something"
                        : ", and no log probabilities";
  return fmt::format("the logprob fields of both sides hold {}{}", a, why);
}

void ResponsePair::add_difference(LogprobDrift& drift, std::int64_t step, const Logprob& a,
                                  const Logprob& b) {
  if (!a.usable() || !b.usable()) {
    drift.per_step.emplace_back();
    return;
  }
  const double difference = b.value - a.value;
  const double tolerance = print_tolerance(a) + print_tolerance(b);
  drift.per_step.emplace_back(difference);
  drift.print_tolerance = std::max(drift.print_tolerance, tolerance);
  drift.mean_abs += std::abs(difference);
  drift.mean += difference;
  if (difference > tolerance) ++drift.positive;
  if (difference < -tolerance) ++drift.negative;
  if (std::abs(difference) > drift.max_abs || drift.argmax_step < 0) {
    drift.max_abs = std::abs(difference);
    drift.argmax_step = step;
  }
  if (std::abs(difference) > tolerance && !drift.first_step) drift.first_step = step;
  ++drift.count;
}

void ResponsePair::finish(LogprobDrift& drift) {
  if (drift.count == 0) return;
  drift.mean_abs /= static_cast<double>(drift.count);
  drift.mean /= static_cast<double>(drift.count);
}

void ResponsePair::measure_drift() {
  for (const auto& [i, j] : m_pairs) {
    add_difference(m_out.drift, static_cast<std::int64_t>(i), m_steps_a[i].logprob,
                   m_steps_b[j].logprob);
  }
  finish(m_out.drift);
}

void ResponsePair::compare_prompts() {
  const std::size_t count = std::min(m_a.prompt_steps.size(), m_b.prompt_steps.size());
  for (std::size_t i = 0; i < count; ++i) {
    if (!same_token(m_a.prompt_steps[i].token, m_b.prompt_steps[i].token)) break;
    add_difference(m_out.prompt_drift, static_cast<std::int64_t>(i), m_a.prompt_steps[i].logprob,
                   m_b.prompt_steps[i].logprob);
  }
  finish(m_out.prompt_drift);
}

std::string ResponsePair::prompt_difference() const {
  if (!m_a.prompt_ids.empty() && !m_b.prompt_ids.empty() && m_a.prompt_ids != m_b.prompt_ids) {
    const auto [at, other] = std::mismatch(m_a.prompt_ids.begin(), m_a.prompt_ids.end(),
                                           m_b.prompt_ids.begin(), m_b.prompt_ids.end());
    (void)other;
    return fmt::format("the prompts' token ids differ from position {} on ({} and {} tokens)",
                       at - m_a.prompt_ids.begin(), m_a.prompt_ids.size(), m_b.prompt_ids.size());
  }
  const std::size_t count = std::min(m_a.prompt_steps.size(), m_b.prompt_steps.size());
  for (std::size_t i = 0; i < count; ++i) {
    if (!same_token(m_a.prompt_steps[i].token, m_b.prompt_steps[i].token)) {
      return fmt::format("the prompts' tokens differ from position {} on", i);
    }
  }
  if (m_a.prompt_text && m_b.prompt_text && *m_a.prompt_text != *m_b.prompt_text) {
    return fmt::format("the prompts' texts differ from byte {} on",
                       common_prefix(*m_a.prompt_text, *m_b.prompt_text));
  }
  if (!m_a.request.prompt.empty() && !m_b.request.prompt.empty() &&
      m_a.request.prompt != m_b.request.prompt) {
    return fmt::format("the requests' prompts differ from byte {} on",
                       common_prefix(m_a.request.prompt, m_b.request.prompt));
  }
  if (m_a.usage.prompt_tokens && m_b.usage.prompt_tokens &&
      *m_a.usage.prompt_tokens != *m_b.usage.prompt_tokens && m_out.versions.empty()) {
    return fmt::format("the servers counted {} and {} prompt tokens", *m_a.usage.prompt_tokens,
                       *m_b.usage.prompt_tokens);
  }
  return {};
}

}  // namespace driftscope
