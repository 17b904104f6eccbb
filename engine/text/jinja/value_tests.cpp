// SPDX-License-Identifier: Apache-2.0
// What stands behind "is".
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/machine.h"
#include "engine/text/jinja/operators.h"

namespace driftscope::jinja {
namespace {

using Kind = Value::Kind;
using Form = Sequence::Form;

template <bool (*Question)(const Value&)>
bool plain(Machine& /*machine*/, const Value& input, const Arguments& arguments) {
  const Parameters parameters("a test", arguments, {});
  return Question(input);
}

bool is_defined(const Value& value) { return !value.is_undefined(); }
bool is_undefined(const Value& value) { return value.is_undefined(); }
bool is_none(const Value& value) { return value.is_none(); }
bool is_boolean(const Value& value) { return value.is(Kind::boolean); }
bool is_true(const Value& value) { return value.is(Kind::boolean) && value.boolean(); }
bool is_false(const Value& value) { return value.is(Kind::boolean) && !value.boolean(); }
bool is_integer(const Value& value) { return value.is(Kind::integer); }
bool is_float(const Value& value) { return value.is(Kind::real); }
bool is_number(const Value& value) { return value.is_number(); }
bool is_string(const Value& value) { return value.is_text(); }
bool is_mapping(const Value& value) { return value.is(Kind::mapping); }
bool is_escaped(const Value& /*value*/) { return false; }  // there is no automatic escaping
bool is_upper(const Value& value) { return is_all_upper(text_of(value)); }
bool is_lower(const Value& value) { return is_all_lower(text_of(value)); }

bool is_sequence(const Value& value) {
  if (value.is(Kind::sequence)) {
    const Form form = value.sequence().form;
    return form == Form::list || form == Form::tuple || form == Form::range;
  }
  return value.is_text() || value.is(Kind::mapping) || value.is_undefined();
}

bool is_iterable(const Value& value) {
  return value.is(Kind::sequence) || value.is_text() || value.is(Kind::mapping) ||
         value.is_undefined() || value.is(Kind::loop);
}

bool is_callable(const Value& value) {
  return value.is_undefined() || value.is(Kind::loop) ||
         (value.is(Kind::callable) && value.callable().can_be_called());
}

template <std::int64_t Rest>
bool has_rest(Machine& machine, const Value& input, const Arguments& arguments) {
  const Parameters parameters("a test", arguments, {});
  const Value rest = arithmetic(machine, Operator::modulo, input, Value::of(std::int64_t{2}));
  return equal(machine, rest, Value::of(Rest));
}

bool is_divisible(Machine& machine, const Value& input, const Arguments& arguments) {
  const Parameters parameters("divisibleby", arguments, {"num"});
  return equal(machine, arithmetic(machine, Operator::modulo, input, parameters.require(0)),
               Value::of(std::int64_t{0}));
}

template <Operator Operation>
bool compared(Machine& machine, const Value& input, const Arguments& arguments) {
  const Parameters parameters(symbol_of(Operation), arguments, {"other"});
  return compare(machine, Operation, input, parameters.require(0));
}

bool is_same(Machine& machine, const Value& input, const Arguments& arguments) {
  const Parameters parameters("sameas", arguments, {"other"});
  const Value& other = parameters.require(0);
  if (input.kind() != other.kind()) return false;
  if (input.identity() != nullptr) return input.identity() == other.identity();
  return equal(machine, input, other);
}

bool names_filter(Machine& /*machine*/, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter", arguments, {});
  return input.is_text() && find_filter(input.text()) != nullptr;
}

bool names_test(Machine& /*machine*/, const Value& input, const Arguments& arguments) {
  const Parameters parameters("test", arguments, {});
  return input.is_text() && find_test(input.text()) != nullptr;
}

struct TestRow {
  std::string_view name;
  TestFunction function;
};

constexpr std::array kTests{TestRow{"defined", &plain<&is_defined>},
                            TestRow{"undefined", &plain<&is_undefined>},
                            TestRow{"none", &plain<&is_none>},
                            TestRow{"boolean", &plain<&is_boolean>},
                            TestRow{"true", &plain<&is_true>},
                            TestRow{"false", &plain<&is_false>},
                            TestRow{"integer", &plain<&is_integer>},
                            TestRow{"float", &plain<&is_float>},
                            TestRow{"number", &plain<&is_number>},
                            TestRow{"string", &plain<&is_string>},
                            TestRow{"mapping", &plain<&is_mapping>},
                            TestRow{"sequence", &plain<&is_sequence>},
                            TestRow{"iterable", &plain<&is_iterable>},
                            TestRow{"callable", &plain<&is_callable>},
                            TestRow{"escaped", &plain<&is_escaped>},
                            TestRow{"upper", &plain<&is_upper>},
                            TestRow{"lower", &plain<&is_lower>},
                            TestRow{"odd", &has_rest<1>},
                            TestRow{"even", &has_rest<0>},
                            TestRow{"divisibleby", &is_divisible},
                            TestRow{"sameas", &is_same},
                            TestRow{"filter", &names_filter},
                            TestRow{"test", &names_test},
                            TestRow{"in", &compared<Operator::in>},
                            TestRow{"eq", &compared<Operator::equal>},
                            TestRow{"==", &compared<Operator::equal>},
                            TestRow{"equalto", &compared<Operator::equal>},
                            TestRow{"ne", &compared<Operator::not_equal>},
                            TestRow{"!=", &compared<Operator::not_equal>},
                            TestRow{"lt", &compared<Operator::less>},
                            TestRow{"<", &compared<Operator::less>},
                            TestRow{"lessthan", &compared<Operator::less>},
                            TestRow{"le", &compared<Operator::less_or_equal>},
                            TestRow{"<=", &compared<Operator::less_or_equal>},
                            TestRow{"gt", &compared<Operator::greater>},
                            TestRow{">", &compared<Operator::greater>},
                            TestRow{"greaterthan", &compared<Operator::greater>},
                            TestRow{"ge", &compared<Operator::greater_or_equal>},
                            TestRow{">=", &compared<Operator::greater_or_equal>}};

}  // namespace

TestFunction find_test(std::string_view name) {
  const auto* found = std::find_if(kTests.begin(), kTests.end(),
                                   [&](const TestRow& row) { return row.name == name; });
  return found == kTests.end() ? nullptr : found->function;
}

TestFunction require_test(std::string_view name) {
  if (const TestFunction found = find_test(name)) return found;
  raise(fmt::format("unknown test \"{}\"; write the condition another way", name));
}

}  // namespace driftscope::jinja
