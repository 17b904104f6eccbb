// SPDX-License-Identifier: Apache-2.0
// JSON as servers send it: bare NaN and Infinity, numbers beyond double, integers of 64 bits,
// duplicate keys and bytes that are not UTF-8 are read and noted, not refused. Keys keep their
// order and numbers their digits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.h"

namespace driftscope {

enum class JsonKind : std::uint8_t { null, boolean, number, text, array, object };

// Something that a strict reader would refuse, or that loses information.
struct JsonOddity {
  std::string_view what;   // "literal NaN", "duplicate key", "invalid UTF-8", "lone surrogate", …
  std::size_t offset = 0;  // bytes from the start of the text
};

class JsonDocument;

// A value inside a document; a default-made one is "absent", reads as null and finds nothing, so
// that a path can be followed without a check at each step. Valid as long as the document is.
class JsonValue {
 public:
  JsonValue() = default;
  [[nodiscard]] explicit operator bool() const { return m_document != nullptr; }
  [[nodiscard]] JsonKind kind() const;
  [[nodiscard]] bool is_null() const { return kind() == JsonKind::null; }
  [[nodiscard]] bool is_text() const { return kind() == JsonKind::text; }
  [[nodiscard]] bool is_number() const { return kind() == JsonKind::number; }
  [[nodiscard]] bool is_array() const { return kind() == JsonKind::array; }
  [[nodiscard]] bool is_object() const { return kind() == JsonKind::object; }

  // The first member of that name; absent where there is none or this is no object.
  [[nodiscard]] JsonValue operator[](std::string_view key) const;
  [[nodiscard]] bool has(std::string_view key) const;   // whatever its value, null included
  [[nodiscard]] std::size_t size() const;               // of an array or object, else 0
  [[nodiscard]] JsonValue at(std::size_t index) const;  // of an array; walks, absent at the end

  // A number's digits as written, or a text between its quotes with escapes as they stand.
  [[nodiscard]] std::string_view raw() const;
  // A text with its escapes resolved; bytes that are not UTF-8 stay as they are. Empty for others.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::string text_or(std::string_view fallback) const;
  // Also NaN and the infinities, of the literals and of digits beyond double. Empty for others.
  [[nodiscard]] std::optional<double> number() const;
  // Digits without fraction or exponent that fit; empty else.
  [[nodiscard]] std::optional<std::int64_t> integer() const;
  [[nodiscard]] std::optional<bool> boolean() const;
  // Of an array that the document left out (leave_out()): how many values it has, and raw() is its
  // text; it reads as empty. 0 for others.
  [[nodiscard]] std::size_t left_out() const;
  // The bytes that an array of integers from 0 to 255 lists; empty for anything else.
  [[nodiscard]] std::optional<std::string> bytes() const;
  // The value as compact JSON with keys sorted, numbers as written: equal texts are equal values.
  [[nodiscard]] std::string canonical() const;

  // Children in order: of an array its values, of an object its members' values.
  class Iterator {
   public:
    [[nodiscard]] JsonValue operator*() const { return {m_document, m_index, m_element}; }
    [[nodiscard]] std::string key() const;  // of an object's member
    // The key between its quotes; empty where it has escapes.
    [[nodiscard]] std::string_view plain_key() const;
    Iterator& operator++();
    [[nodiscard]] bool operator==(const Iterator& other) const {
      return m_index == other.m_index && m_element == other.m_element;
    }

   private:
    friend class JsonValue;
    Iterator(const JsonDocument* document, std::uint32_t index, std::uint32_t element, bool keyed)
        : m_document(document), m_index(index), m_element(element), m_keyed(keyed) {}
    const JsonDocument* m_document;
    std::uint32_t m_index;    // of the value; its key, where there is one, is just before it
    std::uint32_t m_element;  // see JsonValue
    bool m_keyed;
  };
  [[nodiscard]] Iterator begin() const;
  [[nodiscard]] Iterator end() const;

 private:
  friend class JsonDocument;
  JsonValue(const JsonDocument* document, std::uint32_t index, std::uint32_t element = 0)
      : m_document(document), m_index(index), m_element(element) {}
  const JsonDocument* m_document = nullptr;
  std::uint32_t m_index = 0;
  // An element of a list of digits has no node of its own: where it begins in the text, and
  // m_index is the list's. 0: the node itself.
  std::uint32_t m_element = 0;
};

// One JSON text of at most 4 GiB. `text` must outlive it. Made for reuse: parse() keeps the memory
// of earlier texts.
class JsonDocument {
 public:
  // Nesting beyond this is refused.
  static constexpr int kMaxDepth = 512;
  // Errors: malformed, "byte N: what". A byte order mark at the start is skipped.
  [[nodiscard]] Result<void> parse(std::string_view text);
  // Parses one value at the front and sets `used` to the bytes it took with the space after it.
  [[nodiscard]] Result<void> parse_first(std::string_view text, std::size_t& used);
  [[nodiscard]] JsonValue root() const {
    return m_nodes.empty() ? JsonValue() : JsonValue(this, 0);
  }
  // Arrays that are members of this name are checked like everything else, and then not kept: what
  // is in them cannot be reached. Empty: all are kept. For the texts parsed from now on.
  void leave_out(std::string_view key) { m_left_out_key = key; }
  [[nodiscard]] std::size_t arrays_left_out() const { return m_arrays_left_out; }
  // The first hundred, in order of place.
  [[nodiscard]] const std::vector<JsonOddity>& oddities() const { return m_oddities; }

 private:
  friend class JsonValue;
  friend class JsonValue::Iterator;
  friend class JsonParser;
  // Small, because an answer with alternatives has a hundred thousand of them. A list of plain
  // digits ("bytes", token ids) is one node: its elements are read from the text.
  struct Node {
    std::uint32_t begin = 0;  // of the raw text of scalars and keys; of a list of digits, behind [;
                              // of an array left out, at [
    std::uint32_t size = 0;   // bytes of that; of other containers, children
    std::uint32_t end = 0;    // containers: index of the node behind it; of those two: elements
    JsonKind kind = JsonKind::null;
    bool escaped : 1 = false;  // a text with escapes
    bool boolean : 1 = false;
    bool digits : 1 = false;    // an array whose elements are all digits
    bool left_out : 1 = false;  // an array whose elements are not kept
  };
  [[nodiscard]] std::string_view raw(const Node& node) const {
    return m_text.substr(node.begin, node.size);
  }
  // Index of the node behind a value and all in it.
  [[nodiscard]] std::uint32_t behind(std::uint32_t index) const {
    const Node& node = m_nodes[index];
    const bool holds = node.kind >= JsonKind::array && !node.digits && !node.left_out;
    return holds ? node.end : index + 1;
  }
  std::string_view m_text;
  std::vector<Node> m_nodes;  // depth first; an object's children are key, value, key, value …
  std::vector<JsonOddity> m_oddities;
  std::string_view m_left_out_key;
  std::size_t m_arrays_left_out = 0;
};

inline JsonKind JsonValue::kind() const {
  if (m_document == nullptr) return JsonKind::null;
  return m_element != 0 ? JsonKind::number : m_document->m_nodes[m_index].kind;
}

inline std::string_view JsonValue::Iterator::plain_key() const {
  const auto& node = m_document->m_nodes[m_index - 1];
  return node.escaped ? std::string_view{} : m_document->raw(node);
}

}  // namespace driftscope
