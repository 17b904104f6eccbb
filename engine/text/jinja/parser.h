// SPDX-License-Identifier: Apache-2.0
// Tokens to a syntax tree. The grammar is that of Jinja's own parser, function by function.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/text/jinja/syntax.h"
#include "engine/text/jinja/token.h"

namespace driftscope::jinja {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : m_tokens(std::move(tokens)) {}
  // The whole template.
  [[nodiscard]] Body parse();
  [[nodiscard]] std::vector<std::string> take_names() { return std::move(m_names); }

 private:
  using Names = std::initializer_list<std::string_view>;
  struct MacroUse {
    bool varargs = false, kwargs = false, caller = false;
  };
  class Nesting;

  // The stream.
  [[nodiscard]] const Token& current() const { return m_tokens[m_at]; }
  [[nodiscard]] const Token& ahead() const {
    return m_tokens[m_at + 1 < m_tokens.size() ? m_at + 1 : m_at];
  }
  const Token& next() { return m_tokens[m_at + 1 < m_tokens.size() ? m_at++ : m_at]; }
  [[nodiscard]] bool is_symbol(std::string_view symbol) const {
    return current().kind == TokenKind::symbol && current().text == symbol;
  }
  [[nodiscard]] bool is_name(std::string_view name) const {
    return current().kind == TokenKind::name && current().text == name;
  }
  [[nodiscard]] bool is_any_name(Names names) const;
  bool skip_symbol(std::string_view symbol);
  bool skip_name(std::string_view name);
  void expect_symbol(std::string_view symbol);
  void expect_name(std::string_view name);
  std::string expect_any_name();
  void expect(TokenKind kind, std::string_view what);
  [[noreturn]] void stop(const std::string& message, int line = 0) const;
  [[nodiscard]] static std::string describe(const Token& token);
  NameId name_id(const std::string& name);

  // Statements (parser.cpp).
  Body body(Names ends);  // the parts up to, not with, one of these tags
  Body body_to(std::string_view end);
  Body statements(Names ends);  // after the end of the begin tag
  std::unique_ptr<Statement> statement();
  std::unique_ptr<Statement> assignment(int line);
  std::unique_ptr<Statement> loop(int line);
  std::unique_ptr<Statement> condition(int line);
  std::unique_ptr<Statement> macro(int line);
  std::unique_ptr<Statement> call_block(int line);
  std::unique_ptr<Statement> filter_block(int line);
  std::unique_ptr<Statement> with_block(int line);
  std::unique_ptr<Statement> scope_block(int line, std::string_view end);
  std::unique_ptr<Statement> jump(int line, Statement::Kind kind);
  void signature(Statement& statement);
  void macro_body(Statement& statement, std::string_view end);
  ExpressionPointer target(bool may_be_attribute, Names ends);
  ExpressionPointer target_name(bool may_be_attribute);

  // Expressions (parser_expressions.cpp).
  enum class Inline : std::uint8_t { allowed, refused };  // a if b else c
  ExpressionPointer expression(Inline with = Inline::allowed);
  ExpressionPointer conditional();
  ExpressionPointer chain_or();
  ExpressionPointer chain_and();
  ExpressionPointer negation();
  ExpressionPointer comparison();
  ExpressionPointer sum();
  ExpressionPointer concatenation();
  ExpressionPointer product();
  ExpressionPointer power();
  ExpressionPointer unary(bool with_filter);
  ExpressionPointer primary();
  ExpressionPointer name();
  ExpressionPointer text_literal();
  ExpressionPointer tuple(Inline with, bool in_parentheses, Names ends = {});
  ExpressionPointer list();
  ExpressionPointer mapping();
  ExpressionPointer postfix(ExpressionPointer inner);
  ExpressionPointer filters(ExpressionPointer inner);
  ExpressionPointer subscript(ExpressionPointer inner);
  ExpressionPointer brackets(ExpressionPointer inner, int line);
  ExpressionPointer call(ExpressionPointer inner);
  CallArguments call_arguments();
  void call_argument(CallArguments& arguments);
  ExpressionPointer filter(ExpressionPointer inner);
  ExpressionPointer test(ExpressionPointer inner);
  [[nodiscard]] bool begins_test_argument() const;
  [[nodiscard]] std::string dotted_name();
  [[nodiscard]] ExpressionPointer make(Expression::Kind kind, int line) const;
  // With its depth checked.
  [[nodiscard]] ExpressionPointer finished(ExpressionPointer made) const;

  std::vector<Token> m_tokens;
  std::size_t m_at = 0;
  int m_depth = 0;
  int m_loops = 0;         // around the current statement
  bool m_guarded = false;  // inside an if: what is unknown there is an error only when reached
  std::vector<MacroUse> m_macros;
  std::vector<std::string> m_names;
  std::unordered_map<std::string, NameId> m_ids;
};

// Counts how deep statements and expressions lie in each other.
class Parser::Nesting {
 public:
  explicit Nesting(Parser& parser) : m_parser(parser) {
    if (++m_parser.m_depth > kDeepest) m_parser.stop("is nested too deeply; make it flatter");
  }
  ~Nesting() { --m_parser.m_depth; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
  static constexpr int kDeepest = 200;

 private:
  Parser& m_parser;
};

}  // namespace driftscope::jinja
