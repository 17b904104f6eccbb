// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/json_schema.h"

#include <fmt/format.h>

#include <cmath>

#include "analysis/responses/json_schema_parts.h"
#include "kernels/base/display_text.h"
#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMostSteps = 5'000'000;

std::int64_t characters(const std::string& text) {
  std::int64_t count = 0;
  for (std::size_t at = 0; at < text.size(); at += decode_utf8(text, at).length) ++count;
  return count;
}

bool is_integer(const Json& value) {
  if (value.is_number_integer()) return true;
  return value.is_number_float() && std::isfinite(value.get<double>()) &&
         std::trunc(value.get<double>()) == value.get<double>();
}

bool has_type(const Json& value, const std::string& type) {
  if (type == "integer") return is_integer(value);
  if (type == "number") return value.is_number();
  return type == value.type_name();  // null, boolean, object, array, string
}

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return escape_for_display(text);
}

bool is_multiple(const Json& value, const Json& step) {
  if (value.is_number_integer() && step.is_number_integer()) {
    return value.get<std::int64_t>() % step.get<std::int64_t>() == 0;
  }
  // 0.3 is a multiple of 0.1: decimal fractions are rounded as doubles.
  const double quotient = value.get<double>() / step.get<double>();
  return std::abs(quotient - std::round(quotient)) <= 1e-9 * std::max(1.0, std::abs(quotient));
}

class Checker {
 public:
  explicit Checker(const JsonSchema::Compiled& compiled) : m_compiled(compiled) {}

  using Problem = std::optional<SchemaProblem>;

  Problem check(const Json& schema, const Json& value, const std::string& at) {
    if (++m_steps > kMostSteps) return stop(at);
    if (schema.is_boolean()) {
      return schema.get<bool>() ? Problem() : SchemaProblem{at, "nothing is allowed here"};
    }
    if (Problem problem = check_value(schema, value, at)) return problem;
    if (Problem problem = check_combined(schema, value, at)) return problem;
    if (value.is_object()) return check_object(schema, value, at);
    if (value.is_array()) return check_array(schema, value, at);
    if (value.is_string()) return check_string(schema, value.get_ref<const std::string&>(), at);
    if (value.is_number()) return check_number(schema, value, at);
    return {};
  }
  [[nodiscard]] const std::string& stopped() const { return m_stopped; }

 private:
  SchemaProblem stop(const std::string& at) {
    m_stopped = "the schema takes too many steps on this value";
    return SchemaProblem{at, m_stopped};
  }
  // A name as a step of a JSON pointer.
  static std::string step_to(const std::string& at, const std::string& name) {
    std::string out = at + "/";
    for (const char c : name) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    return out;
  }
  static const Json* rule_of(const Json& schema, const char* name) {
    const auto found = schema.find(name);
    return found == schema.end() ? nullptr : &*found;
  }

  static Problem check_value(const Json& schema, const Json& value, const std::string& at) {
    if (const Json* type = rule_of(schema, "type")) {
      bool fits = false;
      if (type->is_string()) fits = has_type(value, type->get<std::string>());
      if (type->is_array()) {
        for (const Json& one : *type) fits = fits || has_type(value, one.get<std::string>());
      }
      if (!fits)
        return SchemaProblem{at, fmt::format("{} is not of type {}", shown(value), shown(*type))};
    }
    if (const Json* wanted = rule_of(schema, "const"); wanted != nullptr && *wanted != value) {
      return SchemaProblem{at, fmt::format("{} is not {}", shown(value), shown(*wanted))};
    }
    if (const Json* wanted = rule_of(schema, "enum")) {
      for (const Json& one : *wanted) {
        if (one == value) return {};
      }
      return SchemaProblem{at, fmt::format("{} is none of {}", shown(value), shown(*wanted))};
    }
    return {};
  }

  bool valid(const Json& schema, const Json& value, const std::string& at) {
    return !check(schema, value, at);
  }

  Problem check_combined(const Json& schema, const Json& value, const std::string& at) {
    if (const Json* rule = rule_of(schema, "$ref")) {
      const Json* target = m_compiled.resolve(rule->get<std::string>());
      if (Problem problem = check(*target, value, at)) return problem;
    }
    if (const Json* rules = rule_of(schema, "allOf")) {
      for (const Json& rule : *rules) {
        if (Problem problem = check(rule, value, at)) return problem;
      }
    }
    if (const Json* rules = rule_of(schema, "anyOf")) {
      std::string reasons;
      bool any = false;
      for (const Json& rule : *rules) {
        const Problem problem = check(rule, value, at);
        if (!problem) any = true;
        if (any) break;
        reasons +=
            fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", problem->place, problem->reason);
      }
      if (!any) return SchemaProblem{at, fmt::format("fits no alternative ({})", reasons)};
    }
    if (const Json* rules = rule_of(schema, "oneOf")) {
      int fitting = 0;
      for (const Json& rule : *rules) fitting += valid(rule, value, at) ? 1 : 0;
      if (fitting != 1)
        return SchemaProblem{at, fmt::format("fits {} of the alternatives, not one", fitting)};
    }
    if (const Json* rule = rule_of(schema, "not"); rule != nullptr && valid(*rule, value, at)) {
      return SchemaProblem{at, fmt::format("{} is what is excluded", shown(value))};
    }
    if (const Json* rule = rule_of(schema, "if")) {
      const Json* branch = rule_of(schema, valid(*rule, value, at) ? "then" : "else");
      if (branch != nullptr) return check(*branch, value, at);
    }
    return {};
  }

  Problem check_size(const Json& schema, const char* least, const char* most, std::int64_t size,
                     std::string_view what, const std::string& at) const {
    if (const Json* rule = rule_of(schema, least);
        rule != nullptr && size < rule->get<std::int64_t>()) {
      return SchemaProblem{at, fmt::format("{} {}, fewer than {}", size, what, shown(*rule))};
    }
    if (const Json* rule = rule_of(schema, most);
        rule != nullptr && size > rule->get<std::int64_t>()) {
      return SchemaProblem{at, fmt::format("{} {}, more than {}", size, what, shown(*rule))};
    }
    return {};
  }

  Problem check_object(const Json& schema, const Json& value, const std::string& at) {
    if (const Json* names = rule_of(schema, "required")) {
      for (const Json& name : *names) {
        if (!value.contains(name.get<std::string>()))
          return SchemaProblem{at, fmt::format("lacks {}", shown(name))};
      }
    }
    if (const Json* rules = rule_of(schema, "dependentRequired")) {
      for (const auto& [name, needed] : rules->items()) {
        if (!value.contains(name)) continue;
        for (const Json& other : needed) {
          if (!value.contains(other.get<std::string>()))
            return SchemaProblem{at, fmt::format("has \"{}\" and lacks {}", name, shown(other))};
        }
      }
    }
    const auto size = static_cast<std::int64_t>(value.size());
    if (Problem p = check_size(schema, "minProperties", "maxProperties", size, "members", at)) {
      return p;
    }
    for (const auto& [name, member] : value.items()) {
      if (Problem problem = check_member(schema, name, member, at)) return problem;
    }
    return {};
  }

  Problem check_member(const Json& schema, const std::string& name, const Json& member,
                       const std::string& at) {
    const std::string place = step_to(at, name);
    if (const Json* rule = rule_of(schema, "propertyNames")) {
      if (Problem problem = check(*rule, Json(name), place)) return problem;
    }
    bool covered = false;
    if (const Json* rules = rule_of(schema, "properties"); rules && rules->contains(name)) {
      covered = true;
      if (Problem problem = check((*rules)[name], member, place)) return problem;
    }
    if (const Json* rules = rule_of(schema, "patternProperties")) {
      for (const auto& [expression, rule] : rules->items()) {
        if (!matches(expression, name)) continue;
        covered = true;
        if (Problem problem = check(rule, member, place)) return problem;
      }
    }
    const Json* rest = rule_of(schema, "additionalProperties");
    if (covered || rest == nullptr) return {};
    if (rest->is_boolean() && !rest->get<bool>())
      return SchemaProblem{
          at, fmt::format("has \"{}\", which is not expected", escape_for_display(name))};
    return check(*rest, member, place);
  }

  Problem check_array(const Json& schema, const Json& value, const std::string& at) {
    const auto size = static_cast<std::int64_t>(value.size());
    if (Problem p = check_size(schema, "minItems", "maxItems", size, "entries", at)) return p;
    const Json* first = rule_of(schema, "prefixItems");
    const Json* rest = rule_of(schema, "items");
    for (std::size_t i = 0; i < value.size(); ++i) {
      const Json* rule = first != nullptr && i < first->size() ? &(*first)[i] : rest;
      if (rule == nullptr) continue;
      if (Problem p = check(*rule, value[i], fmt::format("{}/{}", at, i))) return p;
    }
    if (const Json* rule = rule_of(schema, "uniqueItems"); rule != nullptr && rule->get<bool>()) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
          if (++m_steps > kMostSteps) return stop(at);
          if (value[i] == value[j])
            return SchemaProblem{at, fmt::format("entries {} and {} are equal", j, i)};
        }
      }
    }
    return {};
  }

  bool matches(const std::string& expression, const std::string& text) {
    const PatternOutcome outcome = m_compiled.patterns.at(expression).search(text);
    if (outcome == PatternOutcome::too_costly)
      m_stopped = fmt::format("the pattern \"{}\" takes too many steps on this text",
                              escape_for_display(expression.substr(0, 80)));
    return outcome == PatternOutcome::found;
  }

  Problem check_string(const Json& schema, const std::string& text, const std::string& at) {
    if (schema.contains("minLength") || schema.contains("maxLength")) {
      if (Problem p =
              check_size(schema, "minLength", "maxLength", characters(text), "characters", at)) {
        return p;
      }
    }
    const Json* rule = rule_of(schema, "pattern");
    if (rule == nullptr || matches(rule->get<std::string>(), text)) return {};
    return SchemaProblem{at, fmt::format("{} does not match {}", shown(Json(text)), shown(*rule))};
  }

  static Problem check_number(const Json& schema, const Json& value, const std::string& at) {
    const auto out = [&](std::string_view how, const Json& rule) {
      return SchemaProblem{at, fmt::format("{} is {} {}", shown(value), how, shown(rule))};
    };
    // Comparisons of the library are exact between integers.
    if (const Json* r = rule_of(schema, "minimum"); r && value < *r) return out("below", *r);
    if (const Json* r = rule_of(schema, "maximum"); r && value > *r) return out("above", *r);
    if (const Json* r = rule_of(schema, "exclusiveMinimum"); r && value <= *r)
      return out("not above", *r);
    if (const Json* r = rule_of(schema, "exclusiveMaximum"); r && value >= *r)
      return out("not below", *r);
    if (const Json* r = rule_of(schema, "multipleOf"); r && !is_multiple(value, *r))
      return out("no multiple of", *r);
    return {};
  }

  const JsonSchema::Compiled& m_compiled;
  std::int64_t m_steps = 0;
  std::string m_stopped;  // not empty: the result counts for nothing
};

}  // namespace

Result<std::optional<SchemaProblem>> JsonSchema::check(const Json& value) const {
  Checker checker(*m_compiled);
  auto problem = checker.check(m_compiled->root, value, "");
  if (!checker.stopped().empty()) return fail(ErrorKind::inconclusive, checker.stopped());
  return problem;
}

}  // namespace driftscope
