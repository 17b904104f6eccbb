// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/json_path.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using Json = nlohmann::json;
constexpr std::size_t kMostNodes = 100'000;

bool name_first(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || byte >= 0x80;
}
bool name_later(char c) { return name_first(c) || (c >= '0' && c <= '9'); }

std::string member_place(const std::string& parent, const std::string& name) {
  std::string out = parent + "['";
  for (const char c : name) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "']";
}

}  // namespace

class JsonPathReader {
 public:
  JsonPathReader(std::string_view text, std::string_view where) : m_text(text), m_where(where) {}

  Result<JsonPath> read() {
    if (m_text.empty() || m_text[0] != '$') return wrong("begins with no $");
    m_path.m_text = std::string(m_text);
    m_at = 1;
    while (m_at < m_text.size()) {
      if (auto done = read_segment(); !done) return tl::unexpected(done.error());
    }
    return std::move(m_path);
  }

 private:
  [[nodiscard]] bool take(std::string_view word) {
    if (m_text.substr(m_at, word.size()) != word) return false;
    m_at += word.size();
    return true;
  }
  [[nodiscard]] tl::unexpected<Error> wrong(std::string_view why) const {
    return fail(ErrorKind::malformed,
                fmt::format("{}: JSON path \"{}\": {} (character {}); read are .name, ['name'], "
                            "[3], [-1], .*, [*] and .. before each of them",
                            m_where, escape_for_display(m_text), why, m_at + 1));
  }

  Result<void> read_segment() {
    JsonPath::Segment segment;
    segment.descendants = take("..");
    Result<void> read;
    if (take("[")) {
      read = read_bracket(segment);
    } else if (segment.descendants || take(".")) {
      read = read_dotted(segment);
    } else {
      read = wrong("a segment begins with . or [");
    }
    if (read) m_path.m_segments.push_back(std::move(segment));
    return read;
  }

  Result<void> read_dotted(JsonPath::Segment& segment) {
    if (take("*")) {
      segment.kind = JsonPath::Kind::wildcard;
      return {};
    }
    const std::size_t begin = m_at;
    if (m_at < m_text.size() && name_first(m_text[m_at])) {
      while (m_at < m_text.size() && name_later(m_text[m_at])) ++m_at;
    }
    if (begin == m_at) return wrong("here stands no name; write others as ['the name']");
    segment.name = std::string(m_text.substr(begin, m_at - begin));
    return {};
  }

  Result<void> read_bracket(JsonPath::Segment& segment) {
    if (take("*")) {
      segment.kind = JsonPath::Kind::wildcard;
    } else if (m_at < m_text.size() && (m_text[m_at] == '\'' || m_text[m_at] == '"')) {
      if (auto done = read_quoted(segment.name); !done) return done;
    } else {
      segment.kind = JsonPath::Kind::index;
      const char* begin = m_text.data() + m_at;
      const auto [end, error] =
          std::from_chars(begin, m_text.data() + m_text.size(), segment.index);
      if (error != std::errc{}) return wrong("no name in quotes, number or *");
      m_at += static_cast<std::size_t>(end - begin);
    }
    if (!take("]")) return wrong("no ] here; slices, filters and lists are not read");
    return {};
  }

  Result<void> read_quoted(std::string& name) {
    const char quote = m_text[m_at++];
    while (m_at < m_text.size() && m_text[m_at] != quote) {
      if (m_text[m_at] == '\\') {
        ++m_at;
        if (m_at >= m_text.size()) break;
        if (m_text[m_at] != quote && m_text[m_at] != '\\' && m_text[m_at] != '/') {
          return wrong("of escapes, a quote, \\\\ and \\/ are read");
        }
      }
      name += m_text[m_at++];
    }
    if (m_at >= m_text.size()) return wrong("a quoted name has no end");
    ++m_at;
    return {};
  }

  std::string_view m_text, m_where;
  std::size_t m_at = 0;
  JsonPath m_path;
};

Result<JsonPath> JsonPath::parse(std::string_view text, std::string_view where) {
  return JsonPathReader(text, where).read();
}

void JsonPath::apply(const Segment& segment, const JsonPathNode& node,
                     std::vector<JsonPathNode>& out) {
  const Json& value = *node.value;
  if (segment.kind == Kind::index && value.is_array()) {
    const auto size = static_cast<std::int64_t>(value.size());
    const std::int64_t at = segment.index < 0 ? size + segment.index : segment.index;
    if (at < 0 || at >= size) return;
    out.push_back({fmt::format("{}[{}]", node.place, at), &value[static_cast<std::size_t>(at)]});
  } else if (segment.kind == Kind::name && value.is_object()) {
    const auto found = value.find(segment.name);
    if (found != value.end()) out.push_back({member_place(node.place, segment.name), &*found});
  } else if (segment.kind == Kind::wildcard && value.is_object()) {
    for (const auto& [name, member] : value.items()) {
      out.push_back({member_place(node.place, name), &member});
    }
  } else if (segment.kind == Kind::wildcard && value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      out.push_back({fmt::format("{}[{}]", node.place, i), &value[i]});
    }
  }
}

void JsonPath::apply_below(const Segment& segment, const JsonPathNode& node,
                           std::vector<JsonPathNode>& out) {
  if (out.size() > kMostNodes) return;
  apply(segment, node, out);
  std::vector<JsonPathNode> children;
  apply({.kind = Kind::wildcard, .descendants = false, .name = {}, .index = 0}, node, children);
  for (const JsonPathNode& child : children) apply_below(segment, child, out);
}

std::vector<JsonPathNode> JsonPath::select(const Json& document) const {
  std::vector<JsonPathNode> nodes{{"$", &document}};
  for (const Segment& segment : m_segments) {
    std::vector<JsonPathNode> next;
    for (const JsonPathNode& node : nodes) {
      if (next.size() > kMostNodes) break;
      if (segment.descendants) {
        apply_below(segment, node, next);
      } else {
        apply(segment, node, next);
      }
    }
    if (next.size() > kMostNodes) next.resize(kMostNodes);
    nodes = std::move(next);
  }
  return nodes;
}

}  // namespace driftscope
