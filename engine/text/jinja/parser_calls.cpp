// SPDX-License-Identifier: Apache-2.0
// What stands behind an expression: members, indices, calls, filters and tests.
#include <fmt/format.h>

#include "engine/text/jinja/parser.h"

namespace driftscope::jinja {

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
