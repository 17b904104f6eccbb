// SPDX-License-Identifier: Apache-2.0
// The syntax tree of a template.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/text/jinja/machine.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/value.h"

namespace driftscope::jinja {

using NameId = std::uint32_t;

struct Expression;
using ExpressionPointer = std::unique_ptr<Expression>;

struct CallArguments {
  std::vector<ExpressionPointer> positional;
  std::vector<std::pair<std::string, ExpressionPointer>> named;
  ExpressionPointer more_positional;  // *values
  ExpressionPointer more_named;       // **values
};

struct Expression {
  enum class Kind : std::uint8_t {
    constant,       // constant
    name,           // name, text
    tuple,          // parts
    list,           // parts
    mapping,        // parts: key, value, key, value …
    attribute,      // parts[0] . text; also the target of a set
    item,           // parts[0] [ parts[1] ]
    slice,          // parts[0] [ parts[1] : parts[2] : parts[3] ], each may be null
    call,           // parts[0] ( arguments )
    filter,         // parts[0] | text ( arguments ); parts[0] is null in a filter block
    test,           // parts[0] is text ( arguments )
    logical_not,    // parts[0]
    negative,       // parts[0]
    positive,       // parts[0]
    arithmetic,     // parts[0] operations[0] parts[1]
    comparison,     // parts[0] operations[0] parts[1] operations[1] parts[2] …
    logical_and,    // parts
    logical_or,     // parts
    concatenation,  // parts
    conditional     // parts[0] if parts[1] else parts[2], which may be null
  };
  Kind kind = Kind::constant;
  int line = 0;
  int depth = 1;
  Value constant = {};
  NameId name = 0;
  std::string text = {};
  std::vector<ExpressionPointer> parts = {};
  std::vector<Operator> operations = {};
  CallArguments arguments = {};
  FilterFunction filter = nullptr;  // null: unknown, an error once it is reached
  TestFunction test = nullptr;
};

struct Statement;
using Body = std::vector<std::unique_ptr<Statement>>;

struct MacroParameter {
  NameId name = 0;
  std::string text;
  ExpressionPointer otherwise;  // null: none
};

struct Statement {
  enum class Kind : std::uint8_t {
    data,          // text
    output,        // expressions[0]
    assign,        // target, expressions[0]
    assign_block,  // target, body, expressions[0]: a filter or null
    loop,          // target, expressions[0] iterated, expressions[1] the condition or null, body,
                   // otherwise
    condition,     // expressions[i] guards branches[i]; otherwise
    macro,         // name, text, parameters, body
    call_block,    // expressions[0]: the call; parameters, body
    filter_block,  // expressions[0]: the filters, body
    scope,         // target: names (a tuple) or null, expressions: their values, body
    break_loop,
    continue_loop
  };
  Kind kind = Kind::data;
  int line = 0;
  std::string text = {};
  NameId name = 0;
  ExpressionPointer target = {};
  std::vector<ExpressionPointer> expressions = {};
  Body body = {};
  std::vector<Body> branches = {};
  Body otherwise = {};
  std::vector<MacroParameter> parameters = {};
  bool uses_varargs = false;
  bool uses_kwargs = false;
  bool uses_caller = false;
  bool recursive = false;
};

struct Template::Program {
  std::string name;                // begins the messages
  std::vector<std::string> names;  // by NameId
  Body body;
};

// Errors (Failure), with the line.
[[nodiscard]] Template::Program parse_program(std::string_view source, std::string name);

}  // namespace driftscope::jinja
