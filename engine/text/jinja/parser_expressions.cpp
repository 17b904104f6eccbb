// SPDX-License-Identifier: Apache-2.0
// Expressions, from the loosest to the tightest.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/text/jinja/parser.h"

namespace driftscope::jinja {
namespace {

// Of one expression: a long sum is a tree as deep as it is long.
constexpr int kDeepestExpression = 200;

struct NamedOperator {
  std::string_view symbol;
  Operator operation;
};
constexpr std::array<NamedOperator, 6> kComparisons{{{"==", Operator::equal},
                                                     {"!=", Operator::not_equal},
                                                     {"<", Operator::less},
                                                     {"<=", Operator::less_or_equal},
                                                     {">", Operator::greater},
                                                     {">=", Operator::greater_or_equal}}};
constexpr std::array<NamedOperator, 2> kSums{{{"+", Operator::add}, {"-", Operator::subtract}}};
constexpr std::array<NamedOperator, 4> kProducts{{{"*", Operator::multiply},
                                                  {"/", Operator::divide},
                                                  {"//", Operator::floor_divide},
                                                  {"%", Operator::modulo}}};

template <std::size_t Size>
const NamedOperator* find_operator(const std::array<NamedOperator, Size>& operators,
                                   const Token& token) {
  if (token.kind != TokenKind::symbol) return nullptr;
  const auto* found =
      std::find_if(operators.begin(), operators.end(),
                   [&](const NamedOperator& entry) { return entry.symbol == token.text; });
  return found == operators.end() ? nullptr : found;
}

}  // namespace

ExpressionPointer Parser::make(Expression::Kind kind, int line) const {
  auto made = std::make_unique<Expression>();
  made->kind = kind;
  made->line = line;
  return made;
}

ExpressionPointer Parser::finished(ExpressionPointer made) const {
  int deepest = 0;
  const auto look = [&](const ExpressionPointer& part) {
    if (part) deepest = std::max(deepest, part->depth);
  };
  for (const auto& part : made->parts) look(part);
  for (const auto& part : made->arguments.positional) look(part);
  for (const auto& [name, part] : made->arguments.named) look(part);
  look(made->arguments.more_positional);
  look(made->arguments.more_named);
  made->depth = deepest + 1;
  if (made->depth > kDeepestExpression) {
    stop("an expression is nested too deeply; split it with {% set %}", made->line);
  }
  return made;
}

ExpressionPointer Parser::expression(Inline with) {
  const Nesting nesting(*this);
  return with == Inline::allowed ? conditional() : chain_or();
}

ExpressionPointer Parser::conditional() {
  const int line = current().line;
  const bool guarded = m_guarded;
  ExpressionPointer left = chain_or();
  while (skip_name("if")) {
    auto made = make(Expression::Kind::conditional, line);
    made->parts.push_back(std::move(left));
    m_guarded = true;
    made->parts.push_back(chain_or());
    made->parts.push_back(skip_name("else") ? expression() : nullptr);
    m_guarded = guarded;
    left = finished(std::move(made));
  }
  return left;
}

ExpressionPointer Parser::chain_or() {
  const int line = current().line;
  ExpressionPointer left = chain_and();
  if (!is_name("or")) return left;
  auto made = make(Expression::Kind::logical_or, line);
  made->parts.push_back(std::move(left));
  while (skip_name("or")) made->parts.push_back(chain_and());
  return finished(std::move(made));
}

ExpressionPointer Parser::chain_and() {
  const int line = current().line;
  ExpressionPointer left = negation();
  if (!is_name("and")) return left;
  auto made = make(Expression::Kind::logical_and, line);
  made->parts.push_back(std::move(left));
  while (skip_name("and")) made->parts.push_back(negation());
  return finished(std::move(made));
}

ExpressionPointer Parser::negation() {
  if (!is_name("not")) return comparison();
  const Nesting nesting(*this);
  auto made = make(Expression::Kind::logical_not, next().line);
  made->parts.push_back(negation());
  return finished(std::move(made));
}

ExpressionPointer Parser::comparison() {
  const int line = current().line;
  ExpressionPointer left = sum();
  auto made = make(Expression::Kind::comparison, line);
  while (true) {
    if (const NamedOperator* found = find_operator(kComparisons, current())) {
      next();
      made->operations.push_back(found->operation);
    } else if (skip_name("in")) {
      made->operations.push_back(Operator::in);
    } else if (is_name("not") && ahead().kind == TokenKind::name && ahead().text == "in") {
      next();
      next();
      made->operations.push_back(Operator::not_in);
    } else {
      break;
    }
    if (left) made->parts.push_back(std::move(left));
    made->parts.push_back(sum());
  }
  return made->operations.empty() ? std::move(left) : finished(std::move(made));
}

ExpressionPointer Parser::sum() {
  const int line = current().line;
  ExpressionPointer left = concatenation();
  while (const NamedOperator* found = find_operator(kSums, current())) {
    next();
    auto made = make(Expression::Kind::arithmetic, line);
    made->operations.push_back(found->operation);
    made->parts.push_back(std::move(left));
    made->parts.push_back(concatenation());
    left = finished(std::move(made));
  }
  return left;
}

ExpressionPointer Parser::concatenation() {
  const int line = current().line;
  ExpressionPointer left = product();
  if (!is_symbol("~")) return left;
  auto made = make(Expression::Kind::concatenation, line);
  made->parts.push_back(std::move(left));
  while (skip_symbol("~")) made->parts.push_back(product());
  return finished(std::move(made));
}

ExpressionPointer Parser::product() {
  const int line = current().line;
  ExpressionPointer left = power();
  while (const NamedOperator* found = find_operator(kProducts, current())) {
    next();
    auto made = make(Expression::Kind::arithmetic, line);
    made->operations.push_back(found->operation);
    made->parts.push_back(std::move(left));
    made->parts.push_back(power());
    left = finished(std::move(made));
  }
  return left;
}

// Jinja's ** binds to the left.
ExpressionPointer Parser::power() {
  const int line = current().line;
  ExpressionPointer left = unary(true);
  while (skip_symbol("**")) {
    auto made = make(Expression::Kind::arithmetic, line);
    made->operations.push_back(Operator::power);
    made->parts.push_back(std::move(left));
    made->parts.push_back(unary(true));
    left = finished(std::move(made));
  }
  return left;
}

ExpressionPointer Parser::unary(bool with_filter) {
  const Nesting nesting(*this);
  const int line = current().line;
  ExpressionPointer made;
  if (is_symbol("-") || is_symbol("+")) {
    made = make(is_symbol("-") ? Expression::Kind::negative : Expression::Kind::positive, line);
    next();
    made->parts.push_back(unary(false));
    made = finished(std::move(made));
  } else {
    made = primary();
  }
  made = postfix(std::move(made));
  return with_filter ? filters(std::move(made)) : std::move(made);
}

ExpressionPointer Parser::primary() {
  const Token& token = current();
  if (token.kind == TokenKind::name) return name();
  if (token.kind == TokenKind::text) return text_literal();
  if (token.kind == TokenKind::integer || token.kind == TokenKind::real) {
    auto made = make(Expression::Kind::constant, token.line);
    made->constant =
        token.kind == TokenKind::integer ? Value::of(token.integer) : Value::of(token.real);
    next();
    return made;
  }
  if (skip_symbol("(")) {
    ExpressionPointer made = tuple(Inline::allowed, true);
    expect_symbol(")");
    return made;
  }
  if (is_symbol("[")) return list();
  if (is_symbol("{")) return mapping();
  stop(fmt::format("an expression is missing before {}", describe(token)));
}

ExpressionPointer Parser::name() {
  const int line = current().line;
  const std::string text = next().text;
  auto made = make(Expression::Kind::constant, line);
  if (text == "true" || text == "True") {
    made->constant = Value::of(true);
  } else if (text == "false" || text == "False") {
    made->constant = Value::of(false);
  } else if (text != "none" && text != "None") {
    made->kind = Expression::Kind::name;
    made->name = name_id(text);
    made->text = text;
    if (!m_macros.empty()) {
      m_macros.back().varargs |= text == "varargs";
      m_macros.back().kwargs |= text == "kwargs";
      m_macros.back().caller |= text == "caller";
    }
  }
  return made;
}

ExpressionPointer Parser::text_literal() {
  auto made = make(Expression::Kind::constant, current().line);
  std::string text;
  while (current().kind == TokenKind::text) text += next().text;
  made->constant = Value::of(std::move(text));
  return made;
}

ExpressionPointer Parser::tuple(Inline with, bool in_parentheses, Names ends) {
  const int line = current().line;
  std::vector<ExpressionPointer> parts;
  bool is_tuple = false;
  while (true) {
    if (current().kind == TokenKind::variable_end || current().kind == TokenKind::block_end ||
        is_symbol(")") || is_any_name(ends)) {
      break;
    }
    parts.push_back(expression(with));
    if (!skip_symbol(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!parts.empty()) return std::move(parts.front());
    if (!in_parentheses) {
      stop(fmt::format("an expression is missing before {}", describe(current())));
    }
  }
  auto made = make(Expression::Kind::tuple, line);
  made->parts = std::move(parts);
  return finished(std::move(made));
}

ExpressionPointer Parser::list() {
  auto made = make(Expression::Kind::list, next().line);
  while (!is_symbol("]")) {
    if (!made->parts.empty()) expect_symbol(",");
    if (is_symbol("]")) break;
    made->parts.push_back(expression());
  }
  expect_symbol("]");
  return finished(std::move(made));
}

ExpressionPointer Parser::mapping() {
  auto made = make(Expression::Kind::mapping, next().line);
  while (!is_symbol("}")) {
    if (!made->parts.empty()) expect_symbol(",");
    if (is_symbol("}")) break;
    made->parts.push_back(expression());
    expect_symbol(":");
    made->parts.push_back(expression());
  }
  expect_symbol("}");
  return finished(std::move(made));
}

}  // namespace driftscope::jinja
