// SPDX-License-Identifier: Apache-2.0
// Statements, scopes and macros.
#include "engine/text/jinja/interpreter.h"

#include <fmt/format.h>

#include <algorithm>

namespace driftscope::jinja {

Value* Scope::find(NameId name) {
  for (auto& [known, value] : variables) {
    if (known == name) return &value;
  }
  return nullptr;
}

void Scope::set(NameId name, Value value) {
  if (Value* known = find(name)) {
    *known = std::move(value);
  } else {
    variables.emplace_back(name, std::move(value));
  }
}

namespace {

class Macro final : public Callable {
 public:
  Macro(Interpreter& interpreter, const Statement& statement, Scope& scope, std::string name)
      : m_interpreter(interpreter),
        m_statement(statement),
        m_scope(scope),
        m_name(std::move(name)) {}
  Value call(Machine& /*machine*/, const Arguments& arguments) override {
    return m_interpreter.call_macro(m_statement, m_scope, arguments);
  }
  [[nodiscard]] std::string text() const override { return fmt::format("<Macro '{}'>", m_name); }
  [[nodiscard]] std::optional<Value> attribute(std::string_view name) override {
    if (name == "name") return Value::of(m_name);
    if (name == "catch_kwargs") return Value::of(m_statement.uses_kwargs);
    if (name == "catch_varargs") return Value::of(m_statement.uses_varargs);
    if (name == "caller") return Value::of(m_statement.uses_caller);
    return std::nullopt;
  }

 private:
  Interpreter& m_interpreter;
  const Statement& m_statement;
  Scope& m_scope;
  std::string m_name;
};

}  // namespace

// Enters a new scope and leaves it again, also when a Failure passes.
class Interpreter::ScopeHolder {
 public:
  ScopeHolder(Interpreter& interpreter, Scope& parent)
      : m_interpreter(interpreter),
        m_outer(interpreter.m_scope),
        m_scope(std::make_unique<Scope>()) {
    m_scope->parent = &parent;
    interpreter.m_scope = m_scope.get();
  }
  ~ScopeHolder() {
    m_interpreter.m_scope = m_outer;
    if (m_scope->kept) m_interpreter.m_kept.push_back(std::move(m_scope));
  }
  ScopeHolder(const ScopeHolder&) = delete;
  ScopeHolder& operator=(const ScopeHolder&) = delete;
  // Fresh variables for the next round of a loop.
  void renew() {
    if (!m_scope->kept) {
      m_scope->variables.clear();
      return;
    }
    auto fresh = std::make_unique<Scope>();
    fresh->parent = m_scope->parent;
    m_interpreter.m_kept.push_back(std::move(m_scope));
    m_scope = std::move(fresh);
    m_interpreter.m_scope = m_scope.get();
  }

 private:
  Interpreter& m_interpreter;
  Scope* m_outer;
  std::unique_ptr<Scope> m_scope;
};

// Sends output into a buffer of its own.
class Interpreter::Redirect {
 public:
  explicit Redirect(Interpreter& interpreter)
      : m_interpreter(interpreter), m_outer(interpreter.m_output) {
    interpreter.m_captured += m_outer->size();
    interpreter.m_output = &m_text;
  }
  ~Redirect() {
    m_interpreter.m_output = m_outer;
    m_interpreter.m_captured -= m_outer->size();
  }
  Redirect(const Redirect&) = delete;
  Redirect& operator=(const Redirect&) = delete;
  [[nodiscard]] std::string take() { return std::move(m_text); }

 private:
  Interpreter& m_interpreter;
  std::string* m_outer;
  std::string m_text;
};

Interpreter::Interpreter(const Template::Program& program, const Limits& limits, const Date& date)
    : Machine(limits, date), m_program(program) {
  for (std::size_t i = 0; i < program.names.size(); ++i) {
    m_ids.emplace(program.names[i], static_cast<NameId>(i));
  }
}

std::string Interpreter::run(std::vector<std::pair<std::string, Value>> context) {
  for (std::size_t i = 0; i < m_program.names.size(); ++i) {
    Value known = global_function(m_program.names[i]);
    if (!known.is_undefined()) m_root.set(static_cast<NameId>(i), std::move(known));
  }
  for (auto& [name, value] : context) {
    const auto id = m_ids.find(name);
    if (id != m_ids.end()) m_root.set(id->second, std::move(value));
  }
  static_cast<void>(run_body(m_program.body));
  return std::move(m_text);
}

void Interpreter::write(std::string_view text) {
  charge(1 + text.size() / 32);
  if (m_captured + m_output->size() + text.size() > limits().output_bytes) {
    raise(fmt::format("writes more than {} bytes; give shorter messages or a simpler template",
                      limits().output_bytes));
  }
  *m_output += text;
}

Interpreter::Flow Interpreter::run_body(const Body& body) {
  for (const auto& statement : body) {
    const Flow flow = run_statement(*statement);
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Interpreter::Flow Interpreter::run_statement(const Statement& statement) {
  const DepthGuard guard(*this);
  charge();
  m_line = statement.line;
  switch (statement.kind) {
    case Statement::Kind::data:
      write(statement.text);
      return Flow::normal;
    case Statement::Kind::output:
      write(text_of(evaluate(*statement.expressions[0])));
      return Flow::normal;
    case Statement::Kind::assign:
      assign(*statement.target, evaluate(*statement.expressions[0]));
      return Flow::normal;
    case Statement::Kind::assign_block: {
      Value value = Value::of(captured(statement.body, true));
      const Expression* filter = statement.expressions[0].get();
      assign(*statement.target, filter == nullptr ? value : evaluate_filter(*filter, &value));
      return Flow::normal;
    }
    case Statement::Kind::loop:
      return run_loop(statement);
    case Statement::Kind::condition:
      return run_condition(statement);
    case Statement::Kind::macro:
      m_scope->set(statement.name, make_macro(statement, statement.text));
      return Flow::normal;
    case Statement::Kind::call_block:
      run_call_block(statement);
      return Flow::normal;
    case Statement::Kind::filter_block: {
      const Value value = Value::of(captured(statement.body, true));
      write(text_of(evaluate_filter(*statement.expressions[0], &value)));
      return Flow::normal;
    }
    case Statement::Kind::scope:
      return run_scope(statement);
    case Statement::Kind::break_loop:
      return Flow::break_loop;
    case Statement::Kind::continue_loop:
      return Flow::continue_loop;
  }
  return Flow::normal;
}

std::string Interpreter::captured(const Body& body, bool own_scope) {
  Redirect redirect(*this);
  if (own_scope) {
    const ScopeHolder scope(*this, *m_scope);
    static_cast<void>(run_body(body));
  } else {
    static_cast<void>(run_body(body));
  }
  return redirect.take();
}

void Interpreter::assign(const Expression& target, Value value) {
  if (target.kind == Expression::Kind::name) {
    m_scope->set(target.name, std::move(value));
    return;
  }
  if (target.kind == Expression::Kind::attribute) {
    const Value space = look_up(*target.parts[0]);
    if (!space.is(Value::Kind::space)) {
      raise(fmt::format("cannot set an attribute of {}: it is a {}, not a namespace",
                        target.parts[0]->text, type_name(space)));
    }
    // Through one reading of the depth, so that a namespace holds nothing too deep.
    space.space().attributes.set(Value::of(target.text), std::move(value));
    return;
  }
  if (value.is_none() || value.is_number()) {
    raise(fmt::format("a {} cannot be taken apart into {} names", type_name(value),
                      target.parts.size()));
  }
  List items = iterate(*this, value);
  if (items.size() != target.parts.size()) {
    raise(fmt::format("{} values cannot be taken apart into {} names", items.size(),
                      target.parts.size()));
  }
  for (std::size_t i = 0; i < items.size(); ++i) assign(*target.parts[i], std::move(items[i]));
}

// The items that pass the condition, which sees the target but no `loop`.
List Interpreter::loop_items(const Statement& statement) {
  List items = iterate(*this, evaluate(*statement.expressions[0]));
  if (!statement.expressions[1]) return items;
  List kept;
  ScopeHolder scope(*this, *m_scope);
  for (Value& value : items) {
    charge();
    scope.renew();
    assign(*statement.target, value);
    if (truthy(evaluate(*statement.expressions[1]))) kept.push_back(std::move(value));
  }
  return kept;
}

Interpreter::Flow Interpreter::run_loop(const Statement& statement) {
  if (statement.recursive) raise("recursive loops are not supported; use a macro");
  auto loop = std::make_shared<LoopState>();
  loop->items = make_list(loop_items(statement));
  const bool completed = run_rounds(statement, loop);
  loop->last_changed.reset();  // it may hold the loop itself
  if (completed) return Flow::normal;
  const ScopeHolder scope(*this, *m_scope);
  return run_body(statement.otherwise);
}

bool Interpreter::run_rounds(const Statement& statement, const std::shared_ptr<LoopState>& loop) {
  const auto id = m_ids.find("loop");
  const List& items = loop->items.sequence().items;
  ScopeHolder scope(*this, *m_scope);
  bool completed = false;
  for (loop->index = 0; loop->index < items.size(); ++loop->index) {
    charge();
    scope.renew();
    if (id != m_ids.end()) m_scope->set(id->second, Value::of(loop));
    assign(*statement.target, items[loop->index]);
    const Flow flow = run_body(statement.body);
    if (flow == Flow::break_loop) break;
    completed = completed || flow == Flow::normal;
  }
  return completed;
}

Interpreter::Flow Interpreter::run_condition(const Statement& statement) {
  for (std::size_t i = 0; i < statement.branches.size(); ++i) {
    if (truthy(evaluate(*statement.expressions[i]))) return run_body(statement.branches[i]);
  }
  return run_body(statement.otherwise);
}

Interpreter::Flow Interpreter::run_scope(const Statement& statement) {
  List values;
  for (const auto& expression : statement.expressions) values.push_back(evaluate(*expression));
  const ScopeHolder scope(*this, *m_scope);
  for (std::size_t i = 0; i < values.size(); ++i) {
    assign(*statement.target->parts[i], std::move(values[i]));
  }
  return run_body(statement.body);
}

Value Interpreter::make_macro(const Statement& statement, std::string name) {
  for (Scope* scope = m_scope; scope != nullptr && !scope->kept; scope = scope->parent) {
    scope->kept = true;
  }
  return Value::of(std::shared_ptr<Callable>(
      std::make_shared<Macro>(*this, statement, *m_scope, std::move(name))));
}

void Interpreter::run_call_block(const Statement& statement) {
  const Value caller = make_macro(statement, "caller");
  write(text_of(evaluate_call(*statement.expressions[0], &caller)));
}

Value Interpreter::call_macro(const Statement& macro, Scope& scope, const Arguments& arguments) {
  const DepthGuard guard(*this);
  Redirect redirect(*this);
  const ScopeHolder own(*this, scope);
  bind_parameters(macro, arguments);
  static_cast<void>(run_body(macro.body));
  return Value::of(redirect.take());
}

void Interpreter::bind_parameters(const Statement& macro, const Arguments& arguments) {
  charge(arguments.named.size() * (1 + macro.parameters.size() / 8));
  Mapping unknown;
  for (const auto& [name, value] : arguments.named) unknown.set(Value::of(name), value);
  std::vector<const Value*> given(macro.parameters.size(), nullptr);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const MacroParameter& parameter = macro.parameters[i];
    if (i < arguments.positional.size()) {
      given[i] = &arguments.positional[i];
      continue;
    }
    const auto found =
        std::find_if(arguments.named.begin(), arguments.named.end(),
                     [&](const auto& entry) { return entry.first == parameter.text; });
    if (found == arguments.named.end()) continue;
    given[i] = &found->second;
    std::erase_if(unknown.entries,
                  [&](const auto& entry) { return entry.first.text() == parameter.text; });
  }
  bind_rest(macro, arguments, std::move(unknown));
  for (std::size_t i = 0; i < given.size(); ++i) {
    const MacroParameter& parameter = macro.parameters[i];
    Value value = given[i] != nullptr ? *given[i]
                  : parameter.otherwise
                      ? evaluate(*parameter.otherwise)
                      : Value::undefined(fmt::format("argument \"{}\" of {} was not given",
                                                     parameter.text, macro.text));
    m_scope->set(parameter.name, std::move(value));
  }
}

// varargs, kwargs and caller, for macros that read them.
void Interpreter::bind_rest(const Statement& macro, const Arguments& arguments, Mapping unknown) {
  const auto set = [&](std::string_view name, Value value) {
    if (const auto id = m_ids.find(name); id != m_ids.end()) {
      m_scope->set(id->second, std::move(value));
    }
  };
  if (macro.uses_caller) {
    const Value* caller = unknown.find("caller");
    set("caller", caller != nullptr ? *caller : Value::undefined("no caller: use {% call %}"));
    std::erase_if(unknown.entries,
                  [](const auto& entry) { return entry.first.text() == "caller"; });
  }
  if (macro.uses_kwargs) {
    Mapping rest;
    for (auto& [key, value] : unknown.entries) rest.set(key, value);
    set("kwargs", make_mapping(std::move(rest)));
  } else if (!unknown.entries.empty()) {
    raise(fmt::format("{} has no argument \"{}\"", macro.text,
                      text_of(unknown.entries.front().first)));
  }
  const std::size_t known = macro.parameters.size();
  if (macro.uses_varargs) {
    List rest;
    for (std::size_t i = known; i < arguments.positional.size(); ++i) {
      rest.push_back(arguments.positional[i]);
    }
    set("varargs", make_tuple(std::move(rest)));
  } else if (arguments.positional.size() > known) {
    raise(fmt::format("{} takes at most {} arguments, {} were given", macro.text, known,
                      arguments.positional.size()));
  }
}

Value Interpreter::look_up(const Expression& name) {
  for (Scope* scope = m_scope; scope != nullptr; scope = scope->parent) {
    charge(scope->variables.size() / 16);
    if (const Value* found = scope->find(name.name)) return *found;
  }
  return Value::undefined(fmt::format("\"{}\" is undefined", name.text));
}

}  // namespace driftscope::jinja
