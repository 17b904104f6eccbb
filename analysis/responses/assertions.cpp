// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/assertions.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 256;

CheckResult failed(std::string place, std::string reason) {
  return {CheckOutcome::failed, std::move(place), std::move(reason)};
}
CheckResult not_applicable(std::string reason) {
  return {CheckOutcome::not_applicable, {}, std::move(reason)};
}

// What stands between the first ``` line and the next.
std::string fenced_part(const std::string& text) {
  const std::size_t open = text.find("```");
  if (open == std::string::npos) return {};
  const std::size_t begin = text.find('\n', open);
  if (begin == std::string::npos) return {};
  return text.substr(begin + 1, text.find("```", begin) - begin - 1);
}

// Duplicate members would make two readers see two values.
struct ParsedJson {
  Json value;
  std::string problem;  // empty: it is JSON
};
ParsedJson parse_json(const Assertion& check, const std::string& whole) {
  const std::string text = check.fenced ? fenced_part(whole) : whole;
  if (check.fenced && text.empty()) return {{}, "there is no ``` block in it"};
  ParsedJson out;
  std::vector<std::set<std::string>> keys(1);
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kDeepest) out.problem = fmt::format("is nested deeper than {}", kDeepest);
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      out.problem = fmt::format("\"{}\" is given twice in one object",
                                escape_for_display(parsed.get<std::string>()));
    return true;
  };
  try {
    out.value = Json::parse(text, watch);
  } catch (const Json::exception& error) {
    std::string message = error.what();
    const std::size_t bracket = message.find("] ");
    if (bracket != std::string::npos) message = message.substr(bracket + 2);
    out.problem = "is no JSON: " + escape_for_display(message.substr(0, 160));
  }
  return out;
}

CheckResult check_text(const Assertion& check, const std::string& text) {
  if (check.kind->text != nullptr) {
    CheckResult result = check.kind->text(check, text);
    if (!check.negate || result.outcome == CheckOutcome::not_applicable) return result;
    if (result.outcome == CheckOutcome::failed) return {CheckOutcome::passed, {}, {}};
    return failed({}, fmt::format("\"{}\" is there and must not be",
                                  escape_for_display(check.text.substr(0, 60))));
  }
  const ParsedJson parsed = parse_json(check, text);
  if (!parsed.problem.empty()) return failed({}, parsed.problem);
  return check.kind->json(check, parsed.value);
}

// The text of a channel; empty: the answer has none.
std::optional<std::string> channel_text(const ResponseChannel& channel) {
  if (channel.has_text) return channel.text;
  if (!channel.has_steps) return std::nullopt;
  std::string joined;
  for (const ResponseStep& step : channel.steps) {
    if (!step.special) joined += step.token.bytes;
  }
  return joined;
}

const ResponseChannel& channel_of(const ResponseChoice& choice, AnswerPart part) {
  return part == AnswerPart::reasoning ? choice.reasoning : choice.content;
}

// What cannot be checked for a reason that lies outside of the check.
std::string out_of_reach(const Assertion& check, const Answer& answer) {
  const Response& response = *answer.response;
  if (!check.custom_ids.empty() && std::find(check.custom_ids.begin(), check.custom_ids.end(),
                                             response.custom_id) == check.custom_ids.end()) {
    return fmt::format("is not for custom_id \"{}\"", escape_for_display(response.custom_id));
  }
  if (!response.error.empty())
    return "the server answered with an error: " + escape_for_display(response.error.substr(0, 80));
  return {};
}

std::string missing_text(const ResponseChoice& choice, AnswerPart part) {
  std::string reason = fmt::format("there is no {}", name_of(part));
  if (choice.refusal.has_text) reason += " (the answer is a refusal)";
  if (!choice.tool_calls.empty()) reason += " (the answer calls tools)";
  return reason;
}

CheckResult check_calls(const Assertion& check, const ResponseChoice& choice) {
  bool any = false;
  for (std::size_t i = 0; i < choice.tool_calls.size(); ++i) {
    const ToolCall& call = choice.tool_calls[i];
    if (check.tool && call.name != *check.tool) continue;
    any = true;
    CheckResult result = check_text(check, call.arguments);
    if (result.outcome == CheckOutcome::passed) continue;
    result.place = fmt::format("tool call {} ({}){}{}", i, escape_for_display(call.name),
                               result.place.empty() ? "" : " at ", result.place);
    return result;
  }
  if (any) return {CheckOutcome::passed, {}, {}};
  return failed("tool_calls",
                check.tool ? fmt::format("\"{}\" is not called", escape_for_display(*check.tool))
                           : "no tool is called");
}

void add_cut_off(const ResponseChoice& choice, CheckResult& result) {
  if (result.outcome == CheckOutcome::failed &&
      normalised_finish_reason(choice.finish_reason) == "length") {
    result.reason += " (the answer was cut off by a limit on its length)";
  }
}

}  // namespace

std::string_view name_of(CheckOutcome outcome) {
  switch (outcome) {
    case CheckOutcome::passed:
      return "passed";
    case CheckOutcome::failed:
      return "failed";
    case CheckOutcome::not_applicable:
      return "not_applicable";
  }
  return "";
}

std::string_view name_of(AnswerPart part) {
  switch (part) {
    case AnswerPart::content:
      return "content";
    case AnswerPart::reasoning:
      return "reasoning";
    case AnswerPart::tool_calls:
      return "tool_calls";
  }
  return "";
}

CheckResult check_answer(const Assertion& check, const Answer& answer) {
  if (const std::string why = out_of_reach(check, answer); !why.empty()) return not_applicable(why);
  const ResponseChoice& choice = answer.response->choices[answer.choice];
  CheckResult result;
  if (check.kind->answer != nullptr) return check.kind->answer(check, choice);
  if (check.where == AnswerPart::tool_calls) {
    result = check_calls(check, choice);
  } else if (const auto text = channel_text(channel_of(choice, check.where))) {
    result = check_text(check, *text);
    result.place = result.place.empty()
                       ? std::string(name_of(check.where))
                       : fmt::format("{} at {}", name_of(check.where), result.place);
  } else if (check.where == AnswerPart::reasoning) {
    return not_applicable("the answer shows no reasoning");
  } else {
    result = failed("content", missing_text(choice, check.where));
  }
  add_cut_off(choice, result);
  return result;
}

CheckResult check_pair(const Assertion& check, const Answer& a, const Answer& b) {
  for (const Answer* answer : {&a, &b}) {
    if (const std::string why = out_of_reach(check, *answer); !why.empty())
      return not_applicable(fmt::format("{}: {}", answer == &a ? "A" : "B", why));
  }
  const ResponseChoice& choice_a = a.response->choices[a.choice];
  const ResponseChoice& choice_b = b.response->choices[b.choice];
  const auto text_a = channel_text(channel_of(choice_a, check.where));
  const auto text_b = channel_text(channel_of(choice_b, check.where));
  if (!text_a && !text_b)
    return not_applicable(fmt::format("neither answer has {}", name_of(check.where)));
  if (!text_a) return failed("A", missing_text(choice_a, check.where));
  if (!text_b) return failed("B", missing_text(choice_b, check.where));
  if (check.kind->text_pair != nullptr) return check.kind->text_pair(check, *text_a, *text_b);
  const ParsedJson json_a = parse_json(check, *text_a);
  const ParsedJson json_b = parse_json(check, *text_b);
  if (!json_a.problem.empty()) return failed("A", json_a.problem);
  if (!json_b.problem.empty()) return failed("B", json_b.problem);
  return check.kind->json_pair(check, json_a.value, json_b.value);
}

}  // namespace driftscope
