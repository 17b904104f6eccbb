// SPDX-License-Identifier: Apache-2.0
// What filters, tests, methods and operators may ask of the interpreter.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/jinja/template.h"
#include "engine/text/jinja/value.h"

namespace driftscope::jinja {

class Machine {
 public:
  Machine(const Limits& limits, const Date& date) : m_limits(limits), m_date(date) {}
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  virtual ~Machine() = default;

  // Errors: more steps than allowed.
  void charge(std::uint64_t steps = 1);
  // For a text that was made; errors also: longer than a text may be.
  void charge_text(std::size_t bytes);
  [[nodiscard]] Value text(std::string made) {
    charge_text(made.size());
    return Value::of(std::move(made));
  }

  [[nodiscard]] const Limits& limits() const { return m_limits; }
  [[nodiscard]] const Date& date() {
    m_date_used = true;
    return m_date;
  }
  [[nodiscard]] bool date_used() const { return m_date_used; }
  // Namespaces may hold themselves: the machine owns them all.
  [[nodiscard]] Value make_space(Mapping attributes);

  class DepthGuard {
   public:
    explicit DepthGuard(Machine& machine);
    ~DepthGuard() { --m_machine.m_depth; }
    DepthGuard(const DepthGuard&) = delete;
    DepthGuard& operator=(const DepthGuard&) = delete;

   private:
    Machine& m_machine;
  };

 private:
  Limits m_limits;
  Date m_date;
  bool m_date_used = false;
  std::uint64_t m_steps = 0;
  int m_depth = 0;
  std::vector<std::unique_ptr<Space>> m_spaces;
};

// Reads the arguments of a function by position or name.
class Parameters {
 public:
  // Errors: more arguments than names, an unknown name, one given twice.
  Parameters(std::string_view function, const Arguments& arguments,
             std::initializer_list<std::string_view> names);
  [[nodiscard]] const Value* find(std::size_t index) const { return m_values[index]; }
  [[nodiscard]] const Value& require(std::size_t index) const;
  [[nodiscard]] std::int64_t integer(std::size_t index, std::int64_t otherwise) const;
  [[nodiscard]] bool boolean(std::size_t index, bool otherwise) const;
  // Errors: not a text.
  [[nodiscard]] const std::string& text(std::size_t index) const;
  [[nodiscard]] bool given(std::size_t index) const {
    return m_values[index] != nullptr && !m_values[index]->is_none();
  }

 private:
  std::string m_function;
  std::vector<std::string_view> m_names;
  std::vector<const Value*> m_values;
};

// Errors: not an integer.
[[nodiscard]] std::int64_t integer_of(const Value& value, std::string_view what);

using FilterFunction = Value (*)(Machine&, const Value& input, const Arguments&);
using TestFunction = bool (*)(Machine&, const Value& input, const Arguments&);
// Null where there is none of the name.
[[nodiscard]] FilterFunction find_filter(std::string_view name);
[[nodiscard]] TestFunction find_test(std::string_view name);
// Errors: unknown, by name.
[[nodiscard]] FilterFunction require_filter(std::string_view name);
[[nodiscard]] TestFunction require_test(std::string_view name);

// A function of the global scope (range, dict, namespace, …); undefined where there is none.
[[nodiscard]] Value global_function(std::string_view name);

// A callable made of a plain function.
[[nodiscard]] Value make_function(std::string name, Value (*function)(Machine&, const Arguments&));

[[nodiscard]] std::string format_date(const Date& date, std::string_view format);

}  // namespace driftscope::jinja
