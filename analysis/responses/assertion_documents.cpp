// SPDX-License-Identifier: Apache-2.0
// What checks came to, as JSON and for a terminal.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analysis/compare/findings.h"
#include "analysis/responses/assertion_tally.h"
#include "kernels/base/display_text.h"
#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

Json text_json(const std::string& text) {
  return find_invalid_utf8(text) == std::string::npos ? text : escape_for_display(text);
}

Json side_json(const CheckSide& side) {
  Json failures = Json::array();
  for (const CheckFailure& failure : side.failures) {
    failures.push_back({{"answer", text_json(failure.answer)},
                        {"place", text_json(failure.place)},
                        {"reason", text_json(failure.reason)}});
  }
  return {{"side", side.side},
          {"passed", side.passed.hits},
          {"failed", side.passed.count - side.passed.hits},
          {"not_applicable", side.not_applicable},
          {"share", side.passed.count > 0 ? Json(side.passed.value) : Json()},
          {"low", side.passed.low},
          {"high", side.passed.high},
          {"met", side.passed.count > 0 ? Json(side.met) : Json()},
          {"failures", failures}};
}

Json answers_json(const CheckReport& report) {
  Json list = Json::array();
  for (const AnswerResults& answer : report.answers) {
    Json results = Json::array();
    for (const auto& [index, result] : answer.results) {
      results.push_back({{"id", text_json(report.checks[index].assertion->id)},
                         {"outcome", std::string(name_of(result.outcome))},
                         {"place", text_json(result.place)},
                         {"reason", text_json(result.reason)}});
    }
    list.push_back(
        {{"side", answer.side}, {"answer", text_json(answer.answer)}, {"results", results}});
  }
  return list;
}

std::string side_text(const CheckSide& side) {
  if (side.passed.count == 0)
    return fmt::format("{}: applies to none of {}", side.side, side.not_applicable);
  return fmt::format(
      "{}: {} of {} pass ({:.1f}%, {:.1f} to {:.1f}%){}", side.side, side.passed.hits,
      side.passed.count, 100.0 * side.passed.value, 100.0 * side.passed.low,
      100.0 * side.passed.high,
      side.not_applicable > 0 ? fmt::format(", not applicable to {}", side.not_applicable) : "");
}

}  // namespace

Json check_report_json(const CheckReport& report) {
  Json checks = Json::array();
  for (const CheckSummary& summary : report.checks) {
    Json sides = Json::array();
    for (const CheckSide& side : summary.sides) sides.push_back(side_json(side));
    checks.push_back(
        {{"id", text_json(summary.assertion->id)},
         {"kind", summary.assertion->kind->name},
         {"where", std::string(name_of(summary.assertion->where))},
         {"min_rate", summary.assertion->min_rate},
         {"sides", sides},
         {"p_value", summary.p_value ? Json(*summary.p_value) : Json()},
         {"p_value_corrected", summary.corrected_p ? Json(*summary.corrected_p) : Json()}});
  }
  Json not_answered = Json::array();
  for (const NotAnswered& side : report.not_answered) {
    not_answered.push_back(
        {{"side", side.side}, {"errors", side.errors}, {"answers", side.answers}});
  }
  return {{"verdict", report.failed    ? "failed"
                      : report.unknown ? "inconclusive"
                                       : "passed"},
          {"checks", checks},
          {"not_answered", not_answered},
          {"answer_count", report.answer_count},
          {"answers", answers_json(report)}};
}

std::string check_report_text(const CheckReport& report) {
  constexpr std::size_t kShownFailures = 3;
  std::string out = fmt::format(
      "checks: {}\n", report.failed                  ? "failed"
                      : report.no_answer_for_a_check ? "inconclusive: a check applies to no answer"
                      : report.unknown               ? "inconclusive: not every answer is there"
                                                     : "passed");
  for (const NotAnswered& side : report.not_answered) {
    if (side.errors == 0) continue;
    out += fmt::format("  {} of {} answers{}{} {} or cannot be read: not answered\n", side.errors,
                       side.answers, side.side == "all" ? "" : " of ",
                       side.side == "all" ? "" : side.side,
                       side.errors == 1 ? "is an error" : "are errors");
  }
  for (const CheckSummary& summary : report.checks) {
    std::string sides, failures;
    bool failed = false;
    bool applied = false;
    for (const CheckSide& side : summary.sides) {
      sides += (sides.empty() ? "" : "; ") + side_text(side);
      failed = failed || (side.passed.count > 0 && !side.met);
      applied = applied || side.passed.count > 0;
      for (std::size_t i = 0; i < std::min(kShownFailures, side.failures.size()); ++i) {
        const CheckFailure& failure = side.failures[i];
        failures += fmt::format("          {}: {}{}{}\n", escape_for_display(failure.answer),
                                escape_for_display(failure.place),
                                failure.place.empty() ? "" : ": ", failure.reason);
      }
    }
    out += fmt::format("  {:<7} {} ({}): {}",
                       failed    ? "failed"
                       : applied ? "ok"
                                 : "unknown",
                       escape_for_display(summary.assertion->id), summary.assertion->kind->name,
                       sides);
    if (summary.corrected_p)
      out += fmt::format("; Fisher p {:.3g}, corrected {:.3g}", *summary.p_value,
                         *summary.corrected_p);
    out += '\n' + failures;
  }
  return out;
}

}  // namespace driftscope
