// SPDX-License-Identifier: Apache-2.0
#include "engine/text/jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace driftscope::jinja {

void raise(std::string message) { throw Failure{.message = std::move(message)}; }

Value Value::undefined(std::string why) {
  Value value;
  value.m_value.emplace<0>(Undefined{std::make_shared<const std::string>(std::move(why))});
  return value;
}
Value Value::of(bool value) {
  Value made;
  made.m_value.emplace<2>(value);
  return made;
}
Value Value::of(std::int64_t value) {
  Value made;
  made.m_value.emplace<3>(value);
  return made;
}
Value Value::of(double value) {
  Value made;
  made.m_value.emplace<4>(value);
  return made;
}
Value Value::of(std::string value) {
  Value made;
  made.m_value.emplace<5>(std::make_shared<const std::string>(std::move(value)));
  return made;
}
Value Value::of(std::shared_ptr<const Sequence> value) {
  Value made;
  made.m_value.emplace<6>(std::move(value));
  return made;
}
Value Value::of(std::shared_ptr<const Mapping> value) {
  Value made;
  made.m_value.emplace<7>(std::move(value));
  return made;
}
Value Value::of(Space* value) {
  Value made;
  made.m_value.emplace<8>(value);
  return made;
}
Value Value::of(std::shared_ptr<Callable> value) {
  Value made;
  made.m_value.emplace<9>(std::move(value));
  return made;
}
Value Value::of(std::shared_ptr<LoopState> value) {
  Value made;
  made.m_value.emplace<10>(std::move(value));
  return made;
}

bool Value::is_number() const { return is(Kind::boolean) || is(Kind::integer) || is(Kind::real); }

std::int64_t Value::integer() const {
  if (is(Kind::boolean)) return boolean() ? 1 : 0;
  return std::get<3>(m_value);
}

double Value::real() const {
  if (is(Kind::real)) return std::get<4>(m_value);
  return static_cast<double>(integer());
}

int Value::depth() const {
  switch (kind()) {
    case Kind::sequence:
      return sequence().depth;
    case Kind::mapping:
      return mapping().depth;
    case Kind::callable:
      return callable().depth();
    case Kind::loop:
      return loop()->items.depth() + 1;
    case Kind::undefined:
    case Kind::none:
    case Kind::boolean:
    case Kind::integer:
    case Kind::real:
    case Kind::text:
    case Kind::space:
      return 0;
  }
  return 0;
}

const void* Value::identity() const {
  switch (kind()) {
    case Kind::sequence:
      return &sequence();
    case Kind::mapping:
      return &mapping();
    case Kind::space:
      return &space();
    case Kind::callable:
      return &callable();
    case Kind::loop:
      return loop().get();
    case Kind::undefined:
    case Kind::none:
    case Kind::boolean:
    case Kind::integer:
    case Kind::real:
    case Kind::text:
      return nullptr;
  }
  return nullptr;
}

namespace {

int deeper(int depth, const Value& inside) {
  depth = std::max(depth, inside.depth() + 1);
  if (depth > kMaxValueDepth) {
    raise(fmt::format("a value is nested more than {} deep; make it flatter", kMaxValueDepth));
  }
  return depth;
}

}  // namespace

Value make_sequence(Sequence::Form form, List items) {
  auto made = std::make_shared<Sequence>();
  for (const Value& item : items) made->depth = deeper(made->depth, item);
  made->form = form;
  made->items = std::move(items);
  return Value::of(std::shared_ptr<const Sequence>(std::move(made)));
}

Value make_mapping(Mapping mapping) {
  return Value::of(std::make_shared<const Mapping>(std::move(mapping)));
}

void Mapping::build_index() {
  for (std::size_t i = 0; i < entries.size(); ++i) m_index.emplace(key_code(entries[i].first), i);
}

std::size_t Mapping::position(const Value& key) const {
  if (m_index.empty()) {
    if (key.is_text()) return position(std::string_view(key.text()));
    const std::string code = key_code(key);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!entries[i].first.is_text() && key_code(entries[i].first) == code) return i;
    }
    return entries.size();
  }
  const auto found = m_index.find(key_code(key));
  return found == m_index.end() ? entries.size() : found->second;
}

std::size_t Mapping::position(std::string_view key) const {
  if (!m_index.empty()) {
    const auto found = m_index.find(key_code(Value::of(key)));
    return found == m_index.end() ? entries.size() : found->second;
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].first.is_text() && entries[i].first.text() == key) return i;
  }
  return entries.size();
}

void Mapping::set(const Value& key, Value value) {
  depth = deeper(deeper(depth, value), key);
  if (const std::size_t known = position(key); known != entries.size()) {
    entries[known].second = std::move(value);
    return;
  }
  entries.emplace_back(key, std::move(value));
  if (entries.size() == kIndexFrom) build_index();
  if (entries.size() > kIndexFrom) m_index.emplace(key_code(key), entries.size() - 1);
}

const Value* Mapping::find(const Value& key) const {
  const std::size_t found = position(key);
  return found == entries.size() ? nullptr : &entries[found].second;
}

const Value* Mapping::find(std::string_view key) const {
  const std::size_t found = position(key);
  return found == entries.size() ? nullptr : &entries[found].second;
}

std::optional<Value> Callable::attribute(std::string_view /*name*/) { return std::nullopt; }

std::string key_code(const Value& key) {
  switch (key.kind()) {
    case Value::Kind::none:
      return "n";
    case Value::Kind::boolean:
    case Value::Kind::integer:
      return fmt::format("i{}", key.integer());
    case Value::Kind::real: {
      const double real = key.real();
      if (real == std::floor(real) && std::abs(real) < 0x1p63) {
        return fmt::format("i{}", static_cast<std::int64_t>(real));
      }
      return fmt::format("r{}", real);
    }
    case Value::Kind::text:
      return "t" + key.text();
    case Value::Kind::sequence: {
      if (key.sequence().form != Sequence::Form::tuple) break;
      std::string code = "(";
      for (const Value& item : key.sequence().items) {
        const std::string part = key_code(item);
        code += fmt::format("{}:{}", part.size(), part);
      }
      return code;
    }
    case Value::Kind::undefined:
      return "u";
    case Value::Kind::space:
    case Value::Kind::callable:
    case Value::Kind::loop:
      return fmt::format("p{}", key.identity());
    case Value::Kind::mapping:
      break;
  }
  raise(fmt::format("a {} cannot be a key of a mapping", type_name(key)));
}

}  // namespace driftscope::jinja
