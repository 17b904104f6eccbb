// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/filter_table.h"
#include "engine/text/jinja/member_path.h"
#include "engine/text/jinja/operators.h"

namespace driftscope::jinja {
namespace {

using Kind = Value::Kind;
using Form = Sequence::Form;

Value length_filter(Machine& /*machine*/, const Value& input, const Arguments& arguments) {
  const Parameters parameters("length", arguments, {});
  return Value::of(length(input));
}

Value list_filter(Machine& machine, const Value& input, const Arguments& arguments) {
  const Parameters parameters("list", arguments, {});
  return make_list(iterate(machine, input));
}

Value first(Machine& machine, const Value& input, const Arguments& arguments) {
  const Parameters parameters("first", arguments, {});
  if (input.is(Kind::sequence)) {
    const Sequence& sequence = input.sequence();
    if (sequence.taken < sequence.items.size()) {
      const Value& found = sequence.items[sequence.taken];
      if (sequence.form == Form::iterator) ++sequence.taken;
      return found;
    }
  } else {
    List items = iterate(machine, input);
    if (!items.empty()) return items.front();
  }
  return Value::undefined("there is no first item: the sequence is empty");
}

Value last(Machine& machine, const Value& input, const Arguments& arguments) {
  const Parameters parameters("last", arguments, {});
  if (input.is(Kind::sequence) && input.sequence().form == Form::iterator) {
    raise("last does not work on a generator; make a list of it first");
  }
  List items = iterate(machine, input);
  if (items.empty()) return Value::undefined("there is no last item: the sequence is empty");
  return items.back();
}

Value reverse(Machine& machine, const Value& input, const Arguments& arguments) {
  const Parameters parameters("reverse", arguments, {});
  List items = iterate(machine, input);
  std::reverse(items.begin(), items.end());
  if (!input.is_text()) {
    const bool is_generator = input.is(Kind::sequence) && input.sequence().form == Form::iterator;
    return make_sequence(is_generator ? Form::list : Form::iterator, std::move(items));
  }
  std::string text;
  for (const Value& item : items) text += item.text();
  return machine.text(std::move(text));
}

Value join(Machine& machine, const Value& input, const Arguments& arguments) {
  const Parameters parameters("join", arguments, {"d", "attribute"});
  const std::string separator = parameters.find(0) != nullptr ? text_of(*parameters.find(0)) : "";
  const MemberPath path(parameters.given(1) ? *parameters.find(1) : Value());
  std::string text;
  bool is_first = true;
  for (const Value& item : iterate(machine, input)) {
    if (!is_first) text += separator;
    is_first = false;
    text += text_of(path.of(machine, item));
    if (text.size() > kMaxTextBytes) machine.charge_text(text.size());
  }
  return machine.text(std::move(text));
}

Value items_filter(Machine& machine, const Value& input, const Arguments& arguments) {
  const Parameters parameters("items", arguments, {});
  if (input.is_undefined()) return make_sequence(Form::iterator, {});
  if (!input.is(Kind::mapping)) {
    raise(fmt::format("items needs a mapping, not a {}", type_name(input)));
  }
  machine.charge(input.mapping().entries.size());
  List items;
  for (const auto& [key, value] : input.mapping().entries)
    items.push_back(make_tuple({key, value}));
  return make_sequence(Form::iterator, std::move(items));
}

Value sum(Machine& machine, const Value& input, const Arguments& arguments) {
  const Parameters parameters("sum", arguments, {"attribute", "start"});
  const MemberPath path(parameters.given(0) ? *parameters.find(0) : Value());
  Value total = parameters.find(1) != nullptr ? *parameters.find(1) : Value::of(std::int64_t{0});
  if (total.is_text()) raise("sum does not join texts; use join");
  for (const Value& item : iterate(machine, input)) {
    total = arithmetic(machine, Operator::add, total, path.of(machine, item));
  }
  return total;
}

Value default_filter(Machine& /*machine*/, const Value& input, const Arguments& arguments) {
  const Parameters parameters("default", arguments, {"default_value", "boolean"});
  const bool replaces = input.is_undefined() || (parameters.boolean(1, false) && !truthy(input));
  if (!replaces) return input;
  return parameters.find(0) != nullptr ? *parameters.find(0) : Value::of("");
}

Value attr(Machine& machine, const Value& input, const Arguments& arguments) {
  const Parameters parameters("attr", arguments, {"name"});
  const std::string& name = parameters.text(0);
  if (input.is_undefined()) raise(input.why_undefined());
  // An attribute, never an entry of a mapping.
  if (input.is(Kind::mapping)) {
    return method_of(input, name)
        .value_or(Value::undefined(fmt::format("a dict has no attribute \"{}\"", name)));
  }
  return attribute(machine, input, name);
}

Value batch(Machine& machine, const Value& input, const Arguments& arguments) {
  const Parameters parameters("batch", arguments, {"linecount", "fill_with"});
  const std::int64_t width = integer_of(parameters.require(0), "the size of a batch");
  if (width < 1 || width > 1000000) raise("the size of a batch is not between 1 and 1000000");
  List batches;
  List row;
  for (const Value& item : iterate(machine, input)) {
    if (static_cast<std::int64_t>(row.size()) == width)
      batches.push_back(make_list(std::exchange(row, {})));
    row.push_back(item);
  }
  if (!row.empty()) {
    while (parameters.given(1) && static_cast<std::int64_t>(row.size()) < width) {
      machine.charge();
      row.push_back(*parameters.find(1));
    }
    batches.push_back(make_list(std::move(row)));
  }
  return make_sequence(Form::iterator, std::move(batches));
}

constexpr std::array kListFilters{FilterRow{"length", &length_filter},
                                  FilterRow{"count", &length_filter},
                                  FilterRow{"list", &list_filter},
                                  FilterRow{"first", &first},
                                  FilterRow{"last", &last},
                                  FilterRow{"reverse", &reverse},
                                  FilterRow{"join", &join},
                                  FilterRow{"items", &items_filter},
                                  FilterRow{"sum", &sum},
                                  FilterRow{"default", &default_filter},
                                  FilterRow{"d", &default_filter},
                                  FilterRow{"attr", &attr},
                                  FilterRow{"batch", &batch}};

}  // namespace

std::span<const FilterRow> list_filters() { return kListFilters; }

}  // namespace driftscope::jinja
