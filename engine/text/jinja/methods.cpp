// SPDX-License-Identifier: Apache-2.0
// Finding methods, and those of lists and mappings.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/text/jinja/machine.h"
#include "engine/text/jinja/method_table.h"
#include "engine/text/jinja/operators.h"

namespace driftscope::jinja {
namespace {

using Kind = Value::Kind;
using Form = Sequence::Form;

class BoundMethod final : public Callable {
 public:
  BoundMethod(Value self, const Method& method) : m_self(std::move(self)), m_method(method) {}
  Value call(Machine& machine, const Arguments& arguments) override {
    machine.charge(1 + (m_self.is_text() ? m_self.text().size() / 32 : 0));
    return m_method.function(machine, m_self, arguments);
  }
  [[nodiscard]] std::string text() const override {
    return fmt::format("<built-in method {} of {} object>", m_method.name, type_name(m_self));
  }
  [[nodiscard]] int depth() const override { return m_self.depth() + 1; }

 private:
  Value m_self;
  const Method& m_method;
};

Value list_index(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters parameters("index", arguments, {"value", "start", "stop"});
  const List& items = self.sequence().items;
  const auto size = static_cast<std::int64_t>(items.size());
  const auto clamp = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size);
  };
  const std::int64_t stop = clamp(parameters.integer(2, size));
  for (std::int64_t i = clamp(parameters.integer(1, 0)); i < stop; ++i) {
    if (equal(machine, items[static_cast<std::size_t>(i)], parameters.require(0))) {
      return Value::of(i);
    }
  }
  raise(fmt::format("index: the value is not in the {}", type_name(self)));
}

Value list_count(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters parameters("count", arguments, {"value"});
  const List& items = self.sequence().items;
  return Value::of(
      static_cast<std::int64_t>(std::count_if(items.begin(), items.end(), [&](const Value& entry) {
        return equal(machine, entry, parameters.require(0));
      })));
}

Value copy(Machine& /*machine*/, const Value& self, const Arguments& arguments) {
  const Parameters parameters("copy", arguments, {});
  return self;  // nothing can tell a copy of what never changes
}

Value mapping_get(Machine& /*machine*/, const Value& self, const Arguments& arguments) {
  const Parameters parameters("get", arguments, {"key", "default"});
  const Value* found = self.mapping().find(parameters.require(0));
  if (found != nullptr) return *found;
  return parameters.find(1) != nullptr ? *parameters.find(1) : Value();
}

Value mapping_items(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters parameters("items", arguments, {});
  machine.charge(self.mapping().entries.size());
  List items;
  for (const auto& [key, value] : self.mapping().entries) items.push_back(make_tuple({key, value}));
  return make_sequence(Form::items, std::move(items));
}

Value mapping_keys(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters parameters("keys", arguments, {});
  return make_sequence(Form::keys, iterate(machine, self));
}

Value mapping_values(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters parameters("values", arguments, {});
  machine.charge(self.mapping().entries.size());
  List items;
  for (const auto& [key, value] : self.mapping().entries) items.push_back(value);
  return make_sequence(Form::values, std::move(items));
}

constexpr std::array kListMethods{Method{"index", &list_index}, Method{"count", &list_count},
                                  Method{"copy", &copy}};
constexpr std::array kMappingMethods{Method{"get", &mapping_get}, Method{"items", &mapping_items},
                                     Method{"keys", &mapping_keys},
                                     Method{"values", &mapping_values}, Method{"copy", &copy}};

const Method* find_method(std::span<const Method> methods, std::string_view name) {
  const auto found = std::find_if(methods.begin(), methods.end(),
                                  [&](const Method& method) { return method.name == name; });
  return found == methods.end() ? nullptr : &*found;
}

}  // namespace

std::span<const Method> list_methods() { return kListMethods; }
std::span<const Method> mapping_methods() { return kMappingMethods; }

std::optional<Value> method_of(const Value& self, std::string_view name) {
  const Method* found = nullptr;
  if (self.is_text()) {
    found = find_method(text_methods(), name);
    if (found == nullptr) found = find_method(text_question_methods(), name);
  } else if (self.is(Kind::mapping)) {
    found = find_method(mapping_methods(), name);
  } else if (self.is(Kind::sequence)) {
    const Form form = self.sequence().form;
    const bool has =
        form == Form::list || ((form == Form::tuple || form == Form::range) && name != "copy");
    if (has) found = find_method(list_methods(), name);
  }
  if (found == nullptr) return std::nullopt;
  return Value::of(std::shared_ptr<Callable>(std::make_shared<BoundMethod>(self, *found)));
}

}  // namespace driftscope::jinja
