// SPDX-License-Identifier: Apache-2.0
// Walks the syntax tree of a template and writes its text.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/text/jinja/syntax.h"

namespace driftscope::jinja {

// The variables of one block. Macros keep the scope in which they were made.
struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<NameId, Value>> variables;
  bool kept = false;  // a macro refers to it, so it must live as long as the interpreter
  [[nodiscard]] Value* find(NameId name);
  void set(NameId name, Value value);
};

class Interpreter final : public Machine {
 public:
  Interpreter(const Template::Program& program, const Limits& limits, const Date& date);
  // `names` holds the context. Errors (Failure).
  [[nodiscard]] std::string run(std::vector<std::pair<std::string, Value>> context);
  [[nodiscard]] int line() const { return m_line; }

  // A macro (or the body of a call block) with its arguments, in the scope that it was made in.
  [[nodiscard]] Value call_macro(const Statement& macro, Scope& scope, const Arguments& arguments);

 private:
  enum class Flow : std::uint8_t { normal, break_loop, continue_loop };
  class ScopeHolder;
  class Redirect;

  // Statements (interpreter.cpp).
  Flow run_body(const Body& body);
  Flow run_statement(const Statement& statement);
  Flow run_loop(const Statement& statement);
  // Whether a round came to its end: the else of a loop runs where none did.
  bool run_rounds(const Statement& statement, const std::shared_ptr<LoopState>& loop);
  [[nodiscard]] List loop_items(const Statement& statement);
  Flow run_condition(const Statement& statement);
  void run_call_block(const Statement& statement);
  Flow run_scope(const Statement& statement);
  [[nodiscard]] std::string captured(const Body& body, bool own_scope);
  void assign(const Expression& target, Value value);
  [[nodiscard]] Value make_macro(const Statement& statement, std::string name);
  void bind_parameters(const Statement& macro, const Arguments& arguments);
  void bind_rest(const Statement& macro, const Arguments& arguments, Mapping unknown);
  void write(std::string_view text);
  [[nodiscard]] Value look_up(const Expression& name);

  // Expressions (interpreter_expressions.cpp).
  [[nodiscard]] Value evaluate(const Expression& expression);
  [[nodiscard]] Value evaluate_parts(const Expression& expression);
  [[nodiscard]] Value evaluate_mapping(const Expression& expression);
  [[nodiscard]] Value evaluate_item(const Expression& expression);
  [[nodiscard]] Value evaluate_slice(const Expression& expression);
  [[nodiscard]] Value evaluate_call(const Expression& expression, const Value* caller = nullptr);
  [[nodiscard]] Value evaluate_filter(const Expression& expression, const Value* input);
  [[nodiscard]] bool evaluate_test(const Expression& expression);
  [[nodiscard]] Value evaluate_arithmetic(const Expression& expression);
  [[nodiscard]] bool evaluate_comparison(const Expression& expression);
  [[nodiscard]] Value evaluate_chain(const Expression& expression, bool stops_at);
  [[nodiscard]] Value evaluate_concatenation(const Expression& expression);
  [[nodiscard]] Value evaluate_conditional(const Expression& expression);
  [[nodiscard]] Arguments evaluate_arguments(const CallArguments& arguments);
  void spread_named(const Value& more, Arguments& arguments);

  const Template::Program& m_program;
  std::unordered_map<std::string_view, NameId> m_ids;
  Scope m_root;
  Scope* m_scope = &m_root;
  std::vector<std::unique_ptr<Scope>> m_kept;
  std::string m_text;
  std::string* m_output = &m_text;
  std::size_t m_captured = 0;  // bytes in outer buffers
  int m_line = 0;
};

}  // namespace driftscope::jinja
