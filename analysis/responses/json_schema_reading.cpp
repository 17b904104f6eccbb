// SPDX-License-Identifier: Apache-2.0
// A schema is read: everything in it is known and well formed, or it is refused.
#include <fmt/format.h>

#include <array>
#include <set>

#include "analysis/responses/json_schema_parts.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using Json = nlohmann::json;

enum class Form : std::uint8_t {
  annotation,
  schema,       // one schema
  schema_list,  // a list of schemas, not empty
  schema_map,   // name to schema
  pattern_map,  // pattern to schema
  number,
  positive_number,
  count,  // an integer from 0
  flag,
  text_pattern,
  reference,
  names,      // list of strings
  names_map,  // name to list of strings
  types,
  anything,
  list,
  dialect,
};

struct Keyword {
  std::string_view name;
  Form form;
};

constexpr std::array kKeywords{
    Keyword{"$schema", Form::dialect},
    Keyword{"$id", Form::annotation},
    Keyword{"$comment", Form::annotation},
    Keyword{"title", Form::annotation},
    Keyword{"description", Form::annotation},
    Keyword{"default", Form::annotation},
    Keyword{"examples", Form::annotation},
    Keyword{"deprecated", Form::annotation},
    Keyword{"readOnly", Form::annotation},
    Keyword{"writeOnly", Form::annotation},
    Keyword{"$defs", Form::schema_map},
    Keyword{"definitions", Form::schema_map},
    Keyword{"$ref", Form::reference},
    Keyword{"type", Form::types},
    Keyword{"enum", Form::list},
    Keyword{"const", Form::anything},
    Keyword{"properties", Form::schema_map},
    Keyword{"patternProperties", Form::pattern_map},
    Keyword{"additionalProperties", Form::schema},
    Keyword{"propertyNames", Form::schema},
    Keyword{"required", Form::names},
    Keyword{"dependentRequired", Form::names_map},
    Keyword{"minProperties", Form::count},
    Keyword{"maxProperties", Form::count},
    Keyword{"prefixItems", Form::schema_list},
    Keyword{"items", Form::schema},
    Keyword{"minItems", Form::count},
    Keyword{"maxItems", Form::count},
    Keyword{"uniqueItems", Form::flag},
    Keyword{"minLength", Form::count},
    Keyword{"maxLength", Form::count},
    Keyword{"pattern", Form::text_pattern},
    Keyword{"minimum", Form::number},
    Keyword{"maximum", Form::number},
    Keyword{"exclusiveMinimum", Form::number},
    Keyword{"exclusiveMaximum", Form::number},
    Keyword{"multipleOf", Form::positive_number},
    Keyword{"allOf", Form::schema_list},
    Keyword{"anyOf", Form::schema_list},
    Keyword{"oneOf", Form::schema_list},
    Keyword{"not", Form::schema},
    Keyword{"if", Form::schema},
    Keyword{"then", Form::schema},
    Keyword{"else", Form::schema},
};

// Those that look at the same value as the schema they stand in.
constexpr std::array<std::string_view, 8> kInPlace{"$ref", "allOf", "anyOf", "oneOf",
                                                   "not",  "if",    "then",  "else"};

bool is_names(const Json& value) {
  if (!value.is_array()) return false;
  for (const Json& name : value) {
    if (!name.is_string()) return false;
  }
  return true;
}

bool is_type_name(const Json& value) {
  static const std::set<std::string> kTypes{"null",   "boolean", "object", "array",
                                            "number", "integer", "string"};
  return value.is_string() && kTypes.contains(value.get<std::string>());
}

bool is_types(const Json& value) {
  if (!value.is_array()) return is_type_name(value);
  for (const Json& type : value) {
    if (!is_type_name(type)) return false;
  }
  return !value.empty();
}

bool is_known_dialect(const Json& value) {
  if (!value.is_string()) return false;
  const auto text = value.get<std::string>();
  for (const char* known :
       {"draft/2020-12/schema", "draft/2019-09/schema", "draft-07/schema", "draft-06/schema"}) {
    if (text.find(known) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

class JsonSchemaReader {
 public:
  JsonSchemaReader(JsonSchema::Compiled& target, std::string_view where)
      : m_target(target), m_where(where) {}

  Result<void> read() {
    if (auto done = read_schema(m_target.root, ""); !done) return done;
    for (const auto& [reference, place] : m_references) {
      const Json* found = m_target.resolve(reference);
      if (found == nullptr || !m_schemas.contains(found)) {
        return wrong(place, fmt::format("$ref \"{}\" leads to no schema of this document",
                                        escape_for_display(reference)));
      }
    }
    for (const auto& [schema, place] : m_schemas) {
      if (loops(*schema)) return wrong(place, "refers to itself without ever looking at a part");
    }
    return {};
  }

 private:
  [[nodiscard]] tl::unexpected<Error> wrong(const std::string& place, std::string_view why) const {
    return fail(ErrorKind::malformed,
                fmt::format("{}: schema{}{}: {}", m_where, place.empty() ? "" : " at ",
                            escape_for_display(place), why));
  }

  Result<void> read_schema(const Json& schema, const std::string& place) {
    m_schemas[&schema] = place;
    if (schema.is_boolean()) return {};
    if (!schema.is_object()) return wrong(place, "a schema is an object, true or false");
    for (const auto& [name, rule] : schema.items()) {
      const std::string at = place + "/" + name;
      const auto known = std::find_if(kKeywords.begin(), kKeywords.end(),
                                      [&](const Keyword& k) { return k.name == name; });
      if (known == kKeywords.end()) {
        return wrong(at, fmt::format("the keyword \"{}\" is not supported, and leaving it out "
                                     "could change the result",
                                     escape_for_display(name)));
      }
      if (name == "$id" && !place.empty()) return wrong(at, "is supported at the top only");
      if (auto done = read_keyword(known->form, rule, at); !done) return done;
    }
    return {};
  }

  Result<void> read_keyword(Form form, const Json& rule, const std::string& at) {
    const auto expect = [&](bool fits, std::string_view what) -> Result<void> {
      if (!fits) return wrong(at, fmt::format("expected {}", what));
      return {};
    };
    switch (form) {
      case Form::annotation:
      case Form::anything:
        return {};
      case Form::schema:
        return read_schema(rule, at);
      case Form::schema_list:
        return read_list(rule, at);
      case Form::schema_map:
      case Form::pattern_map:
        return read_map(rule, at, form == Form::pattern_map);
      case Form::number:
        return expect(rule.is_number(), "a number");
      case Form::positive_number:
        return expect(rule.is_number() && rule.get<double>() > 0.0, "a number above 0");
      case Form::count:
        return expect(rule.is_number_unsigned(), "an integer from 0");
      case Form::flag:
        return expect(rule.is_boolean(), "true or false");
      case Form::text_pattern:
        if (!rule.is_string()) return wrong(at, "expected a regular expression");
        return read_pattern(rule.get<std::string>(), at);
      case Form::reference:
        if (!rule.is_string()) return wrong(at, "expected a reference such as \"#/$defs/name\"");
        m_references.emplace_back(rule.get<std::string>(), at);
        return {};
      case Form::names:
        return expect(is_names(rule), "a list of names");
      case Form::names_map:
        return read_names_map(rule, at);
      case Form::types:
        return expect(is_types(rule), "a type's name, or a list of them");
      case Form::list:
        return expect(rule.is_array(), "a list");
      case Form::dialect:
        return expect(is_known_dialect(rule), "draft 2020-12, 2019-09, 07 or 06");
    }
    return {};
  }

  Result<void> read_list(const Json& rule, const std::string& at) {
    if (!rule.is_array() || rule.empty()) return wrong(at, "expected a list of schemas");
    for (std::size_t i = 0; i < rule.size(); ++i) {
      if (auto done = read_schema(rule[i], fmt::format("{}/{}", at, i)); !done) return done;
    }
    return {};
  }

  Result<void> read_map(const Json& rule, const std::string& at, bool patterns) {
    if (!rule.is_object()) return wrong(at, "expected an object of schemas");
    for (const auto& [name, member] : rule.items()) {
      if (patterns) {
        if (auto done = read_pattern(name, at); !done) return done;
      }
      if (auto done = read_schema(member, at + "/" + name); !done) return done;
    }
    return {};
  }

  Result<void> read_names_map(const Json& rule, const std::string& at) const {
    if (!rule.is_object()) return wrong(at, "expected an object of lists of names");
    for (const auto& [name, member] : rule.items()) {
      if (!is_names(member)) return wrong(at + "/" + name, "expected a list of names");
    }
    return {};
  }

  Result<void> read_pattern(const std::string& expression, const std::string& at) {
    auto pattern = TextPattern::compile(expression, fmt::format("{}: schema at {}", m_where, at));
    if (!pattern) return tl::unexpected(pattern.error());
    m_target.patterns.emplace(expression, std::move(*pattern));
    return {};
  }

  // Whether a chain of schemas that look at the same value comes back to one of its links.
  bool loops(const Json& schema) {
    const auto [state, fresh] = m_states.emplace(&schema, State::open);
    if (!fresh) return state->second == State::open;
    bool found = false;
    if (schema.is_object()) {
      for (const std::string_view name : kInPlace) {
        const auto rule = schema.find(std::string(name));
        if (rule == schema.end()) continue;
        if (name == "$ref") {
          found = found || loops(*m_target.resolve(rule->get<std::string>()));
        } else if (rule->is_array()) {
          for (const Json& one : *rule) found = found || loops(one);
        } else {
          found = found || loops(*rule);
        }
      }
    }
    m_states[&schema] = State::done;
    return found;
  }

  enum class State : std::uint8_t { open, done };
  JsonSchema::Compiled& m_target;
  std::string_view m_where;
  std::map<const Json*, std::string> m_schemas;  // every schema and its place
  std::map<const Json*, State> m_states;
  std::vector<std::pair<std::string, std::string>> m_references;  // and where they stand
};

Result<JsonSchema> JsonSchema::compile(const Json& schema, std::string_view where) {
  auto compiled = std::make_shared<Compiled>();
  compiled->root = schema;
  if (auto read = JsonSchemaReader(*compiled, where).read(); !read) {
    return tl::unexpected(read.error());
  }
  JsonSchema out;
  out.m_compiled = std::move(compiled);
  return out;
}

}  // namespace driftscope
