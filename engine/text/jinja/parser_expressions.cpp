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

ExpressionPointer Parser::postfix(ExpressionPointer inner) {
  while (true) {
    if (is_symbol(".") || is_symbol("[")) {
      inner = subscript(std::move(inner));
    } else if (is_symbol("(")) {
      inner = call(std::move(inner));
    } else {
      return inner;
    }
  }
}

ExpressionPointer Parser::filters(ExpressionPointer inner) {
  while (true) {
    if (skip_symbol("|")) {
      inner = filter(std::move(inner));
    } else if (is_name("is")) {
      inner = test(std::move(inner));
    } else if (is_symbol("(")) {
      inner = call(std::move(inner));
    } else {
      return inner;
    }
  }
}

ExpressionPointer Parser::subscript(ExpressionPointer inner) {
  const int line = current().line;
  if (next().text == "[") return brackets(std::move(inner), line);
  if (current().kind == TokenKind::name) {
    auto made = make(Expression::Kind::attribute, line);
    made->text = next().text;
    made->parts.push_back(std::move(inner));
    return finished(std::move(made));
  }
  if (current().kind != TokenKind::integer) {
    stop(fmt::format("a name or a number is missing after \".\", before {}", describe(current())));
  }
  auto made = make(Expression::Kind::item, line);
  auto key = make(Expression::Kind::constant, line);
  key->constant = Value::of(next().integer);
  made->parts.push_back(std::move(inner));
  made->parts.push_back(std::move(key));
  return finished(std::move(made));
}

ExpressionPointer Parser::brackets(ExpressionPointer inner, int line) {
  auto made = make(Expression::Kind::slice, line);
  made->parts.push_back(std::move(inner));
  const auto bound_ends = [&] { return is_symbol(":") || is_symbol("]"); };
  made->parts.push_back(bound_ends() ? nullptr : expression());
  if (!is_symbol(":")) {
    if (!made->parts[1]) stop("an index is missing in []");
    made->kind = Expression::Kind::item;
    if (is_symbol(",")) {  // value[a, b]: the key is a tuple
      auto key = make(Expression::Kind::tuple, line);
      key->parts.push_back(std::move(made->parts[1]));
      while (skip_symbol(",") && !is_symbol("]")) key->parts.push_back(expression());
      made->parts[1] = finished(std::move(key));
    }
  } else {
    next();
    made->parts.push_back(bound_ends() ? nullptr : expression());
    made->parts.push_back(skip_symbol(":") && !bound_ends() ? expression() : nullptr);
  }
  expect_symbol("]");
  return finished(std::move(made));
}

ExpressionPointer Parser::call(ExpressionPointer inner) {
  auto made = make(Expression::Kind::call, current().line);
  made->parts.push_back(std::move(inner));
  made->arguments = call_arguments();
  return finished(std::move(made));
}

CallArguments Parser::call_arguments() {
  CallArguments arguments;
  expect_symbol("(");
  bool first = true;
  while (!is_symbol(")")) {
    if (!first) {
      expect_symbol(",");
      if (is_symbol(")")) break;
    }
    first = false;
    call_argument(arguments);
  }
  expect_symbol(")");
  return arguments;
}

void Parser::call_argument(CallArguments& arguments) {
  const bool named =
      current().kind == TokenKind::name && ahead().kind == TokenKind::symbol && ahead().text == "=";
  const bool after_named = arguments.more_named != nullptr;
  const bool after_more = arguments.more_positional != nullptr || after_named;
  if ((!named && !is_symbol("**") &&
       (after_more || (!is_symbol("*") && !arguments.named.empty()))) ||
      after_named) {
    stop("an argument stands behind one that must come last");
  }
  if (skip_symbol("*")) {
    arguments.more_positional = expression();
  } else if (skip_symbol("**")) {
    arguments.more_named = expression();
  } else if (named) {
    std::string key = next().text;
    next();
    arguments.named.emplace_back(std::move(key), expression());
  } else {
    arguments.positional.push_back(expression());
  }
}

std::string Parser::dotted_name() {
  std::string text = expect_any_name();
  while (skip_symbol(".")) text += "." + expect_any_name();
  return text;
}

ExpressionPointer Parser::filter(ExpressionPointer inner) {
  auto made = make(Expression::Kind::filter, current().line);
  made->text = dotted_name();
  made->filter = m_guarded ? find_filter(made->text) : nullptr;
  if (!m_guarded) {
    try {
      made->filter = require_filter(made->text);
    } catch (Failure& failure) {
      stop(failure.message, made->line);
    }
  }
  made->parts.push_back(std::move(inner));
  if (is_symbol("(")) made->arguments = call_arguments();
  return finished(std::move(made));
}

bool Parser::begins_test_argument() const {
  const Token& token = current();
  switch (token.kind) {
    case TokenKind::text:
    case TokenKind::integer:
    case TokenKind::real:
      return true;
    case TokenKind::name:
      return token.text != "else" && token.text != "or" && token.text != "and";
    case TokenKind::symbol:
      return token.text == "[" || token.text == "{";
    case TokenKind::data:
    case TokenKind::variable_begin:
    case TokenKind::variable_end:
    case TokenKind::block_begin:
    case TokenKind::block_end:
    case TokenKind::end:
      return false;
  }
  return false;
}

ExpressionPointer Parser::test(ExpressionPointer inner) {
  const int line = next().line;
  const bool negated = skip_name("not");
  auto made = make(Expression::Kind::test, line);
  made->text = dotted_name();
  made->test = m_guarded ? find_test(made->text) : nullptr;
  if (!m_guarded) {
    try {
      made->test = require_test(made->text);
    } catch (Failure& failure) {
      stop(failure.message, line);
    }
  }
  made->parts.push_back(std::move(inner));
  if (is_symbol("(")) {
    made->arguments = call_arguments();
  } else if (begins_test_argument()) {
    if (is_name("is")) stop("tests with \"is\" cannot be chained; join them with \"and\"");
    made->arguments.positional.push_back(postfix(primary()));
  }
  made = finished(std::move(made));
  if (!negated) return made;
  auto inverse = make(Expression::Kind::logical_not, line);
  inverse->parts.push_back(std::move(made));
  return finished(std::move(inverse));
}

}  // namespace driftscope::jinja
