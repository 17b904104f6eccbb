// SPDX-License-Identifier: Apache-2.0
// ==, <, in, iteration and length.
#include <fmt/format.h>

#include <algorithm>

#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/machine.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/searching.h"

namespace driftscope::jinja {
namespace {

using Kind = Value::Kind;
using Form = Sequence::Form;

bool equal_numbers(const Value& left, const Value& right) {
  if (!left.is(Kind::real) && !right.is(Kind::real)) return left.integer() == right.integer();
  if (left.is(Kind::real) && right.is(Kind::real)) return left.real() == right.real();
  // A long double holds every integer and every double.
  const auto wide = [](const Value& value) {
    return value.is(Kind::real) ? static_cast<long double>(value.real())
                                : static_cast<long double>(value.integer());
  };
  return wide(left) == wide(right);
}

bool equal_lists(Machine& machine, const List& left, const List& right) {
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!equal(machine, left[i], right[i])) return false;
  }
  return true;
}

bool equal_mappings(Machine& machine, const Mapping& left, const Mapping& right) {
  if (left.entries.size() != right.entries.size()) return false;
  for (const auto& [key, value] : left.entries) {
    const Value* other = right.find(key);
    if (other == nullptr || !equal(machine, value, *other)) return false;
  }
  return true;
}

// Views of keys are sets to Python; other views equal nothing but themselves.
bool equal_sequences(Machine& machine, const Sequence& left, const Sequence& right) {
  if (&left == &right) return true;
  if (left.form != right.form) return false;
  switch (left.form) {
    case Form::list:
    case Form::tuple:
    case Form::range:
    case Form::keys:
    case Form::items:
      return equal_lists(machine, left.items, right.items);
    case Form::values:
    case Form::iterator:
      return false;
  }
  return false;
}

int order_lists(Machine& machine, const List& left, const List& right) {
  const std::size_t both = std::min(left.size(), right.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (!equal(machine, left[i], right[i])) return order(machine, left[i], right[i]);
  }
  return left.size() < right.size() ? -1 : left.size() > right.size() ? 1 : 0;
}

template <class Number>
int order_numbers(Number left, Number right) {
  return left < right ? -1 : left > right ? 1 : left == right ? 0 : 2;
}

}  // namespace

bool equal(Machine& machine, const Value& left, const Value& right) {
  machine.charge();
  if (left.is_number() && right.is_number()) return equal_numbers(left, right);
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Kind::undefined:
    case Kind::none:
      return true;
    case Kind::text:
      return left.text() == right.text();
    case Kind::sequence:
      return equal_sequences(machine, left.sequence(), right.sequence());
    case Kind::mapping:
      return &left.mapping() == &right.mapping() ||
             equal_mappings(machine, left.mapping(), right.mapping());
    case Kind::space:
    case Kind::callable:
    case Kind::loop:
      return left.identity() == right.identity();
    case Kind::boolean:
    case Kind::integer:
    case Kind::real:
      break;  // numbers, above
  }
  return false;
}

int order(Machine& machine, const Value& left, const Value& right) {
  machine.charge();
  for (const Value* value : {&left, &right}) {
    if (value->is_undefined()) raise(value->why_undefined());
  }
  if (left.is_number() && right.is_number()) {
    if (left.is(Kind::real) || right.is(Kind::real)) {
      const auto wide = [](const Value& value) {
        return value.is(Kind::real) ? static_cast<long double>(value.real())
                                    : static_cast<long double>(value.integer());
      };
      return order_numbers(wide(left), wide(right));
    }
    return order_numbers(left.integer(), right.integer());
  }
  // The order of UTF-8 is that of code points.
  if (left.is_text() && right.is_text()) return order_numbers(left.text().compare(right.text()), 0);
  if (left.is(Kind::sequence) && right.is(Kind::sequence) &&
      left.sequence().form == right.sequence().form &&
      (left.sequence().form == Form::list || left.sequence().form == Form::tuple)) {
    return order_lists(machine, left.sequence().items, right.sequence().items);
  }
  raise(fmt::format("a {} and a {} have no order; compare values of one type", type_name(left),
                    type_name(right)));
}

bool compare(Machine& machine, Operator operation, const Value& left, const Value& right) {
  switch (operation) {
    case Operator::equal:
      return equal(machine, left, right);
    case Operator::not_equal:
      return !equal(machine, left, right);
    case Operator::in:
      return contains(machine, right, left);
    case Operator::not_in:
      return !contains(machine, right, left);
    default:
      break;
  }
  const int found = order(machine, left, right);
  switch (operation) {
    case Operator::less:
      return found == -1;
    case Operator::less_or_equal:
      return found == -1 || found == 0;
    case Operator::greater:
      return found == 1;
    case Operator::greater_or_equal:
      return found == 1 || found == 0;
    default:
      return false;
  }
}

bool contains(Machine& machine, const Value& container, const Value& value) {
  if (container.is_text()) {
    if (!value.is_text()) {
      raise(fmt::format("'in' a text needs a text on its left, not a {}", type_name(value)));
    }
    machine.charge(1 + container.text().size() / 32);
    return find_text(container.text(), value.text()) != std::string::npos;
  }
  if (container.is(Kind::mapping)) return container.mapping().find(value) != nullptr;
  if (container.is(Kind::sequence) && container.sequence().form != Form::iterator) {
    const List& items = container.sequence().items;
    if (container.sequence().form == Form::keys) static_cast<void>(key_code(value));
    return std::any_of(items.begin(), items.end(), [&](const Value& entry) {
      return (entry.identity() != nullptr && entry.identity() == value.identity()) ||
             equal(machine, entry, value);
    });
  }
  const List items = iterate(machine, container);
  return std::any_of(items.begin(), items.end(),
                     [&](const Value& entry) { return equal(machine, entry, value); });
}

List iterate(Machine& machine, const Value& value) {
  List items;
  switch (value.kind()) {
    case Kind::undefined:
      return items;
    case Kind::text: {
      const auto offsets = character_offsets(value.text());
      machine.charge(offsets.size());
      for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
        items.push_back(Value::of(value.text().substr(offsets[i], offsets[i + 1] - offsets[i])));
      }
      return items;
    }
    case Kind::mapping:
      machine.charge(value.mapping().entries.size());
      for (const auto& [key, held] : value.mapping().entries) items.push_back(key);
      return items;
    case Kind::sequence: {
      const Sequence& sequence = value.sequence();
      machine.charge(sequence.items.size() - sequence.taken);
      items.assign(sequence.items.begin() + static_cast<std::ptrdiff_t>(sequence.taken),
                   sequence.items.end());
      if (sequence.form == Form::iterator) sequence.taken = sequence.items.size();
      return items;
    }
    case Kind::none:
    case Kind::boolean:
    case Kind::integer:
    case Kind::real:
    case Kind::space:
    case Kind::callable:
    case Kind::loop:
      break;
  }
  raise(fmt::format("a {} cannot be iterated over", type_name(value)));
}

std::int64_t length(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
      return 0;
    case Kind::text:
      return static_cast<std::int64_t>(count_characters(value.text()));
    case Kind::mapping:
      return static_cast<std::int64_t>(value.mapping().entries.size());
    case Kind::sequence:
      if (value.sequence().form == Form::iterator) break;
      return static_cast<std::int64_t>(value.sequence().items.size());
    case Kind::loop:
      return static_cast<std::int64_t>(value.loop()->items.sequence().items.size());
    case Kind::none:
    case Kind::boolean:
    case Kind::integer:
    case Kind::real:
    case Kind::space:
    case Kind::callable:
      break;
  }
  raise(fmt::format("a {} has no length", type_name(value)));
}

}  // namespace driftscope::jinja
