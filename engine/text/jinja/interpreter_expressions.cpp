// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "engine/text/jinja/interpreter.h"

namespace driftscope::jinja {

Value Interpreter::evaluate(const Expression& expression) {
  const DepthGuard guard(*this);
  charge();
  m_line = expression.line;
  switch (expression.kind) {
    case Expression::Kind::constant:
      return expression.constant;
    case Expression::Kind::name:
      return look_up(expression);
    case Expression::Kind::tuple:
    case Expression::Kind::list:
      return evaluate_parts(expression);
    case Expression::Kind::mapping:
      return evaluate_mapping(expression);
    case Expression::Kind::attribute:
      return attribute(*this, evaluate(*expression.parts[0]), expression.text);
    case Expression::Kind::item:
      return evaluate_item(expression);
    case Expression::Kind::slice:
      return evaluate_slice(expression);
    case Expression::Kind::call:
      return evaluate_call(expression);
    case Expression::Kind::filter:
      return evaluate_filter(expression, nullptr);
    case Expression::Kind::test:
      return Value::of(evaluate_test(expression));
    case Expression::Kind::logical_not:
      return Value::of(!truthy(evaluate(*expression.parts[0])));
    case Expression::Kind::negative:
      return negative(evaluate(*expression.parts[0]));
    case Expression::Kind::positive:
      return positive(evaluate(*expression.parts[0]));
    case Expression::Kind::arithmetic:
      return evaluate_arithmetic(expression);
    case Expression::Kind::comparison:
      return Value::of(evaluate_comparison(expression));
    case Expression::Kind::logical_and:
      return evaluate_chain(expression, false);
    case Expression::Kind::logical_or:
      return evaluate_chain(expression, true);
    case Expression::Kind::concatenation:
      return evaluate_concatenation(expression);
    case Expression::Kind::conditional:
      return evaluate_conditional(expression);
  }
  return {};
}

Value Interpreter::evaluate_parts(const Expression& expression) {
  List items;
  items.reserve(expression.parts.size());
  for (const auto& part : expression.parts) items.push_back(evaluate(*part));
  return expression.kind == Expression::Kind::list ? make_list(std::move(items))
                                                   : make_tuple(std::move(items));
}

Value Interpreter::evaluate_mapping(const Expression& expression) {
  Mapping mapping;
  for (std::size_t i = 0; i < expression.parts.size(); i += 2) {
    Value key = evaluate(*expression.parts[i]);
    mapping.set(key, evaluate(*expression.parts[i + 1]));
  }
  return make_mapping(std::move(mapping));
}

Value Interpreter::evaluate_item(const Expression& expression) {
  const Value value = evaluate(*expression.parts[0]);
  const Value key = evaluate(*expression.parts[1]);
  m_line = expression.line;
  return item(*this, value, key);
}

Value Interpreter::evaluate_slice(const Expression& expression) {
  const Value value = evaluate(*expression.parts[0]);
  Value bounds[3];
  for (std::size_t i = 0; i < 3; ++i) {
    if (expression.parts[i + 1]) bounds[i] = evaluate(*expression.parts[i + 1]);
  }
  m_line = expression.line;
  return slice(*this, value, bounds[0], bounds[1], bounds[2]);
}

Arguments Interpreter::evaluate_arguments(const CallArguments& arguments) {
  Arguments values;
  values.positional.reserve(arguments.positional.size());
  for (const auto& argument : arguments.positional) {
    values.positional.push_back(evaluate(*argument));
  }
  for (const auto& [name, argument] : arguments.named) {
    for (const auto& [known, value] : values.named) {
      if (known == name) raise(fmt::format("argument \"{}\" is given twice", name));
    }
    values.named.emplace_back(name, evaluate(*argument));
  }
  if (arguments.more_positional) {
    const Value more = evaluate(*arguments.more_positional);
    for (Value& value : iterate(*this, more)) values.positional.push_back(std::move(value));
  }
  if (arguments.more_named) spread_named(evaluate(*arguments.more_named), values);
  return values;
}

void Interpreter::spread_named(const Value& more, Arguments& arguments) {
  if (!more.is(Value::Kind::mapping)) {
    raise(fmt::format("** needs a mapping, not a {}", type_name(more)));
  }
  charge(more.mapping().entries.size());
  for (const auto& [key, value] : more.mapping().entries) {
    if (!key.is_text()) raise("** needs a mapping whose keys are texts");
    arguments.named.emplace_back(key.text(), value);
  }
}

Value Interpreter::evaluate_call(const Expression& expression, const Value* caller) {
  const Value function = evaluate(*expression.parts[0]);
  Arguments arguments = evaluate_arguments(expression.arguments);
  if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
  m_line = expression.line;
  if (function.is_undefined()) raise(function.why_undefined() + ", so it cannot be called");
  if (!function.is(Value::Kind::callable) || !function.callable().can_be_called()) {
    raise(fmt::format("a {} cannot be called", type_name(function)));
  }
  return function.callable().call(*this, arguments);
}

Value Interpreter::evaluate_filter(const Expression& expression, const Value* input) {
  const Value value = !expression.parts[0] ? *input
                      : expression.parts[0]->kind == Expression::Kind::filter && input != nullptr
                          ? evaluate_filter(*expression.parts[0], input)
                          : evaluate(*expression.parts[0]);
  const Arguments arguments = evaluate_arguments(expression.arguments);
  m_line = expression.line;
  const FilterFunction filter =
      expression.filter != nullptr ? expression.filter : require_filter(expression.text);
  return filter(*this, value, arguments);
}

bool Interpreter::evaluate_test(const Expression& expression) {
  const Value value = evaluate(*expression.parts[0]);
  const Arguments arguments = evaluate_arguments(expression.arguments);
  m_line = expression.line;
  const TestFunction test =
      expression.test != nullptr ? expression.test : require_test(expression.text);
  return test(*this, value, arguments);
}

Value Interpreter::evaluate_arithmetic(const Expression& expression) {
  const Value left = evaluate(*expression.parts[0]);
  const Value right = evaluate(*expression.parts[1]);
  m_line = expression.line;
  return arithmetic(*this, expression.operations[0], left, right);
}

// a < b < c, as Python chains them.
bool Interpreter::evaluate_comparison(const Expression& expression) {
  Value left = evaluate(*expression.parts[0]);
  for (std::size_t i = 0; i < expression.operations.size(); ++i) {
    Value right = evaluate(*expression.parts[i + 1]);
    m_line = expression.line;
    if (!compare(*this, expression.operations[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

// `or` stops at the first true value, `and` at the first false one.
Value Interpreter::evaluate_chain(const Expression& expression, bool stops_at) {
  Value value;
  for (const auto& part : expression.parts) {
    value = evaluate(*part);
    if (truthy(value) == stops_at) break;
  }
  return value;
}

Value Interpreter::evaluate_concatenation(const Expression& expression) {
  std::string joined;
  for (const auto& part : expression.parts) {
    joined += text_of(evaluate(*part));
    charge_text(joined.size());
  }
  return Value::of(std::move(joined));
}

Value Interpreter::evaluate_conditional(const Expression& expression) {
  if (truthy(evaluate(*expression.parts[1]))) return evaluate(*expression.parts[0]);
  if (expression.parts[2]) return evaluate(*expression.parts[2]);
  return Value::undefined(
      fmt::format("the inline if on line {} was false and has no else", expression.line));
}

}  // namespace driftscope::jinja
