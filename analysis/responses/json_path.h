// SPDX-License-Identifier: Apache-2.0
// JSONPath (RFC 9535), without filters, slices and lists of selectors: those are refused when the
// path is read.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.h"

namespace driftscope {

struct JsonPathNode {
  std::string place;  // normalised path: "$['items'][0]"
  const nlohmann::json* value = nullptr;
};

// "$", then any of ".name", "['name']", "[3]", "[-1]", ".*", "[*]", "..name", "..*", "..[…]".
class JsonPath {
 public:
  // Errors: malformed, beginning with `where`.
  [[nodiscard]] static Result<JsonPath> parse(std::string_view text, std::string_view where);
  // Nodes in the order of the document (members sorted by name); valid as long as it is. At most
  // 100,000.
  [[nodiscard]] std::vector<JsonPathNode> select(const nlohmann::json& document) const;
  [[nodiscard]] const std::string& text() const { return m_text; }

 private:
  friend class JsonPathReader;
  enum class Kind : std::uint8_t { name, index, wildcard };
  struct Segment {
    Kind kind = Kind::name;
    bool descendants = false;
    std::string name;
    std::int64_t index = 0;
  };
  static void apply(const Segment& segment, const JsonPathNode& node,
                    std::vector<JsonPathNode>& out);
  static void apply_below(const Segment& segment, const JsonPathNode& node,
                          std::vector<JsonPathNode>& out);
  std::string m_text;
  std::vector<Segment> m_segments;
};

}  // namespace driftscope
