// SPDX-License-Identifier: Apache-2.0
// Operators, look-ups and iteration, with Python's rules. Errors are raised as Failure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/text/jinja/value.h"

namespace driftscope::jinja {

enum class Operator : std::uint8_t {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  equal,
  not_equal,
  less,
  less_or_equal,
  greater,
  greater_or_equal,
  in,
  not_in
};
[[nodiscard]] std::string_view symbol_of(Operator operation);

// + - * / // % **
[[nodiscard]] Value arithmetic(Machine& machine, Operator operation, const Value& left,
                               const Value& right);
[[nodiscard]] Value negative(const Value& value);
[[nodiscard]] Value positive(const Value& value);

[[nodiscard]] bool equal(Machine& machine, const Value& left, const Value& right);
// -1, 0, 1; 2: unordered (a NaN). Errors: types that have no order.
[[nodiscard]] int order(Machine& machine, const Value& left, const Value& right);
[[nodiscard]] bool compare(Machine& machine, Operator operation, const Value& left,
                           const Value& right);
[[nodiscard]] bool contains(Machine& machine, const Value& container, const Value& value);

// What a for loop runs over. An iterator is used up by it. Errors: not iterable.
[[nodiscard]] List iterate(Machine& machine, const Value& value);
// len(). Errors: has none.
[[nodiscard]] std::int64_t length(const Value& value);

// value.name and value[key]: undefined where there is no such thing.
[[nodiscard]] Value attribute(Machine& machine, const Value& value, std::string_view name);
[[nodiscard]] Value item(Machine& machine, const Value& value, const Value& key);
// value[start:stop:step]; each bound None or an integer.
[[nodiscard]] Value slice(Machine& machine, const Value& value, const Value& start,
                          const Value& stop, const Value& step);
[[nodiscard]] Value make_range(std::int64_t start, std::int64_t stop, std::int64_t step);

// A method of str, list, tuple or dict bound to `self`; nullopt: it has none of the name.
[[nodiscard]] std::optional<Value> method_of(const Value& self, std::string_view name);

// "text %s" % values and "text {}".format(values).
[[nodiscard]] std::string percent_format(Machine& machine, std::string_view format,
                                         const Value& values);
[[nodiscard]] std::string brace_format(Machine& machine, std::string_view format,
                                       const Arguments& arguments);
// One value by a format specification ("<10", ".2f").
[[nodiscard]] std::string format_value(const Value& value, std::string_view specification);

// json.dumps(value, ensure_ascii=False, indent=…, separators=…, sort_keys=…).
struct JsonForm {
  std::optional<std::string> indent = {};  // of one level
  std::optional<std::string> item_separator = {};
  std::optional<std::string> key_separator = {};
  bool sort_keys = false;
  bool ensure_ascii = false;
};
[[nodiscard]] std::string json_text(Machine& machine, const Value& value, const JsonForm& form);

}  // namespace driftscope::jinja
