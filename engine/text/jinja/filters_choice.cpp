// SPDX-License-Identifier: Apache-2.0
// Filters that apply another filter, a test or an order to every item.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/filter_table.h"
#include "engine/text/jinja/literal.h"
#include "engine/text/jinja/member_path.h"
#include "engine/text/jinja/operators.h"

namespace driftscope::jinja {

MemberPath::MemberPath(const Value& attribute) {
  if (attribute.is_none()) return;
  if (!attribute.is_text()) {
    m_keys.push_back(attribute);
    return;
  }
  for (const std::string_view part : split(attribute.text(), ".", -1)) {
    const bool digits = !part.empty() && std::all_of(part.begin(), part.end(),
                                                     [](char c) { return c >= '0' && c <= '9'; });
    const auto index = digits ? parse_integer(part, 10) : std::nullopt;
    m_keys.push_back(index ? Value::of(*index) : Value::of(part));
  }
}

Value MemberPath::of(Machine& machine, Value value, const Value* otherwise) const {
  for (const Value& key : m_keys) {
    value = item(machine, value, key);
    if (otherwise != nullptr && value.is_undefined()) value = *otherwise;
  }
  return value;
}

Value without_case(const Value& value) {
  return value.is_text() ? Value::of(lower(value.text())) : value;
}

namespace {

using Kind = Value::Kind;
using Form = Sequence::Form;

const Value* named(const Arguments& arguments, std::string_view name) {
  for (const auto& [known, value] : arguments.named) {
    if (known == name) return &value;
  }
  return nullptr;
}

Value map_attribute(Machine& machine, const Value& input, const Arguments& arguments,
                    const Value& path_given) {
  for (const auto& [name, value] : arguments.named) {
    if (name != "attribute" && name != "default") {
      raise(fmt::format("map has no argument \"{}\"", name));
    }
  }
  const MemberPath path(path_given);
  const Value* otherwise = named(arguments, "default");
  if (otherwise != nullptr && otherwise->is_none()) otherwise = nullptr;
  List mapped;
  for (const Value& value : iterate(machine, input)) {
    mapped.push_back(path.of(machine, value, otherwise));
  }
  return make_sequence(Form::iterator, std::move(mapped));
}

Value map_filter(Machine& machine, const Value& input, const Arguments& arguments) {
  if (!truthy(input)) return make_sequence(Form::iterator, {});
  const Value* path = named(arguments, "attribute");
  if (arguments.positional.empty() && path != nullptr) {
    return map_attribute(machine, input, arguments, *path);
  }
  if (arguments.positional.empty() || !arguments.positional[0].is_text()) {
    raise("map needs the name of a filter, or attribute=");
  }
  const FilterFunction filter = require_filter(arguments.positional[0].text());
  const Machine::DepthGuard guard(machine);
  Arguments rest{.positional = {arguments.positional.begin() + 1, arguments.positional.end()},
                 .named = arguments.named};
  List mapped;
  for (const Value& value : iterate(machine, input)) {
    machine.charge();
    mapped.push_back(filter(machine, value, rest));
  }
  return make_sequence(Form::iterator, std::move(mapped));
}

// select, reject, selectattr and rejectattr.
template <bool Keep, bool OfAttribute>
Value chosen(Machine& machine, const Value& input, const Arguments& arguments) {
  if (!truthy(input)) return make_sequence(Form::iterator, {});
  const std::size_t skipped = OfAttribute ? 1 : 0;
  if (arguments.positional.size() < skipped) raise("selectattr needs the name of an attribute");
  const MemberPath path(OfAttribute ? arguments.positional[0] : Value());
  TestFunction test = nullptr;
  Arguments rest{.positional = {}, .named = arguments.named};
  if (arguments.positional.size() > skipped) {
    if (!arguments.positional[skipped].is_text()) raise("select needs the name of a test");
    test = require_test(arguments.positional[skipped].text());
    rest.positional.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(skipped) + 1,
                           arguments.positional.end());
  }
  List kept;
  for (Value& value : iterate(machine, input)) {
    machine.charge();
    const Value looked_at = path.of(machine, value);
    const bool holds = test != nullptr ? test(machine, looked_at, rest) : truthy(looked_at);
    if (holds == Keep) kept.push_back(std::move(value));
  }
  return make_sequence(Form::iterator, std::move(kept));
}

struct Keyed {
  List key;
  Value value;
};

// Stable; with `reverse` equal items keep their order, as in Python.
void sort_keyed(Machine& machine, std::vector<Keyed>& entries, bool reverse) {
  if (reverse) std::reverse(entries.begin(), entries.end());
  std::stable_sort(entries.begin(), entries.end(), [&](const Keyed& a, const Keyed& b) {
    for (std::size_t i = 0; i < a.key.size(); ++i) {
      if (equal(machine, a.key[i], b.key[i])) continue;
      return order(machine, a.key[i], b.key[i]) == -1;
    }
    return false;
  });
  if (reverse) std::reverse(entries.begin(), entries.end());
}

Value sort_filter(Machine& machine, const Value& input, const Arguments& arguments) {
  const Parameters parameters("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  std::vector<MemberPath> paths;
  if (parameters.given(2) && parameters.find(2)->is_text()) {
    for (const std::string_view part : split(parameters.text(2), ",", -1)) {
      paths.emplace_back(Value::of(part));
    }
  } else {
    paths.emplace_back(parameters.given(2) ? *parameters.find(2) : Value());
  }
  const bool with_case = parameters.boolean(1, false);
  std::vector<Keyed> entries;
  for (const Value& value : iterate(machine, input)) {
    Keyed entry{.key = {}, .value = value};
    for (const MemberPath& path : paths) {
      const Value key = path.of(machine, value);
      entry.key.push_back(with_case ? key : without_case(key));
    }
    entries.push_back(std::move(entry));
  }
  sort_keyed(machine, entries, parameters.boolean(0, false));
  List sorted;
  for (Keyed& entry : entries) sorted.push_back(std::move(entry.value));
  return make_list(std::move(sorted));
}

Value dictsort(Machine& machine, const Value& input, const Arguments& arguments) {
  const Parameters parameters("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::string by = parameters.find(1) != nullptr ? parameters.text(1) : "key";
  if (by != "key" && by != "value") raise("dictsort: by is \"key\" or \"value\"");
  if (!input.is(Kind::mapping)) {
    raise(fmt::format("dictsort needs a mapping, not a {}", type_name(input)));
  }
  const bool with_case = parameters.boolean(0, false);
  std::vector<Keyed> entries;
  machine.charge(input.mapping().entries.size());
  for (const auto& [key, value] : input.mapping().entries) {
    const Value& compared = by == "key" ? key : value;
    entries.push_back({.key = {with_case ? compared : without_case(compared)},
                       .value = make_tuple({key, value})});
  }
  sort_keyed(machine, entries, parameters.boolean(2, false));
  List sorted;
  for (Keyed& entry : entries) sorted.push_back(std::move(entry.value));
  return make_list(std::move(sorted));
}

Value unique(Machine& machine, const Value& input, const Arguments& arguments) {
  const Parameters parameters("unique", arguments, {"case_sensitive", "attribute"});
  const MemberPath path(parameters.given(1) ? *parameters.find(1) : Value());
  const bool with_case = parameters.boolean(0, false);
  std::unordered_set<std::string> seen;
  List kept;
  for (Value& value : iterate(machine, input)) {
    const Value key = path.of(machine, value);
    const std::string code = key_code(with_case ? key : without_case(key));
    machine.charge(1 + code.size() / 32);
    if (seen.insert(code).second) kept.push_back(std::move(value));
  }
  return make_sequence(Form::iterator, std::move(kept));
}

// min and max.
template <int Wanted>
Value extreme(Machine& machine, const Value& input, const Arguments& arguments) {
  const Parameters parameters("min and max", arguments, {"case_sensitive", "attribute"});
  const MemberPath path(parameters.given(1) ? *parameters.find(1) : Value());
  const bool with_case = parameters.boolean(0, false);
  const List items = iterate(machine, input);
  if (items.empty()) return Value::undefined("there is no smallest or largest item: none at all");
  const auto key_of = [&](const Value& value) {
    const Value key = path.of(machine, value);
    return with_case ? key : without_case(key);
  };
  Value best = items.front();
  Value best_key = key_of(best);
  for (std::size_t i = 1; i < items.size(); ++i) {
    const Value key = key_of(items[i]);
    if (order(machine, key, best_key) != Wanted) continue;
    best = items[i];
    best_key = key;
  }
  return best;
}

constexpr std::array kChoiceFilters{FilterRow{"map", &map_filter},
                                    FilterRow{"select", &chosen<true, false>},
                                    FilterRow{"reject", &chosen<false, false>},
                                    FilterRow{"selectattr", &chosen<true, true>},
                                    FilterRow{"rejectattr", &chosen<false, true>},
                                    FilterRow{"sort", &sort_filter},
                                    FilterRow{"dictsort", &dictsort},
                                    FilterRow{"unique", &unique},
                                    FilterRow{"min", &extreme<-1>},
                                    FilterRow{"max", &extreme<1>}};

}  // namespace

std::span<const FilterRow> choice_filters() { return kChoiceFilters; }

}  // namespace driftscope::jinja
