// SPDX-License-Identifier: Apache-2.0
// Statements.
#include "engine/text/jinja/parser.h"

#include <fmt/format.h>

#include <algorithm>

namespace driftscope::jinja {

void Parser::stop(const std::string& message, int line) const {
  throw Failure{.message = message, .line = line == 0 ? current().line : line};
}

std::string Parser::describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::data:
      return "text outside of a tag";
    case TokenKind::variable_begin:
      return "{{";
    case TokenKind::variable_end:
      return "}}";
    case TokenKind::block_begin:
      return "{%";
    case TokenKind::block_end:
      return "%}";
    case TokenKind::text:
      return "a text";
    case TokenKind::integer:
    case TokenKind::real:
      return "a number";
    case TokenKind::name:
    case TokenKind::symbol:
      return "\"" + token.text + "\"";
    case TokenKind::end:
      return "the end of the template";
  }
  return "";
}

bool Parser::is_any_name(Names names) const {
  return current().kind == TokenKind::name &&
         std::find(names.begin(), names.end(), current().text) != names.end();
}

bool Parser::skip_symbol(std::string_view symbol) {
  if (!is_symbol(symbol)) return false;
  next();
  return true;
}

bool Parser::skip_name(std::string_view name) {
  if (!is_name(name)) return false;
  next();
  return true;
}

void Parser::expect_symbol(std::string_view symbol) {
  if (!skip_symbol(symbol)) {
    stop(fmt::format("\"{}\" is missing before {}", symbol, describe(current())));
  }
}

void Parser::expect_name(std::string_view name) {
  if (!skip_name(name)) {
    stop(fmt::format("\"{}\" is missing before {}", name, describe(current())));
  }
}

std::string Parser::expect_any_name() {
  if (current().kind != TokenKind::name) {
    stop(fmt::format("a name is missing before {}", describe(current())));
  }
  return next().text;
}

void Parser::expect(TokenKind kind, std::string_view what) {
  if (current().kind != kind)
    stop(fmt::format("{} is missing before {}", what, describe(current())));
  next();
}

NameId Parser::name_id(const std::string& name) {
  const auto [found, inserted] = m_ids.try_emplace(name, static_cast<NameId>(m_names.size()));
  if (inserted) m_names.push_back(name);
  return found->second;
}

Body Parser::parse() {
  Body parsed = body({});
  return parsed;
}

Body Parser::body(Names ends) {
  const Nesting nesting(*this);
  Body parts;
  while (current().kind != TokenKind::end) {
    auto part = std::make_unique<Statement>();
    part->line = current().line;
    if (current().kind == TokenKind::data) {
      part->text = next().text;
    } else if (current().kind == TokenKind::variable_begin) {
      next();
      part->kind = Statement::Kind::output;
      part->expressions.push_back(tuple(Inline::allowed, false));
      expect(TokenKind::variable_end, "}}");
    } else {
      expect(TokenKind::block_begin, "{%");
      if (is_any_name(ends)) return parts;
      part = statement();
      expect(TokenKind::block_end, "%}");
    }
    parts.push_back(std::move(part));
  }
  if (ends.size() != 0) {
    stop(fmt::format("{{% {} %}} is missing at the end of the template", *(ends.end() - 1)));
  }
  return parts;
}

Body Parser::statements(Names ends) {
  skip_symbol(":");
  expect(TokenKind::block_end, "%}");
  return body(ends);
}

Body Parser::body_to(std::string_view end) {
  Body parts = statements({end});
  next();
  return parts;
}

std::unique_ptr<Statement> Parser::statement() {
  const int line = current().line;
  const std::string tag = expect_any_name();
  if (tag == "set") return assignment(line);
  if (tag == "for") return loop(line);
  if (tag == "if") return condition(line);
  if (tag == "macro") return macro(line);
  if (tag == "call") return call_block(line);
  if (tag == "filter") return filter_block(line);
  if (tag == "with") return with_block(line);
  if (tag == "generation") return scope_block(line, "endgeneration");
  if (tag == "break") return jump(line, Statement::Kind::break_loop);
  if (tag == "continue") return jump(line, Statement::Kind::continue_loop);
  if (tag == "include" || tag == "import" || tag == "from" || tag == "extends" || tag == "block" ||
      tag == "autoescape" || tag == "print" || tag == "do") {
    stop(
        fmt::format("the tag \"{}\" is not supported; chat templates are one file without it", tag),
        line);
  }
  stop(fmt::format("unknown tag \"{}\"; known are set, for, if, macro, call, filter, with, "
                   "generation, break, continue and raw",
                   tag),
       line);
}

std::unique_ptr<Statement> Parser::assignment(int line) {
  auto made = std::make_unique<Statement>();
  made->line = line;
  made->target = target(true, {});
  if (skip_symbol("=")) {
    made->kind = Statement::Kind::assign;
    made->expressions.push_back(tuple(Inline::allowed, false));
    return made;
  }
  made->kind = Statement::Kind::assign_block;
  ExpressionPointer filtered;
  while (is_symbol("|")) {
    next();
    filtered = filter(std::move(filtered));
  }
  made->expressions.push_back(std::move(filtered));
  made->body = body_to("endset");
  return made;
}

ExpressionPointer Parser::target_name(bool may_be_attribute) {
  const int line = current().line;
  if (current().kind != TokenKind::name) {
    stop(fmt::format("cannot assign to {}; a name is needed", describe(current())));
  }
  const std::string text = next().text;
  for (const std::string_view constant : {"true", "false", "none", "True", "False", "None"}) {
    if (text == constant) stop(fmt::format("cannot assign to {}", text), line);
  }
  auto made = make(Expression::Kind::name, line);
  made->text = text;
  made->name = name_id(text);
  if (!may_be_attribute || !skip_symbol(".")) return made;
  auto member = make(Expression::Kind::attribute, line);
  member->text = expect_any_name();
  member->parts.push_back(std::move(made));
  return member;
}

// name, namespace.name, a, b or (a, b), c
ExpressionPointer Parser::target(bool may_be_attribute, Names ends) {
  const Nesting nesting(*this);
  const int line = current().line;
  std::vector<ExpressionPointer> parts;
  bool is_tuple = false;
  while (true) {
    if (!parts.empty() && (is_any_name(ends) || is_symbol(")") || is_symbol("=") ||
                           current().kind == TokenKind::block_end)) {
      break;
    }
    if (skip_symbol("(")) {
      parts.push_back(target(false, {}));
      expect_symbol(")");
    } else {
      parts.push_back(target_name(may_be_attribute));
    }
    if (!skip_symbol(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) return std::move(parts.front());
  auto made = make(Expression::Kind::tuple, line);
  made->parts = std::move(parts);
  return finished(std::move(made));
}

std::unique_ptr<Statement> Parser::loop(int line) {
  auto made = std::make_unique<Statement>();
  made->kind = Statement::Kind::loop;
  made->line = line;
  made->target = target(false, {"in"});
  expect_name("in");
  const bool guarded = std::exchange(m_guarded, false);
  made->expressions.push_back(tuple(Inline::refused, false, {"recursive"}));
  made->expressions.push_back(skip_name("if") ? expression() : nullptr);
  made->recursive = skip_name("recursive");
  ++m_loops;
  made->body = statements({"else", "endfor"});
  --m_loops;
  if (next().text == "else") made->otherwise = body_to("endfor");
  m_guarded = guarded;
  return made;
}

std::unique_ptr<Statement> Parser::condition(int line) {
  auto made = std::make_unique<Statement>();
  made->kind = Statement::Kind::condition;
  made->line = line;
  const bool guarded = std::exchange(m_guarded, true);
  while (true) {
    made->expressions.push_back(tuple(Inline::refused, false));
    made->branches.push_back(statements({"elif", "else", "endif"}));
    const std::string tag = next().text;
    if (tag == "elif") continue;
    if (tag == "else") made->otherwise = body_to("endif");
    break;
  }
  m_guarded = guarded;
  return made;
}

void Parser::signature(Statement& statement) {
  expect_symbol("(");
  while (!is_symbol(")")) {
    if (!statement.parameters.empty()) expect_symbol(",");
    MacroParameter parameter;
    parameter.text = target_name(false)->text;
    parameter.name = name_id(parameter.text);
    if (skip_symbol("=")) {
      parameter.otherwise = expression();
    } else if (!statement.parameters.empty() && statement.parameters.back().otherwise) {
      stop(fmt::format("argument \"{}\" without a default follows one with a default",
                       parameter.text));
    }
    statement.parameters.push_back(std::move(parameter));
  }
  expect_symbol(")");
}

// Signature and body are one function: what they read decides which arguments it takes.
void Parser::macro_body(Statement& statement, std::string_view end) {
  const int loops = std::exchange(m_loops, 0);
  const bool guarded = std::exchange(m_guarded, false);
  statement.body = body_to(end);
  m_loops = loops;
  m_guarded = guarded;
  statement.uses_varargs = m_macros.back().varargs;
  statement.uses_kwargs = m_macros.back().kwargs;
  statement.uses_caller = m_macros.back().caller;
  m_macros.pop_back();
}

std::unique_ptr<Statement> Parser::macro(int line) {
  auto made = std::make_unique<Statement>();
  made->kind = Statement::Kind::macro;
  made->line = line;
  made->text = target_name(false)->text;
  made->name = name_id(made->text);
  m_macros.emplace_back();
  signature(*made);
  macro_body(*made, "endmacro");
  return made;
}

std::unique_ptr<Statement> Parser::call_block(int line) {
  auto made = std::make_unique<Statement>();
  made->kind = Statement::Kind::call_block;
  made->line = line;
  made->text = "caller";
  if (is_symbol("(")) signature(*made);
  made->expressions.push_back(expression());
  if (made->expressions[0]->kind != Expression::Kind::call) {
    stop("{% call %} needs the call of a macro", line);
  }
  m_macros.emplace_back();
  macro_body(*made, "endcall");
  return made;
}

std::unique_ptr<Statement> Parser::filter_block(int line) {
  auto made = std::make_unique<Statement>();
  made->kind = Statement::Kind::filter_block;
  made->line = line;
  ExpressionPointer filtered = filter(nullptr);
  while (skip_symbol("|")) filtered = filter(std::move(filtered));
  made->expressions.push_back(std::move(filtered));
  made->body = body_to("endfilter");
  return made;
}

std::unique_ptr<Statement> Parser::with_block(int line) {
  auto made = std::make_unique<Statement>();
  made->kind = Statement::Kind::scope;
  made->line = line;
  made->target = make(Expression::Kind::tuple, line);
  while (current().kind != TokenKind::block_end) {
    if (!made->expressions.empty()) expect_symbol(",");
    made->target->parts.push_back(target_name(false));
    expect_symbol("=");
    made->expressions.push_back(expression());
  }
  made->body = body_to("endwith");
  return made;
}

std::unique_ptr<Statement> Parser::scope_block(int line, std::string_view end) {
  auto made = std::make_unique<Statement>();
  made->kind = Statement::Kind::scope;
  made->line = line;
  const int loops = std::exchange(m_loops, 0);
  made->body = body_to(end);
  m_loops = loops;
  return made;
}

std::unique_ptr<Statement> Parser::jump(int line, Statement::Kind kind) {
  if (m_loops == 0) {
    stop(fmt::format("{} is outside of a loop",
                     kind == Statement::Kind::break_loop ? "break" : "continue"),
         line);
  }
  auto made = std::make_unique<Statement>();
  made->kind = kind;
  made->line = line;
  return made;
}

Template::Program parse_program(std::string_view source, std::string name) {
  Parser parser(tokenize(source));
  Template::Program program;
  program.name = std::move(name);
  program.body = parser.parse();
  program.names = parser.take_names();
  return program;
}

}  // namespace driftscope::jinja
