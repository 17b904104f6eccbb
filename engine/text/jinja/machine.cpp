// SPDX-License-Identifier: Apache-2.0
#include "engine/text/jinja/machine.h"

#include <fmt/format.h>

#include <algorithm>

namespace driftscope::jinja {

void Machine::charge(std::uint64_t steps) {
  m_steps += steps;
  if (m_steps > m_limits.steps) {
    raise(fmt::format("takes more than {} steps; it may never end, so give a simpler template",
                      m_limits.steps));
  }
}

void Machine::charge_text(std::size_t bytes) {
  if (bytes > kMaxTextBytes) {
    raise(fmt::format("makes a text of more than {} MiB; give shorter messages",
                      kMaxTextBytes >> 20U));
  }
  charge(1 + bytes / 32);
}

Value Machine::make_space(Mapping attributes) {
  m_spaces.push_back(std::make_unique<Space>(Space{std::move(attributes)}));
  return Value::of(m_spaces.back().get());
}

Machine::DepthGuard::DepthGuard(Machine& machine) : m_machine(machine) {
  if (machine.m_depth >= machine.m_limits.depth) {
    raise(fmt::format("is nested more than {} deep; a macro may call itself without end",
                      machine.m_limits.depth));
  }
  ++machine.m_depth;
}

Parameters::Parameters(std::string_view function, const Arguments& arguments,
                       std::initializer_list<std::string_view> names)
    : m_function(function), m_names(names), m_values(names.size(), nullptr) {
  if (arguments.positional.size() > names.size()) {
    raise(fmt::format("{} takes at most {} arguments, {} were given", function, names.size(),
                      arguments.positional.size()));
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    m_values[i] = &arguments.positional[i];
  }
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find(m_names.begin(), m_names.end(), name);
    if (found == m_names.end()) raise(fmt::format("{} has no argument \"{}\"", function, name));
    const auto index = static_cast<std::size_t>(found - m_names.begin());
    if (m_values[index] != nullptr) {
      raise(fmt::format("{}: argument \"{}\" is given twice", function, name));
    }
    m_values[index] = &value;
  }
}

const Value& Parameters::require(std::size_t index) const {
  if (m_values[index] == nullptr) {
    raise(fmt::format("{}: argument \"{}\" is missing", m_function, m_names[index]));
  }
  return *m_values[index];
}

std::int64_t integer_of(const Value& value, std::string_view what) {
  if (value.is(Value::Kind::integer) || value.is(Value::Kind::boolean)) return value.integer();
  if (value.is_undefined()) raise(value.why_undefined());
  raise(fmt::format("{} is a {}; an integer is needed", what, type_name(value)));
}

std::int64_t Parameters::integer(std::size_t index, std::int64_t otherwise) const {
  if (m_values[index] == nullptr) return otherwise;
  return integer_of(*m_values[index], fmt::format("{}: {}", m_function, m_names[index]));
}

bool Parameters::boolean(std::size_t index, bool otherwise) const {
  return m_values[index] == nullptr ? otherwise : truthy(*m_values[index]);
}

const std::string& Parameters::text(std::size_t index) const {
  const Value& value = require(index);
  if (value.is_undefined()) raise(value.why_undefined());
  if (!value.is_text()) {
    raise(fmt::format("{}: {} is a {}; a text is needed", m_function, m_names[index],
                      type_name(value)));
  }
  return value.text();
}

}  // namespace driftscope::jinja
