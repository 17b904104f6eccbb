// SPDX-License-Identifier: Apache-2.0
#include "engine/text/jinja/operators.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "engine/text/jinja/machine.h"

namespace driftscope::jinja {
namespace {

using Kind = Value::Kind;

void need_defined(const Value& left, const Value& right) {
  for (const Value* value : {&left, &right}) {
    if (value->is_undefined()) raise(value->why_undefined());
  }
}

[[noreturn]] void unsupported(Operator operation, const Value& left, const Value& right) {
  raise(fmt::format("{} does not work on a {} and a {}", symbol_of(operation), type_name(left),
                    type_name(right)));
}

[[noreturn]] void too_large() { raise("an integer of more than 63 bits; they are not supported"); }

std::int64_t floor_divided(std::int64_t left, std::int64_t right) {
  if (right == -1) {
    if (left == INT64_MIN) too_large();
    return -left;
  }
  const std::int64_t quotient = left / right;
  return (left % right != 0 && (left < 0) != (right < 0)) ? quotient - 1 : quotient;
}

std::int64_t floor_modulo(std::int64_t left, std::int64_t right) {
  if (right == -1) return 0;
  const std::int64_t rest = left % right;
  return rest != 0 && (rest < 0) != (right < 0) ? rest + right : rest;
}

Value integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) raise("0 cannot be raised to a negative power");
    return Value::of(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  std::int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) too_large();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) too_large();
  }
  return Value::of(result);
}

Value integer_arithmetic(Operator operation, std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  switch (operation) {
    case Operator::add:
      if (__builtin_add_overflow(left, right, &result)) too_large();
      return Value::of(result);
    case Operator::subtract:
      if (__builtin_sub_overflow(left, right, &result)) too_large();
      return Value::of(result);
    case Operator::multiply:
      if (__builtin_mul_overflow(left, right, &result)) too_large();
      return Value::of(result);
    case Operator::power:
      return integer_power(left, right);
    case Operator::divide:
      if (right == 0) raise("division by zero");
      return Value::of(
          static_cast<double>(static_cast<long double>(left) / static_cast<long double>(right)));
    case Operator::floor_divide:
      if (right == 0) raise("division by zero");
      return Value::of(floor_divided(left, right));
    case Operator::modulo:
      if (right == 0) raise("division by zero");
      return Value::of(floor_modulo(left, right));
    default:
      return {};
  }
}

double real_modulo(double left, double right) {
  double rest = std::fmod(left, right);
  if (rest != 0.0) {
    if ((right < 0) != (rest < 0)) rest += right;
  } else {
    rest = std::copysign(0.0, right);
  }
  return rest;
}

double real_floor_divided(double left, double right) {
  const double rest = std::fmod(left, right);
  double quotient = (left - rest) / right;
  if (rest != 0.0 && (right < 0) != (rest < 0)) quotient -= 1.0;
  if (quotient == 0.0) return std::copysign(0.0, left / right);
  double floored = std::floor(quotient);
  if (quotient - floored > 0.5) floored += 1.0;
  return floored;
}

Value real_power(double left, double right) {
  if (left == 0.0 && right < 0.0) raise("0.0 cannot be raised to a negative power");
  if (left < 0.0 && std::isfinite(right) && right != std::floor(right)) {
    raise("a negative number to a fractional power is complex, which is not supported");
  }
  const double result = std::pow(left, right);
  if (std::isinf(result) && std::isfinite(left) && std::isfinite(right)) {
    raise("the result of ** is out of range");
  }
  return Value::of(result);
}

Value real_arithmetic(Operator operation, double left, double right) {
  switch (operation) {
    case Operator::add:
      return Value::of(left + right);
    case Operator::subtract:
      return Value::of(left - right);
    case Operator::multiply:
      return Value::of(left * right);
    case Operator::power:
      return real_power(left, right);
    default:
      break;
  }
  if (right == 0.0) raise("division by zero");
  switch (operation) {
    case Operator::divide:
      return Value::of(left / right);
    case Operator::floor_divide:
      return Value::of(real_floor_divided(left, right));
    case Operator::modulo:
      return Value::of(real_modulo(left, right));
    default:
      return {};
  }
}

bool is_whole(const Value& value) { return value.is(Kind::boolean) || value.is(Kind::integer); }

bool is_repeatable(const Value& value) {
  return value.is_text() ||
         (value.is(Kind::sequence) && (value.sequence().form == Sequence::Form::list ||
                                       value.sequence().form == Sequence::Form::tuple));
}

Value repeated(Machine& machine, const Value& value, std::int64_t count) {
  const auto times = static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
  const std::size_t size = value.is_text() ? value.text().size() : value.sequence().items.size();
  if (size != 0 && times > kMaxTextBytes / size) raise("* makes too long a value");
  if (value.is_text()) {
    machine.charge_text(size * times);
    std::string text;
    text.reserve(size * times);
    for (std::size_t i = 0; i < times; ++i) text += value.text();
    return Value::of(std::move(text));
  }
  machine.charge(size * times);
  List items;
  for (std::size_t i = 0; i < times && size > 0; ++i) {
    items.insert(items.end(), value.sequence().items.begin(), value.sequence().items.end());
  }
  return make_sequence(value.sequence().form, std::move(items));
}

// Two texts or two lists of one kind; none: not these.
std::optional<Value> joined(Machine& machine, const Value& left, const Value& right) {
  if (left.is_text() && right.is_text()) {
    machine.charge_text(left.text().size() + right.text().size());
    return Value::of(left.text() + right.text());
  }
  if (!is_repeatable(left) || !is_repeatable(right) || left.is_text() || right.is_text() ||
      left.sequence().form != right.sequence().form) {
    return std::nullopt;
  }
  machine.charge(left.sequence().items.size() + right.sequence().items.size());
  List items = left.sequence().items;
  items.insert(items.end(), right.sequence().items.begin(), right.sequence().items.end());
  return make_sequence(left.sequence().form, std::move(items));
}

}  // namespace

std::string_view symbol_of(Operator operation) {
  constexpr std::array<std::string_view, 15> kSymbols{
      "+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};
  return kSymbols[static_cast<std::size_t>(operation)];
}

Value arithmetic(Machine& machine, Operator operation, const Value& left, const Value& right) {
  if (left.is_text() && operation == Operator::modulo) {
    return machine.text(percent_format(machine, left.text(), right));
  }
  need_defined(left, right);
  if (is_whole(left) && is_whole(right)) {
    return integer_arithmetic(operation, left.integer(), right.integer());
  }
  if (left.is_number() && right.is_number()) {
    return real_arithmetic(operation, left.real(), right.real());
  }
  if (operation == Operator::add) {
    if (auto made = joined(machine, left, right)) return *made;
  }
  if (operation == Operator::multiply) {
    if (is_repeatable(left) && is_whole(right)) return repeated(machine, left, right.integer());
    if (is_repeatable(right) && is_whole(left)) return repeated(machine, right, left.integer());
  }
  unsupported(operation, left, right);
}

Value negative(const Value& value) {
  if (value.is_undefined()) raise(value.why_undefined());
  if (value.is(Kind::real)) return Value::of(-value.real());
  if (is_whole(value)) return integer_arithmetic(Operator::subtract, 0, value.integer());
  raise(fmt::format("- does not work on a {}", type_name(value)));
}

Value positive(const Value& value) {
  if (value.is_undefined()) raise(value.why_undefined());
  if (value.is(Kind::real)) return value;
  if (is_whole(value)) return Value::of(value.integer());
  raise(fmt::format("+ does not work on a {}", type_name(value)));
}

}  // namespace driftscope::jinja
