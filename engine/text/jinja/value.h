// SPDX-License-Identifier: Apache-2.0
// Values of templates, with Python's meaning of them. Lists and mappings never change once made, as
// in the sandbox that published templates are written for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace driftscope::jinja {

struct Sequence;
struct Mapping;
struct Space;
struct LoopState;
class Callable;

using SharedText = std::shared_ptr<const std::string>;

// Containers inside containers, at most: so no template can make a value that is too deep to walk.
inline constexpr int kMaxValueDepth = 200;
// Of one string.
inline constexpr std::size_t kMaxTextBytes = std::size_t{16} << 20U;

class Value {
 public:
  enum class Kind : std::uint8_t {
    undefined,
    none,
    boolean,
    integer,
    real,
    text,
    sequence,
    mapping,
    space,
    callable,
    loop
  };

  Value() : m_value(std::in_place_index<1>) {}  // None
  static Value undefined(std::string why);      // what is missing, for the message
  static Value of(bool value);
  static Value of(std::int64_t value);
  static Value of(double value);
  static Value of(std::string value);
  static Value of(std::string_view value) { return of(std::string(value)); }
  static Value of(const char* value) { return of(std::string(value)); }
  static Value of(std::shared_ptr<const Sequence> value);
  static Value of(std::shared_ptr<const Mapping> value);
  static Value of(Space* value);  // owned by the interpreter
  static Value of(std::shared_ptr<Callable> value);
  static Value of(std::shared_ptr<LoopState> value);

  [[nodiscard]] Kind kind() const { return static_cast<Kind>(m_value.index()); }
  [[nodiscard]] bool is(Kind kind_asked) const { return kind() == kind_asked; }
  [[nodiscard]] bool is_undefined() const { return is(Kind::undefined); }
  [[nodiscard]] bool is_none() const { return is(Kind::none); }
  [[nodiscard]] bool is_text() const { return is(Kind::text); }
  [[nodiscard]] bool is_number() const;  // boolean, integer or real

  // Each asserts its kind.
  [[nodiscard]] const std::string& why_undefined() const { return *std::get<0>(m_value).why; }
  [[nodiscard]] bool boolean() const { return std::get<2>(m_value); }
  [[nodiscard]] std::int64_t integer() const;  // also of a boolean
  [[nodiscard]] double real() const;           // of any number
  [[nodiscard]] const std::string& text() const { return *std::get<5>(m_value); }
  [[nodiscard]] const Sequence& sequence() const { return *std::get<6>(m_value); }
  [[nodiscard]] const Mapping& mapping() const { return *std::get<7>(m_value); }
  [[nodiscard]] Space& space() const { return *std::get<8>(m_value); }
  [[nodiscard]] Callable& callable() const { return *std::get<9>(m_value); }
  [[nodiscard]] const std::shared_ptr<LoopState>& loop() const { return std::get<10>(m_value); }

  [[nodiscard]] int depth() const;  // of containers
  [[nodiscard]] const void* identity() const;

 private:
  struct Undefined {
    SharedText why;
  };
  std::variant<Undefined, std::monostate, bool, std::int64_t, double, SharedText,
               std::shared_ptr<const Sequence>, std::shared_ptr<const Mapping>, Space*,
               std::shared_ptr<Callable>, std::shared_ptr<LoopState>>
      m_value;
};

using List = std::vector<Value>;

struct Sequence {
  enum class Form : std::uint8_t { list, tuple, range, keys, values, items, iterator };
  Form form = Form::list;
  List items;
  int depth = 1;
  std::int64_t start = 0, stop = 0, step = 1;  // of a range
  mutable std::size_t taken = 0;               // of an iterator: it is read once
};
// Errors: nested too deeply.
[[nodiscard]] Value make_sequence(Sequence::Form form, List items);
[[nodiscard]] inline Value make_list(List items) {
  return make_sequence(Sequence::Form::list, std::move(items));
}
[[nodiscard]] inline Value make_tuple(List items) {
  return make_sequence(Sequence::Form::tuple, std::move(items));
}

// In order of insertion.
struct Mapping {
  std::vector<std::pair<Value, Value>> entries;
  int depth = 1;
  // Errors: a key that cannot be one (a list, a mapping), nested too deeply.
  void set(const Value& key, Value value);
  [[nodiscard]] const Value* find(const Value& key) const;
  [[nodiscard]] const Value* find(std::string_view key) const;

 private:
  void build_index();
  // Both give entries.size() where there is none.
  [[nodiscard]] std::size_t position(const Value& key) const;
  [[nodiscard]] std::size_t position(std::string_view key) const;
  static constexpr std::size_t kIndexFrom = 9;  // entries
  std::unordered_map<std::string, std::size_t> m_index;
};
[[nodiscard]] Value make_mapping(Mapping mapping);

// What namespace() gives: the one thing that may be written to.
struct Space {
  Mapping attributes;
};

struct LoopState {
  Value items;  // a sequence
  std::size_t index = 0;
  std::optional<List> last_changed = {};  // of loop.changed()
};

struct Arguments {
  List positional;
  std::vector<std::pair<std::string, Value>> named;
};

class Machine;

class Callable : public std::enable_shared_from_this<Callable> {
 public:
  Callable() = default;
  Callable(const Callable&) = delete;
  Callable& operator=(const Callable&) = delete;
  virtual ~Callable() = default;
  [[nodiscard]] virtual Value call(Machine& machine, const Arguments& arguments) = 0;
  [[nodiscard]] virtual std::string text() const = 0;  // as Python would print it, about
  [[nodiscard]] virtual int depth() const { return 1; }
  [[nodiscard]] virtual bool can_be_called() const { return true; }
  // An attribute besides calling; nullopt: none of the name.
  [[nodiscard]] virtual std::optional<Value> attribute(std::string_view name);
};

// What went wrong in a template. It unwinds the interpreter and becomes an Error at its boundary:
// an expression has a dozen places that can fail, and no caller in between could do anything about
// it.
struct Failure {
  std::string message;
  int line = 0;          // 0: where the interpreter is
  bool refused = false;  // by raise_exception
};
[[noreturn]] void raise(std::string message);

// Python's type names and values, for messages.
[[nodiscard]] std::string_view type_name(const Value& value);
[[nodiscard]] bool truthy(const Value& value);
[[nodiscard]] std::string text_of(const Value& value);  // str()
[[nodiscard]] std::string repr_of(const Value& value);  // repr()
[[nodiscard]] std::string real_text(double value);      // repr() of a float

// A key as text that is equal for equal keys. Errors: unhashable.
[[nodiscard]] std::string key_code(const Value& key);

}  // namespace driftscope::jinja
