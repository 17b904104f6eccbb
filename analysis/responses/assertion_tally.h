// SPDX-License-Identifier: Apache-2.0
// Checks held against many answers: how often each side passes, and whether the sides differ.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/responses/assertions.h"
#include "analysis/responses/populations.h"

namespace driftscope {

// Fisher's exact test, two-sided: the probability, with both sides alike and the margins given, of
// all tables that are at most as probable as this one. 1 where a side has no answers.
[[nodiscard]] double fisher_exact(std::int64_t passed_a, std::int64_t failed_a,
                                  std::int64_t passed_b, std::int64_t failed_b);

struct CheckFailure {
  std::string answer;  // "a.jsonl:3 choice 1", or of a pair "a.json | b.json"
  std::string place;
  std::string reason;
};

struct CheckSide {
  std::string side;  // "A", "B", "all", "pairs"
  std::int64_t not_applicable = 0;
  Share passed;      // of the answers that the check applies to, with Wilson's 95% interval
  bool met = false;  // the share reaches the check's min_rate; false where it applies to none
  std::vector<CheckFailure> failures;  // the first twenty
};

struct CheckSummary {
  const Assertion* assertion = nullptr;
  std::vector<CheckSide> sides;
  // Whether A and B pass alike; empty: not two sides with answers.
  std::optional<double> p_value = {};
  std::optional<double> corrected_p = {};  // Holm, over all checks that have a p-value
};

struct AnswerResults {
  std::string side, answer;
  std::vector<std::pair<std::size_t, CheckResult>> results;  // by index of the check
};

// Responses of a side that hold no answer: errors, or lines that could not be read.
struct NotAnswered {
  std::string side;
  std::int64_t errors = 0;
  std::int64_t answers = 0;  // errors too
};

struct CheckReport {
  std::vector<CheckSummary> checks;
  std::vector<AnswerResults> answers;  // the first thousand
  std::int64_t answer_count = 0;       // answers and pairs
  bool failed = false;                 // a check is not met on a side that has answers for it
  bool no_answer_for_a_check = false;
  std::vector<NotAnswered> not_answered;  // of every side
  // Neither failed nor passed: a check applies to no answer at all, or there are errors.
  bool unknown = false;
};

class CheckTally {
 public:
  // `checks` outlives the tally and its report. Sides: one ("all") or two ("A", "B").
  CheckTally(std::span<const Assertion> checks, std::size_t sides);
  void add(std::size_t side, const Answer& answer);
  void add_pair(const Answer& a, const Answer& b);
  void add_error(std::size_t side);
  [[nodiscard]] CheckReport report() const;

 private:
  struct Count {
    std::int64_t passed = 0, failed = 0, not_applicable = 0;
    std::vector<CheckFailure> failures;
  };
  static void note(Count& count, const CheckResult& result, const std::string& answer);
  void keep(std::string side, std::string answer,
            std::vector<std::pair<std::size_t, CheckResult>> results);
  [[nodiscard]] std::string side_name(std::size_t side) const;
  [[nodiscard]] CheckSide side_of(const Assertion& check, const Count& count,
                                  std::string name) const;
  std::span<const Assertion> m_checks;
  std::size_t m_sides;
  std::vector<std::vector<Count>> m_counts;  // [check][side]; of pairs: [check][0]
  std::vector<AnswerResults> m_answers;
  std::int64_t m_answer_count = 0;
  std::vector<NotAnswered> m_not_answered;  // by side
};

// Every answer of one side or of two; two also in pairs: by custom_id where all have one, else by
// order, and by the index of the choice.
[[nodiscard]] CheckReport hold_checks(std::span<const Assertion> checks,
                                      std::span<const std::vector<Response>> sides);

[[nodiscard]] nlohmann::ordered_json check_report_json(const CheckReport& report);
[[nodiscard]] std::string check_report_text(const CheckReport& report);

}  // namespace driftscope
