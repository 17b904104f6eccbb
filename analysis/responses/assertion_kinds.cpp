// SPDX-License-Identifier: Apache-2.0
// The table of checks and what each of them does.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/responses/assertions.h"
#include "analysis/responses/similarity.h"
#include "kernels/base/display_text.h"
#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

using Json = nlohmann::json;

CheckResult passed() { return {CheckOutcome::passed, {}, {}}; }
CheckResult failed(std::string reason, std::string place = {}) {
  return {CheckOutcome::failed, std::move(place), std::move(reason)};
}
CheckResult unknown(std::string reason) {
  return {CheckOutcome::not_applicable, {}, std::move(reason)};
}
CheckResult passed_if(bool holds, std::string reason) {
  return holds ? passed() : failed(std::move(reason));
}

std::string in_quotes(std::string_view text) {
  return fmt::format("\"{}\"{}", escape_for_display(text.substr(0, 60)),
                     text.size() > 60 ? " …" : "");
}
std::string shown(const Json& value) {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return escape_for_display(text.size() > 60 ? text.substr(0, 57) + "..." : text);
}

CheckResult contains(const Assertion& check, const std::string& text) {
  return passed_if(text.find(check.text) != std::string::npos,
                   fmt::format("{} is not in it", in_quotes(check.text)));
}

CheckResult equals(const Assertion& check, const std::string& text) {
  return passed_if(text == check.text,
                   fmt::format("is {}, not {}", in_quotes(text), in_quotes(check.text)));
}

CheckResult regex(const Assertion& check, const std::string& text) {
  switch (check.pattern->search(text)) {
    case PatternOutcome::found:
      return passed();
    case PatternOutcome::absent:
      return failed(fmt::format("does not match {}", in_quotes(check.text)));
    case PatternOutcome::not_text:
      return unknown("the text is not UTF-8");
    case PatternOutcome::too_costly:
      break;
  }
  return unknown("the pattern takes too many steps on this text");
}

CheckResult length(const Assertion& check, const std::string& text) {
  double count = 0.0;
  for (std::size_t at = 0; at < text.size(); at += decode_utf8(text, at).length) count += 1.0;
  if (check.minimum && count < *check.minimum)
    return failed(fmt::format("{} characters, fewer than {}", count, *check.minimum));
  return passed_if(!check.maximum || count <= *check.maximum,
                   fmt::format("{} characters, more than {}", count, check.maximum.value_or(0.0)));
}

double as_number(const std::string& canonical) {
  double value = 0.0;
  std::from_chars(canonical.data(), canonical.data() + canonical.size(), value);
  return value;
}

bool near(double found, double wanted, double tolerance) {
  return std::abs(found - wanted) <= tolerance;
}

CheckResult number_near(const Assertion& check, const std::string& text) {
  const std::vector<std::string> numbers = numbers_in(text);
  const double wanted = check.value->get<double>();
  if (numbers.empty()) return failed("there is no number in it");
  if (check.pick == "only" && numbers.size() != 1)
    return failed(fmt::format("there are {} numbers in it, not one", numbers.size()));
  if (check.pick == "any") {
    for (const std::string& number : numbers) {
      if (near(as_number(number), wanted, check.tolerance)) return passed();
    }
    return failed(fmt::format("none of its {} numbers is within {} of {}", numbers.size(),
                              check.tolerance, wanted));
  }
  const std::string& number = check.pick == "last" ? numbers.back() : numbers.front();
  return passed_if(near(as_number(number), wanted, check.tolerance),
                   fmt::format("the {} number is {}, not within {} of {}", check.pick, number,
                               check.tolerance, wanted));
}

CheckResult numbers_equal(const Assertion& check, const std::string& text) {
  const std::vector<std::string> numbers = numbers_in(text);
  std::string wanted_text;
  for (const Json& value : *check.value) {
    wanted_text += (value.is_string() ? value.get<std::string>() : value.dump()) + " ";
  }
  const std::vector<std::string> wanted = numbers_in(wanted_text);
  if (numbers == wanted) return passed();
  for (std::size_t i = 0; i < std::max(numbers.size(), wanted.size()); ++i) {
    const std::string found = i < numbers.size() ? numbers[i] : "missing";
    const std::string expected = i < wanted.size() ? wanted[i] : "none";
    if (found != expected)
      return failed(fmt::format("number {} is {}, not {}", i + 1, found, expected));
  }
  return passed();
}

CheckResult parses(const Assertion&, const Json&) { return passed(); }

CheckResult json_schema(const Assertion& check, const Json& value) {
  const auto problem = check.schema->check(value);
  if (!problem) return unknown(problem.error().message);
  if (!*problem) return passed();
  return failed((*problem)->reason, (*problem)->place.empty() ? "the value" : (*problem)->place);
}

// Equal values; numbers within the tolerance, also inside of lists and objects.
bool equal_values(const Json& a, const Json& b, double tolerance) {
  if (a.is_number() && b.is_number())
    return a == b || (tolerance > 0.0 && near(a.get<double>(), b.get<double>(), tolerance));
  if (a.type() != b.type() || a.size() != b.size()) return false;
  if (a.is_array()) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!equal_values(a[i], b[i], tolerance)) return false;
    }
    return true;
  }
  if (!a.is_object()) return a == b;
  for (const auto& [name, member] : a.items()) {
    const auto other = b.find(name);
    if (other == b.end() || !equal_values(member, *other, tolerance)) return false;
  }
  return true;
}

CheckResult json_path_equals(const Assertion& check, const Json& value) {
  const auto nodes = check.paths[0].select(value);
  if (nodes.empty()) return failed("nothing is there", check.paths[0].text());
  for (const JsonPathNode& node : nodes) {
    if (!equal_values(*node.value, *check.value, check.tolerance))
      return failed(fmt::format("is {}, not {}", shown(*node.value), shown(*check.value)),
                    node.place);
  }
  return passed();
}

CheckResult json_path_exists(const Assertion& check, const Json& value) {
  const auto count = static_cast<double>(check.paths[0].select(value).size());
  const double least = check.minimum.value_or(1.0);
  if (count < least)
    return failed(fmt::format("{} values are there, fewer than {}", count, least),
                  check.paths[0].text());
  if (check.maximum && count > *check.maximum)
    return failed(fmt::format("{} values are there, more than {}", count, *check.maximum),
                  check.paths[0].text());
  return passed();
}

CheckResult finish(const Assertion& check, const ResponseChoice& choice) {
  const std::string_view found = normalised_finish_reason(choice.finish_reason);
  if (found.empty()) return unknown("the answer does not say how it ended");
  return passed_if(found == check.text, fmt::format("ended by {}, not {}", found, check.text));
}

CheckResult tool_called(const Assertion& check, const ResponseChoice& choice) {
  for (const ToolCall& call : choice.tool_calls) {
    if (call.name == check.text) return passed();
  }
  return failed(fmt::format("{} is not called; {} other calls", in_quotes(check.text),
                            choice.tool_calls.size()));
}

CheckResult pair_numbers(const Assertion&, const std::string& a, const std::string& b) {
  const auto in_a = numbers_in(a);
  const auto in_b = numbers_in(b);
  if (in_a == in_b) return passed();
  std::size_t at = 0;
  while (at < in_a.size() && at < in_b.size() && in_a[at] == in_b[at]) ++at;
  return failed(fmt::format("number {} is {} in A and {} in B", at + 1,
                            at < in_a.size() ? in_a[at] : "missing",
                            at < in_b.size() ? in_b[at] : "missing"));
}

CheckResult pair_edit(const Assertion& check, const std::string& a, const std::string& b) {
  const std::optional<double> found = compare_texts(a, b).edit;
  if (!found) return unknown("the texts are too long and too far apart to count their edits");
  return passed_if(*found >= *check.minimum,
                   fmt::format("{:.4f}, below {}", *found, *check.minimum));
}

CheckResult pair_chrf(const Assertion& check, const std::string& a, const std::string& b) {
  const double found = compare_texts(a, b).chrf;
  return passed_if(found >= *check.minimum, fmt::format("{:.4f}, below {}", found, *check.minimum));
}

CheckResult pair_fields(const Assertion& check, const Json& a, const Json& b) {
  for (const JsonPath& path : check.paths) {
    const auto in_a = path.select(a);
    const auto in_b = path.select(b);
    if (in_a.size() != in_b.size())
      return failed(fmt::format("{} values in A and {} in B", in_a.size(), in_b.size()),
                    path.text());
    for (std::size_t i = 0; i < in_a.size(); ++i) {
      if (in_a[i].place != in_b[i].place)
        return failed(fmt::format("B has {} there", in_b[i].place), in_a[i].place);
      if (!equal_values(*in_a[i].value, *in_b[i].value, check.tolerance))
        return failed(
            fmt::format("is {} in A and {} in B", shown(*in_a[i].value), shown(*in_b[i].value)),
            in_a[i].place);
    }
  }
  return passed();
}

constexpr std::array kKinds{
    CheckKind{.name = "contains",
              .members = "text",
              .meaning = "The text is in it",
              .text = &contains,
              .negatable = true},
    CheckKind{.name = "equals",
              .members = "text",
              .meaning = "It is exactly this text",
              .text = &equals,
              .negatable = true},
    CheckKind{.name = "regex",
              .members = "pattern",
              .meaning = "The pattern (PCRE2) matches somewhere",
              .text = &regex,
              .negatable = true},
    CheckKind{.name = "length",
              .members = "minimum? maximum?",
              .meaning = "So many characters",
              .text = &length},
    CheckKind{.name = "number_near",
              .members = "value tolerance? pick?",
              .meaning = "A number of the text (pick: any, first, last, only) is within the "
                         "tolerance of the value",
              .text = &number_near},
    CheckKind{.name = "numbers_equal",
              .members = "values",
              .meaning = "The numbers of the text are these, in this order",
              .text = &numbers_equal},
    CheckKind{.name = "json", .members = "", .meaning = "It is JSON", .json = &parses},
    CheckKind{.name = "json_schema",
              .members = "schema",
              .meaning = "It is JSON that fits the schema",
              .json = &json_schema},
    CheckKind{.name = "json_path_equals",
              .members = "path value tolerance?",
              .meaning = "Every value at the path is this one, and there is one; numbers within "
                         "the tolerance",
              .json = &json_path_equals},
    CheckKind{.name = "json_path_exists",
              .members = "path minimum? maximum?",
              .meaning = "So many values are at the path; one or more where no number is given",
              .json = &json_path_exists},
    CheckKind{.name = "finish",
              .members = "value",
              .meaning = "Ended by stop, length, tool_calls, content_filter or error",
              .answer = &finish},
    CheckKind{.name = "tool_called",
              .members = "value",
              .meaning = "Calls the tool of this name",
              .answer = &tool_called},
    CheckKind{.name = "pair_numbers_equal",
              .members = "",
              .meaning = "Both texts have the same numbers in the same order",
              .text_pair = &pair_numbers},
    CheckKind{.name = "pair_edit",
              .members = "minimum",
              .meaning = "1 minus the normalised edit distance is at least the minimum",
              .text_pair = &pair_edit},
    CheckKind{.name = "pair_chrf",
              .members = "minimum",
              .meaning = "chrF of the texts is at least the minimum",
              .text_pair = &pair_chrf},
    CheckKind{.name = "pair_fields_equal",
              .members = "paths tolerance?",
              .meaning = "Both are JSON with the same values at these paths",
              .json_pair = &pair_fields},
};

}  // namespace

std::span<const CheckKind> check_kinds() { return kKinds; }

}  // namespace driftscope
