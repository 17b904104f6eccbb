// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/assertion_tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

constexpr std::size_t kMostFailures = 20;
constexpr std::size_t kMostAnswers = 1000;

bool is_answered(const Response& response) {
  return response.error.empty() && !response.choices.empty();
}

// Answers of a side by what joins them to the other side's.
std::map<std::pair<std::string, std::int64_t>, Answer> keyed_answers(
    const std::vector<Response>& responses, bool by_custom_id) {
  std::map<std::pair<std::string, std::int64_t>, Answer> out;
  for (std::size_t i = 0; i < responses.size(); ++i) {
    const Response& response = responses[i];
    // Numbers of one width, so that the order of the keys is that of the file.
    if (!is_answered(response)) continue;
    const std::string key = by_custom_id ? response.custom_id : fmt::format("{:012}", i);
    for (std::size_t c = 0; c < response.choices.size(); ++c) {
      out.try_emplace({key, response.choices[c].index}, Answer{&response, c});
    }
  }
  return out;
}

bool all_have_custom_ids(std::span<const std::vector<Response>> sides) {
  return std::all_of(sides.begin(), sides.end(), [](const std::vector<Response>& side) {
    return std::all_of(side.begin(), side.end(),
                       [](const Response& response) { return !response.custom_id.empty(); });
  });
}

}  // namespace

double fisher_exact(std::int64_t passed_a, std::int64_t failed_a, std::int64_t passed_b,
                    std::int64_t failed_b) {
  const std::int64_t in_a = passed_a + failed_a;
  const std::int64_t in_b = passed_b + failed_b;
  const std::int64_t passed = passed_a + passed_b;
  if (in_a == 0 || in_b == 0) return 1.0;
  std::vector<double> log_factorial(static_cast<std::size_t>(in_a + in_b) + 1, 0.0);
  for (std::size_t i = 2; i < log_factorial.size(); ++i) {
    log_factorial[i] = log_factorial[i - 1] + std::log(static_cast<double>(i));
  }
  const auto choose = [&](std::int64_t n, std::int64_t k) {
    return log_factorial[static_cast<std::size_t>(n)] - log_factorial[static_cast<std::size_t>(k)] -
           log_factorial[static_cast<std::size_t>(n - k)];
  };
  const auto log_probability = [&](std::int64_t k) {
    return choose(in_a, k) + choose(in_b, passed - k) - choose(in_a + in_b, passed);
  };
  // Tables that are equally probable differ by rounding only.
  const double limit = log_probability(passed_a) + 1e-7;
  double sum = 0.0;
  for (std::int64_t k = std::max<std::int64_t>(0, passed - in_b); k <= std::min(in_a, passed);
       ++k) {
    if (log_probability(k) <= limit) sum += std::exp(log_probability(k));
  }
  return std::min(1.0, sum);
}

CheckTally::CheckTally(std::span<const Assertion> checks, std::size_t sides)
    : m_checks(checks), m_sides(sides) {
  for (const Assertion& check : checks) {
    m_counts.emplace_back(check.kind->of_pairs() ? std::size_t{1} : sides);
  }
  for (std::size_t side = 0; side < sides; ++side) {
    m_not_answered.push_back({.side = side_name(side)});
  }
}

void CheckTally::note(Count& count, const CheckResult& result, const std::string& answer) {
  switch (result.outcome) {
    case CheckOutcome::passed:
      ++count.passed;
      break;
    case CheckOutcome::not_applicable:
      ++count.not_applicable;
      break;
    case CheckOutcome::failed:
      ++count.failed;
      if (count.failures.size() < kMostFailures)
        count.failures.push_back({answer, result.place, result.reason});
      break;
  }
}

std::string CheckTally::side_name(std::size_t side) const {
  return m_sides == 1 ? "all" : side == 0 ? "A" : "B";
}

void CheckTally::keep(std::string side, std::string answer,
                      std::vector<std::pair<std::size_t, CheckResult>> results) {
  if (results.empty()) return;
  ++m_answer_count;
  if (m_answers.size() >= kMostAnswers) return;
  m_answers.push_back({std::move(side), std::move(answer), std::move(results)});
}

void CheckTally::add_error(std::size_t side) {
  ++m_not_answered[side].answers;
  ++m_not_answered[side].errors;
}

void CheckTally::add(std::size_t side, const Answer& answer) {
  ++m_not_answered[side].answers;
  const std::string name = answer.name();
  std::vector<std::pair<std::size_t, CheckResult>> results;
  for (std::size_t i = 0; i < m_checks.size(); ++i) {
    if (m_checks[i].kind->of_pairs()) continue;
    results.emplace_back(i, check_answer(m_checks[i], answer));
    note(m_counts[i][side], results.back().second, name);
  }
  keep(side_name(side), name, std::move(results));
}

void CheckTally::add_pair(const Answer& a, const Answer& b) {
  const std::string name = fmt::format("{} | {}", a.name(), b.name());
  std::vector<std::pair<std::size_t, CheckResult>> results;
  for (std::size_t i = 0; i < m_checks.size(); ++i) {
    if (!m_checks[i].kind->of_pairs()) continue;
    results.emplace_back(i, check_pair(m_checks[i], a, b));
    note(m_counts[i][0], results.back().second, name);
  }
  keep("pairs", name, std::move(results));
}

CheckSide CheckTally::side_of(const Assertion& check, const Count& count, std::string name) const {
  CheckSide side;
  side.side = std::move(name);
  side.not_applicable = count.not_applicable;
  side.passed = share_of(count.passed, count.passed + count.failed);
  side.met = side.passed.count > 0 && static_cast<double>(count.passed) >=
                                          check.min_rate * static_cast<double>(side.passed.count);
  side.failures = count.failures;
  return side;
}

CheckReport CheckTally::report() const {
  CheckReport report;
  report.answers = m_answers;
  report.answer_count = m_answer_count;
  std::vector<double> p_values;
  for (std::size_t i = 0; i < m_checks.size(); ++i) {
    CheckSummary summary;
    summary.assertion = &m_checks[i];
    const bool pairs = m_checks[i].kind->of_pairs();
    std::int64_t applied = 0;
    for (std::size_t s = 0; s < m_counts[i].size(); ++s) {
      summary.sides.push_back(side_of(m_checks[i], m_counts[i][s], pairs ? "pairs" : side_name(s)));
      const CheckSide& side = summary.sides.back();
      applied += side.passed.count;
      report.failed = report.failed || (side.passed.count > 0 && !side.met);
    }
    report.no_answer_for_a_check = report.no_answer_for_a_check || applied == 0;
    if (summary.sides.size() == 2 && summary.sides[0].passed.count > 0 &&
        summary.sides[1].passed.count > 0) {
      const Count& a = m_counts[i][0];
      const Count& b = m_counts[i][1];
      summary.p_value = fisher_exact(a.passed, a.failed, b.passed, b.failed);
      p_values.push_back(*summary.p_value);
    }
    report.checks.push_back(std::move(summary));
  }
  report.not_answered = m_not_answered;
  report.unknown = report.no_answer_for_a_check ||
                   std::any_of(m_not_answered.begin(), m_not_answered.end(),
                               [](const NotAnswered& side) { return side.errors > 0; });
  const std::vector<double> corrected = holm_correction(p_values);
  std::size_t next = 0;
  for (CheckSummary& summary : report.checks) {
    if (summary.p_value) summary.corrected_p = corrected[next++];
  }
  return report;
}

CheckReport hold_checks(std::span<const Assertion> checks,
                        std::span<const std::vector<Response>> sides) {
  const bool two = sides.size() == 2;
  CheckTally tally(checks, two ? 2 : 1);
  for (std::size_t s = 0; s < sides.size(); ++s) {
    for (const Response& response : sides[s]) {
      if (!is_answered(response)) {
        tally.add_error(two ? s : 0);
        continue;
      }
      for (std::size_t c = 0; c < response.choices.size(); ++c) {
        tally.add(two ? s : 0, {&response, c});
      }
    }
  }
  if (!two) return tally.report();
  const bool by_id = all_have_custom_ids(sides);
  const auto right = keyed_answers(sides[1], by_id);
  for (const auto& [key, answer] : keyed_answers(sides[0], by_id)) {
    const auto partner = right.find(key);
    if (partner != right.end()) tally.add_pair(answer, partner->second);
  }
  return tally.report();
}

}  // namespace driftscope
