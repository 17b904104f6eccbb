// SPDX-License-Identifier: Apache-2.0
// Checks values against a part of JSON Schema (2020-12):
//   type, enum, const; properties, required, additionalProperties, patternProperties,
//   propertyNames, minProperties, maxProperties, dependentRequired; prefixItems, items, minItems,
//   maxItems, uniqueItems; minLength, maxLength (in characters), pattern (PCRE2); minimum, maximum,
//   exclusiveMinimum, exclusiveMaximum, multipleOf; allOf, anyOf, oneOf, not, if/then/else; $ref
//   within the document ("#" and JSON pointers behind it); $defs, definitions; true and false.
// Annotations (title, description, default, examples, …) change nothing. Any other keyword,
// `format` among them, is an error when the schema is read, never left out silently.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/base/result.h"

namespace driftscope {

struct SchemaProblem {
  std::string place;  // JSON pointer into the value; empty: the value itself
  std::string reason;
};

class JsonSchema {
 public:
  // Errors: malformed, beginning with `where` and the place in the schema: unknown keywords,
  // keywords of a wrong type, references that lead nowhere or only to themselves, patterns that do
  // not compile.
  [[nodiscard]] static Result<JsonSchema> compile(const nlohmann::json& schema,
                                                  std::string_view where);
  // The first problem; empty: the value is valid. Errors: inconclusive, where a pattern or the
  // schema as a whole takes too many steps on this value.
  [[nodiscard]] Result<std::optional<SchemaProblem>> check(const nlohmann::json& value) const;

  struct Compiled;  // internal

 private:
  std::shared_ptr<const Compiled> m_compiled;
};

}  // namespace driftscope
