// SPDX-License-Identifier: Apache-2.0
// Internal to analysis/responses: a schema that was read, for the two files of json_schema.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "analysis/responses/json_schema.h"
#include "analysis/responses/text_pattern.h"

namespace driftscope {

struct JsonSchema::Compiled {
  nlohmann::json root;
  std::map<std::string, TextPattern, std::less<>> patterns;  // by expression
  // What a reference leads to; null: nowhere.
  [[nodiscard]] const nlohmann::json* resolve(const std::string& reference) const {
    if (reference == "#") return &root;
    if (!reference.starts_with("#/")) return nullptr;
    try {
      const nlohmann::json::json_pointer pointer(unescaped(reference.substr(1)));
      return root.contains(pointer) ? &root.at(pointer) : nullptr;
    } catch (const nlohmann::json::exception&) {  // no JSON pointer
      return nullptr;
    }
  }

 private:
  // Of "%25" and the like, as a fragment of a URI writes them.
  static std::string unescaped(const std::string& fragment) {
    const auto digit = [](char c) {
      return c >= '0' && c <= '9'   ? c - '0'
             : c >= 'a' && c <= 'f' ? c - 'a' + 10
             : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                    : -1;
    };
    std::string out;
    for (std::size_t i = 0; i < fragment.size(); ++i) {
      const bool coded = fragment[i] == '%' && i + 2 < fragment.size() &&
                         digit(fragment[i + 1]) >= 0 && digit(fragment[i + 2]) >= 0;
      out += coded ? static_cast<char>(digit(fragment[i + 1]) * 16 + digit(fragment[i + 2]))
                   : fragment[i];
      if (coded) i += 2;
    }
    return out;
  }
};

}  // namespace driftscope
