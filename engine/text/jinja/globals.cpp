// SPDX-License-Identifier: Apache-2.0
// Functions that every template sees.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/text/jinja/machine.h"
#include "engine/text/jinja/operators.h"

namespace driftscope::jinja {
namespace {

class Function final : public Callable {
 public:
  Function(std::string name, Value (*function)(Machine&, const Arguments&))
      : m_name(std::move(name)), m_function(function) {}
  Value call(Machine& machine, const Arguments& arguments) override {
    return m_function(machine, arguments);
  }
  [[nodiscard]] std::string text() const override { return fmt::format("<function {}>", m_name); }

 private:
  std::string m_name;
  Value (*m_function)(Machine&, const Arguments&);
};

// Nothing at first, then its separator.
class Joiner final : public Callable {
 public:
  explicit Joiner(Value separator) : m_separator(std::move(separator)) {}
  Value call(Machine& /*machine*/, const Arguments& arguments) override {
    const Parameters parameters("joiner", arguments, {});
    return std::exchange(m_used, true) ? m_separator : Value::of("");
  }
  [[nodiscard]] std::string text() const override { return "<joiner>"; }
  [[nodiscard]] int depth() const override { return m_separator.depth() + 1; }

 private:
  Value m_separator;
  bool m_used = false;
};

// Its values in turn.
class Cycler final : public Callable {
 public:
  explicit Cycler(List values) : m_values(make_tuple(std::move(values))) {}
  Value call(Machine& /*machine*/, const Arguments& /*arguments*/) override {
    raise("a cycler is asked with .next()");
  }
  [[nodiscard]] std::string text() const override { return "<cycler>"; }
  [[nodiscard]] int depth() const override { return m_values.depth() + 1; }
  [[nodiscard]] bool can_be_called() const override { return false; }
  [[nodiscard]] std::optional<Value> attribute(std::string_view name) override;
  [[nodiscard]] const Value& current() const { return m_values.sequence().items[m_position]; }
  void advance() { m_position = (m_position + 1) % m_values.sequence().items.size(); }
  void reset() { m_position = 0; }

 private:
  Value m_values;
  std::size_t m_position = 0;
};

class CyclerStep final : public Callable {
 public:
  CyclerStep(std::shared_ptr<Callable> cycler, bool resets)
      : m_cycler(std::move(cycler)), m_resets(resets) {}
  Value call(Machine& /*machine*/, const Arguments& arguments) override {
    const Parameters parameters("a cycler", arguments, {});
    auto& cycler = static_cast<Cycler&>(*m_cycler);
    Value value;
    if (m_resets) {
      cycler.reset();
    } else {
      value = cycler.current();
      cycler.advance();
    }
    return value;
  }
  [[nodiscard]] std::string text() const override { return "<bound method of a cycler>"; }
  [[nodiscard]] int depth() const override { return m_cycler->depth() + 1; }

 private:
  std::shared_ptr<Callable> m_cycler;
  bool m_resets;
};

std::optional<Value> Cycler::attribute(std::string_view name) {
  if (name == "current") return current();
  if (name != "next" && name != "reset") return std::nullopt;
  return Value::of(
      std::shared_ptr<Callable>(std::make_shared<CyclerStep>(shared_from_this(), name == "reset")));
}

Value range(Machine& machine, const Arguments& arguments) {
  const Parameters parameters("range", arguments, {"start", "stop", "step"});
  if (!arguments.named.empty()) raise("range takes no named arguments");
  if (arguments.positional.empty()) raise("range needs 1 to 3 integers");
  for (const Value& value : arguments.positional) {
    static_cast<void>(integer_of(value, "an argument of range"));
  }
  const bool one = arguments.positional.size() == 1;
  Value made = make_range(one ? 0 : parameters.integer(0, 0), parameters.integer(one ? 0 : 1, 0),
                          parameters.integer(2, 1));
  machine.charge(made.sequence().items.size());
  return made;
}

// dict(mapping), dict(pairs), dict(name=value).
Mapping mapping_of(Machine& machine, std::string_view function, const Arguments& arguments) {
  if (arguments.positional.size() > 1) raise(fmt::format("{} takes one mapping at most", function));
  Mapping mapping;
  if (!arguments.positional.empty()) {
    const Value& given = arguments.positional.front();
    if (given.is(Value::Kind::mapping)) {
      mapping = given.mapping();
      machine.charge(mapping.entries.size());
    } else {
      for (const Value& pair : iterate(machine, given)) {
        const List parts = iterate(machine, pair);
        if (parts.size() != 2) raise(fmt::format("{} needs pairs of a key and a value", function));
        mapping.set(parts[0], parts[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.named) mapping.set(Value::of(name), value);
  return mapping;
}

Value dict(Machine& machine, const Arguments& arguments) {
  return make_mapping(mapping_of(machine, "dict", arguments));
}

Value make_namespace(Machine& machine, const Arguments& arguments) {
  return machine.make_space(mapping_of(machine, "namespace", arguments));
}

Value make_joiner(Machine& /*machine*/, const Arguments& arguments) {
  const Parameters parameters("joiner", arguments, {"sep"});
  const Value separator = parameters.find(0) != nullptr ? *parameters.find(0) : Value::of(", ");
  return Value::of(std::shared_ptr<Callable>(std::make_shared<Joiner>(separator)));
}

Value make_cycler(Machine& /*machine*/, const Arguments& arguments) {
  if (arguments.positional.empty() || !arguments.named.empty()) {
    raise("cycler needs at least one value");
  }
  return Value::of(std::shared_ptr<Callable>(std::make_shared<Cycler>(arguments.positional)));
}

Value raise_exception(Machine& /*machine*/, const Arguments& arguments) {
  const Parameters parameters("raise_exception", arguments, {"message"});
  throw Failure{.message = text_of(parameters.require(0)), .line = 0, .refused = true};
}

Value strftime_now(Machine& machine, const Arguments& arguments) {
  const Parameters parameters("strftime_now", arguments, {"format"});
  return machine.text(format_date(machine.date(), parameters.text(0)));
}

struct GlobalRow {
  std::string_view name;
  Value (*function)(Machine&, const Arguments&);
};
constexpr std::array kGlobals{GlobalRow{"range", &range},
                              GlobalRow{"dict", &dict},
                              GlobalRow{"namespace", &make_namespace},
                              GlobalRow{"joiner", &make_joiner},
                              GlobalRow{"cycler", &make_cycler},
                              GlobalRow{"raise_exception", &raise_exception},
                              GlobalRow{"strftime_now", &strftime_now}};

}  // namespace

Value make_function(std::string name, Value (*function)(Machine&, const Arguments&)) {
  return Value::of(
      std::shared_ptr<Callable>(std::make_shared<Function>(std::move(name), function)));
}

Value global_function(std::string_view name) {
  const auto* found = std::find_if(kGlobals.begin(), kGlobals.end(),
                                   [&](const GlobalRow& row) { return row.name == name; });
  if (found == kGlobals.end()) return Value::undefined(fmt::format("\"{}\" is undefined", name));
  return make_function(std::string(name), found->function);
}

}  // namespace driftscope::jinja
