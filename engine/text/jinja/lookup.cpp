// SPDX-License-Identifier: Apache-2.0
// value.name, value[key] and value[from:to:step].
#include <fmt/format.h>

#include <algorithm>

#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/machine.h"
#include "engine/text/jinja/operators.h"

namespace driftscope::jinja {
namespace {

using Kind = Value::Kind;
using Form = Sequence::Form;

Value no_attribute(const Value& value, std::string_view name) {
  return Value::undefined(fmt::format("a {} has no attribute \"{}\"", type_name(value), name));
}

Value no_element(const Value& value, const Value& key) {
  return Value::undefined(fmt::format("a {} has no element {}", type_name(value), repr_of(key)));
}

// loop.cycle and loop.changed.
class LoopFunction final : public Callable {
 public:
  LoopFunction(std::shared_ptr<LoopState> loop, bool changed)
      : m_loop(std::move(loop)), m_changed(changed) {}
  Value call(Machine& machine, const Arguments& arguments) override {
    if (!arguments.named.empty()) raise("loop.cycle and loop.changed take values only");
    return m_changed ? Value::of(changed(machine, arguments.positional))
                     : cycle(arguments.positional);
  }
  [[nodiscard]] std::string text() const override { return "<bound method of the loop>"; }
  [[nodiscard]] int depth() const override { return m_loop->items.depth() + 2; }

 private:
  [[nodiscard]] Value cycle(const List& values) const {
    if (values.empty()) raise("loop.cycle needs at least one value");
    return values[m_loop->index % values.size()];
  }
  bool changed(Machine& machine, const List& values) {
    bool same = m_loop->last_changed && m_loop->last_changed->size() == values.size();
    for (std::size_t i = 0; same && i < values.size(); ++i) {
      same = equal(machine, (*m_loop->last_changed)[i], values[i]);
    }
    if (!same) m_loop->last_changed = values;
    return !same;
  }
  std::shared_ptr<LoopState> m_loop;
  bool m_changed;
};

std::optional<Value> loop_attribute(const std::shared_ptr<LoopState>& loop, std::string_view name) {
  const List& items = loop->items.sequence().items;
  const auto index = static_cast<std::int64_t>(loop->index);
  const auto size = static_cast<std::int64_t>(items.size());
  if (name == "index") return Value::of(index + 1);
  if (name == "index0") return Value::of(index);
  if (name == "revindex") return Value::of(size - index);
  if (name == "revindex0") return Value::of(size - index - 1);
  if (name == "first") return Value::of(index == 0);
  if (name == "last") return Value::of(index + 1 == size);
  if (name == "length") return Value::of(size);
  if (name == "depth")
    return Value::of(std::int64_t{1});  // of recursive loops, which there are none
  if (name == "depth0") return Value::of(std::int64_t{0});
  if (name == "previtem") {
    return index == 0 ? Value::undefined("the first round of a loop has no previous item")
                      : items[loop->index - 1];
  }
  if (name == "nextitem") {
    return index + 1 == size ? Value::undefined("the last round of a loop has no next item")
                             : items[loop->index + 1];
  }
  if (name == "cycle" || name == "changed") {
    return Value::of(
        std::shared_ptr<Callable>(std::make_shared<LoopFunction>(loop, name == "changed")));
  }
  return std::nullopt;
}

// What Python's getattr finds; nullopt: AttributeError.
std::optional<Value> own_attribute(const Value& value, std::string_view name) {
  switch (value.kind()) {
    case Kind::text:
    case Kind::mapping:
    case Kind::sequence:
      return method_of(value, name);
    case Kind::space:
      if (const Value* found = value.space().attributes.find(name)) return *found;
      return std::nullopt;
    case Kind::loop:
      return loop_attribute(value.loop(), name);
    case Kind::integer:
    case Kind::boolean:
      if (name == "real" || name == "numerator") return Value::of(value.integer());
      if (name == "imag") return Value::of(std::int64_t{0});
      if (name == "denominator") return Value::of(std::int64_t{1});
      return std::nullopt;
    case Kind::real:
      if (name == "real") return value;
      if (name == "imag") return Value::of(0.0);
      return std::nullopt;
    case Kind::undefined:
    case Kind::none:
    case Kind::callable:
      return std::nullopt;
  }
  return std::nullopt;
}

// What Python's value[key] finds; nullopt: TypeError or LookupError.
std::optional<Value> own_item(const Value& value, const Value& key) {
  if (value.is(Kind::mapping)) {
    if (key.is(Kind::mapping) || (key.is(Kind::sequence) && key.sequence().form != Form::tuple)) {
      return std::nullopt;
    }
    const Value* found = value.mapping().find(key);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  if (!key.is(Kind::integer) && !key.is(Kind::boolean)) return std::nullopt;
  std::int64_t index = key.integer();
  if (value.is_text()) {
    const std::string& text = value.text();
    const auto offsets = character_offsets(text);
    const auto size = static_cast<std::int64_t>(offsets.size()) - 1;
    if (index < 0) index += size;
    if (index < 0 || index >= size) return std::nullopt;
    const auto at = static_cast<std::size_t>(index);
    return Value::of(text.substr(offsets[at], offsets[at + 1] - offsets[at]));
  }
  if (!value.is(Kind::sequence)) return std::nullopt;
  const Sequence& sequence = value.sequence();
  if (sequence.form != Form::list && sequence.form != Form::tuple && sequence.form != Form::range) {
    return std::nullopt;
  }
  const auto size = static_cast<std::int64_t>(sequence.items.size());
  if (index < 0) index += size;
  if (index < 0 || index >= size) return std::nullopt;
  return sequence.items[static_cast<std::size_t>(index)];
}

struct Bounds {
  std::int64_t start;
  std::int64_t stop;
  std::int64_t step;
  std::size_t count;
};

std::int64_t clamped(std::int64_t index, std::int64_t size, std::int64_t step) {
  if (index < 0) index = index < -size ? -1 : index + size;
  if (index < 0) return step < 0 ? -1 : 0;
  if (index >= size) return step < 0 ? size - 1 : size;
  return index;
}

// As PySlice_AdjustIndices.
Bounds bounds_of(const Value& start, const Value& stop, const Value& step, std::int64_t size) {
  const std::int64_t stride = step.is_none() ? 1 : integer_of(step, "the step of a slice");
  if (stride == 0) raise("the step of a slice is 0; give another");
  const std::int64_t from = start.is_none()
                                ? (stride < 0 ? size - 1 : 0)
                                : clamped(integer_of(start, "a bound of a slice"), size, stride);
  const std::int64_t to = stop.is_none()
                              ? (stride < 0 ? -1 : size)
                              : clamped(integer_of(stop, "a bound of a slice"), size, stride);
  std::uint64_t count = 0;
  if (stride < 0 && to < from) {
    count =
        static_cast<std::uint64_t>(from - to - 1) / (0 - static_cast<std::uint64_t>(stride)) + 1;
  } else if (stride > 0 && from < to) {
    count = static_cast<std::uint64_t>(to - from - 1) / static_cast<std::uint64_t>(stride) + 1;
  }
  return {from, to, stride, static_cast<std::size_t>(count)};
}

Value range_slice(const Sequence& range, const Bounds& bounds) {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t stride = 0;
  const bool too_large = __builtin_mul_overflow(bounds.start, range.step, &first) ||
                         __builtin_add_overflow(first, range.start, &first) ||
                         __builtin_mul_overflow(bounds.stop, range.step, &last) ||
                         __builtin_add_overflow(last, range.start, &last) ||
                         __builtin_mul_overflow(bounds.step, range.step, &stride);
  if (too_large) raise("the slice of a range is out of range");
  return make_range(first, last, stride);
}

}  // namespace

Value attribute(Machine& /*machine*/, const Value& value, std::string_view name) {
  if (value.is_undefined()) raise(value.why_undefined());
  if (value.is(Kind::callable)) {
    return value.callable().attribute(name).value_or(no_attribute(value, name));
  }
  if (auto found = own_attribute(value, name)) return *found;
  if (value.is(Kind::mapping)) {
    if (const Value* found = value.mapping().find(name)) return *found;
  }
  return no_attribute(value, name);
}

Value item(Machine& machine, const Value& value, const Value& key) {
  if (value.is_undefined()) raise(value.why_undefined());
  machine.charge(value.is_text() ? 1 + value.text().size() / 32 : 1);
  if (auto found = own_item(value, key)) return *found;
  if (key.is_text()) {
    if (value.is(Kind::callable)) return attribute(machine, value, key.text());
    if (auto found = own_attribute(value, key.text())) return *found;
    return no_attribute(value, key.text());
  }
  return no_element(value, key);
}

Value slice(Machine& machine, const Value& value, const Value& start, const Value& stop,
            const Value& step) {
  if (value.is_undefined()) raise(value.why_undefined());
  if (value.is_text()) {
    const auto offsets = character_offsets(value.text());
    const Bounds bounds =
        bounds_of(start, stop, step, static_cast<std::int64_t>(offsets.size()) - 1);
    machine.charge(1 + value.text().size() / 32 + bounds.count / 8);
    std::string text;
    std::int64_t at = bounds.start;
    for (std::size_t i = 0; i < bounds.count; ++i) {
      const auto index = static_cast<std::size_t>(at);
      text.append(value.text(), offsets[index], offsets[index + 1] - offsets[index]);
      if (i + 1 < bounds.count) at += bounds.step;
    }
    return Value::of(std::move(text));
  }
  const bool can = value.is(Kind::sequence) &&
                   (value.sequence().form == Form::list || value.sequence().form == Form::tuple ||
                    value.sequence().form == Form::range);
  if (!can) raise(fmt::format("a {} cannot be sliced", type_name(value)));
  const Sequence& sequence = value.sequence();
  const Bounds bounds =
      bounds_of(start, stop, step, static_cast<std::int64_t>(sequence.items.size()));
  machine.charge(1 + bounds.count);
  List items;
  std::int64_t at = bounds.start;
  for (std::size_t i = 0; i < bounds.count; ++i) {
    items.push_back(sequence.items[static_cast<std::size_t>(at)]);
    if (i + 1 < bounds.count) at += bounds.step;
  }
  if (sequence.form == Form::range) {
    return range_slice(sequence, bounds);
  }
  return make_sequence(sequence.form, std::move(items));
}

Value make_range(std::int64_t start, std::int64_t stop, std::int64_t step) {
  constexpr std::uint64_t kLongest = 100000;  // as in the sandbox
  if (step == 0) raise("range: the step is 0; give another");
  std::uint64_t count = 0;
  if (step > 0 && start < stop) {
    count = (static_cast<std::uint64_t>(stop) - static_cast<std::uint64_t>(start) - 1) /
                static_cast<std::uint64_t>(step) +
            1;
  } else if (step < 0 && start > stop) {
    count = (static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(stop) - 1) /
                (0 - static_cast<std::uint64_t>(step)) +
            1;
  }
  if (count > kLongest) raise(fmt::format("range: more than {} numbers", kLongest));
  auto made = std::make_shared<Sequence>();
  made->form = Form::range;
  made->start = start;
  made->stop = stop;
  made->step = step;
  for (std::uint64_t i = 0; i < count; ++i) {
    made->items.push_back(Value::of(start + static_cast<std::int64_t>(i) * step));
  }
  return Value::of(std::shared_ptr<const Sequence>(std::move(made)));
}

}  // namespace driftscope::jinja
