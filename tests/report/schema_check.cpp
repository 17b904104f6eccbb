// SPDX-License-Identifier: Apache-2.0
#include "tests/report/schema_check.h"

#include <fstream>
#include <set>

namespace driftscope::testing {
namespace {

using Json = nlohmann::json;

const std::set<std::string> kAnnotations{"$schema", "$id", "$defs", "title", "description"};

class Checker {
 public:
  explicit Checker(const Json& root) : m_root(root) {}

  std::string check(const Json& schema, const Json& value, const std::string& at) const {
    for (const auto& [keyword, rule] : schema.items()) {
      std::string problem = apply(keyword, rule, schema, value, at);
      if (!problem.empty()) return problem;
    }
    return {};
  }

 private:
  std::string apply(const std::string& keyword, const Json& rule, const Json& schema,
                    const Json& value, const std::string& at) const {
    if (kAnnotations.contains(keyword)) return {};
    if (keyword == "$ref") {
      return check(m_root.at(Json::json_pointer(rule.get<std::string>().substr(1))), value, at);
    }
    if (keyword == "type") return check_type(rule.get<std::string>(), value, at);
    if (keyword == "const") return value == rule ? "" : at + ": not " + rule.dump();
    if (keyword == "enum") {
      for (const Json& one : rule) {
        if (one == value) return {};
      }
      return at + ": none of " + rule.dump();
    }
    if (keyword == "anyOf") return check_any(rule, value, at);
    if (keyword == "minItems") return value.size() >= rule ? "" : at + ": too short";
    if (keyword == "maxItems") return value.size() <= rule ? "" : at + ": too long";
    if (keyword == "required") return check_required(rule, value, at);
    if (keyword == "properties" || keyword == "additionalProperties") {
      return keyword == "properties" ? check_properties(rule, value, at)
                                     : check_additional(rule, schema, value, at);
    }
    if (keyword == "prefixItems" || keyword == "items")
      return check_items(keyword, rule, value, at);
    return at + ": unknown keyword " + keyword;
  }

  static std::string check_type(const std::string& type, const Json& value, const std::string& at) {
    const bool fits =
        (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
        (type == "string" && value.is_string()) ||
        (type == "integer" && value.is_number_integer()) ||
        (type == "number" && value.is_number()) || (type == "boolean" && value.is_boolean()) ||
        (type == "null" && value.is_null());
    return fits ? "" : at + ": not of type " + type;
  }
  std::string check_any(const Json& rules, const Json& value, const std::string& at) const {
    std::string last;
    for (const Json& rule : rules) {
      last = check(rule, value, at);
      if (last.empty()) return {};
    }
    return last;
  }
  static std::string check_required(const Json& names, const Json& value, const std::string& at) {
    for (const Json& name : names) {
      if (!value.contains(name.get<std::string>())) return at + ": lacks " + name.dump();
    }
    return {};
  }
  std::string check_properties(const Json& rules, const Json& value, const std::string& at) const {
    for (const auto& [name, rule] : rules.items()) {
      if (!value.contains(name)) continue;
      std::string problem = check(rule, value[name], at + "/" + name);
      if (!problem.empty()) return problem;
    }
    return {};
  }
  std::string check_additional(const Json& rule, const Json& schema, const Json& value,
                               const std::string& at) const {
    if (rule.is_boolean() && rule.get<bool>()) return {};
    for (const auto& [name, member] : value.items()) {
      if (schema.contains("properties") && schema["properties"].contains(name)) continue;
      if (rule.is_boolean()) return at + ": unexpected " + name;
      std::string problem = check(rule, member, at + "/" + name);
      if (!problem.empty()) return problem;
    }
    return {};
  }
  std::string check_items(const std::string& keyword, const Json& rule, const Json& value,
                          const std::string& at) const {
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (keyword == "prefixItems" && i >= rule.size()) break;
      std::string problem =
          check(keyword == "items" ? rule : rule[i], value[i], at + "/" + std::to_string(i));
      if (!problem.empty()) return problem;
    }
    return {};
  }

  const Json& m_root;
};

}  // namespace

std::string schema_problem(const Json& schema, const Json& value) {
  return Checker(schema).check(schema, value, "");
}

Json load_schema(const std::string& name) {
  std::ifstream file(std::string(DRIFTSCOPE_SOURCE_DIR "/resources/schema/") + name);
  return Json::parse(file);
}

}  // namespace driftscope::testing
