// SPDX-License-Identifier: Apache-2.0
// A file of checks is read. Nothing in it is left out: a member that means nothing is an error.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/responses/assertions.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using Json = nlohmann::json;

// Whether the kind takes this member; `needed`: and cannot do without.
bool takes(const CheckKind& kind, std::string_view member, bool& needed) {
  std::string_view rest = kind.members;
  while (!rest.empty()) {
    const std::size_t space = rest.find(' ');
    std::string_view word = rest.substr(0, space);
    rest = space == std::string_view::npos ? std::string_view{} : rest.substr(space + 1);
    needed = !word.ends_with('?');
    if (!needed) word.remove_suffix(1);
    if (word == member) return true;
  }
  return needed = false;
}

class AssertionReader {
 public:
  AssertionReader(const Json& json, std::string where) : m_json(json), m_where(std::move(where)) {}

  Result<Assertion> read() {
    if (!m_json.is_object()) return wrong("a check is an object");
    if (auto done = read_kind(); !done) return tl::unexpected(done.error());
    for (const auto& [name, value] : m_json.items()) {
      if (auto done = read_member(name, value); !done) return tl::unexpected(done.error());
    }
    for (const char* name : {"text", "pattern", "schema", "path", "paths", "value", "values",
                             "tolerance", "minimum", "maximum", "pick"}) {
      bool needed = false;
      if (takes(*m_out.kind, name, needed) && needed && !m_json.contains(name))
        return wrong(fmt::format("{} needs \"{}\"", m_out.kind->name, name));
    }
    if (m_out.tool && m_out.where != AnswerPart::tool_calls)
      return wrong("\"tool\" goes with \"where\": \"tool_calls\"");
    return std::move(m_out);
  }

 private:
  [[nodiscard]] tl::unexpected<Error> wrong(const std::string& why) const {
    return fail(ErrorKind::malformed, fmt::format("{}: {}", m_where, why));
  }

  Result<void> read_kind() {
    if (!m_json.contains("id") || !m_json["id"].is_string() ||
        m_json["id"].get<std::string>().empty()) {
      return wrong("needs an \"id\", a text");
    }
    m_out.id = m_json["id"].get<std::string>();
    m_where += fmt::format(" \"{}\"", escape_for_display(m_out.id));
    const std::string name = m_json.contains("kind") && m_json["kind"].is_string()
                                 ? m_json["kind"].get<std::string>()
                                 : std::string();
    std::vector<std::string_view> names;
    for (const CheckKind& kind : check_kinds()) {
      names.push_back(kind.name);
      if (kind.name == name) m_out.kind = &kind;
    }
    if (m_out.kind == nullptr)
      return wrong(fmt::format("\"{}\" is no kind; give one of {}", escape_for_display(name),
                               fmt::join(names, ", ")));
    return {};
  }

  Result<void> read_member(const std::string& name, const Json& value) {
    if (name == "id" || name == "kind") return {};
    if (name == "description") return expect(value.is_string(), name, "a text");
    bool needed = false;
    if (takes(*m_out.kind, name, needed)) return read_own(name, value);
    if (name == "where") return read_where(value);
    if (name == "min_rate") {
      m_out.min_rate = value.is_number() ? value.get<double>() : -1.0;
      return expect(m_out.min_rate >= 0.0 && m_out.min_rate <= 1.0, name, "a share from 0 to 1");
    }
    if (name == "custom_ids") return read_texts(name, value, m_out.custom_ids);
    if (name == "fenced" && (m_out.kind->json || m_out.kind->json_pair)) {
      m_out.fenced = value.is_boolean() && value.get<bool>();
      return expect(value.is_boolean(), name, "true or false");
    }
    if (name == "negate" && m_out.kind->negatable) {
      m_out.negate = value.is_boolean() && value.get<bool>();
      return expect(value.is_boolean(), name, "true or false");
    }
    if (name == "tool" && m_out.kind->answer == nullptr && !m_out.kind->of_pairs()) {
      if (value.is_string()) m_out.tool = value.get<std::string>();
      return expect(value.is_string(), name, "a name");
    }
    return wrong(fmt::format("\"{}\" means nothing in a check of kind {}", escape_for_display(name),
                             m_out.kind->name));
  }

  Result<void> expect(bool fits, const std::string& name, std::string_view what) const {
    if (!fits) return wrong(fmt::format("\"{}\": expected {}", name, what));
    return {};
  }

  Result<void> read_where(const Json& value) {
    for (const AnswerPart part :
         {AnswerPart::content, AnswerPart::reasoning, AnswerPart::tool_calls}) {
      if (value != std::string(name_of(part))) continue;
      m_out.where = part;
      const bool fits = m_out.kind->answer == nullptr &&
                        (part != AnswerPart::tool_calls || !m_out.kind->of_pairs());
      return expect(fits, "where", "nothing else than the content with this kind");
    }
    return expect(false, "where", "content, reasoning or tool_calls");
  }

  Result<void> read_texts(const std::string& name, const Json& value,
                          std::vector<std::string>& out) const {
    if (!value.is_array() || value.empty()) return expect(false, name, "a list of texts");
    for (const Json& one : value) {
      if (!one.is_string()) return expect(false, name, "a list of texts");
      out.push_back(one.get<std::string>());
    }
    return {};
  }

  Result<void> read_path(const std::string& text) {
    auto path = JsonPath::parse(text, m_where);
    if (!path) return tl::unexpected(path.error());
    m_out.paths.push_back(std::move(*path));
    return {};
  }

  // What only some kinds take.
  Result<void> read_own(const std::string& name, const Json& value) {
    if (name == "text" || name == "pattern" || name == "path" || name == "pick") {
      if (!value.is_string()) return expect(false, name, "a text");
      return read_text(name, value.get<std::string>());
    }
    if (name == "schema") {
      auto schema = JsonSchema::compile(value, m_where);
      if (!schema) return tl::unexpected(schema.error());
      m_out.schema = std::move(*schema);
      return {};
    }
    if (name == "paths") {
      std::vector<std::string> texts;
      if (auto done = read_texts(name, value, texts); !done) return done;
      for (const std::string& text : texts) {
        if (auto done = read_path(text); !done) return done;
      }
      return {};
    }
    if (name == "value" || name == "values") return read_value(name, value);
    if (!value.is_number() || value.get<double>() < 0.0)
      return expect(false, name, "a number from 0");
    if (name == "tolerance") m_out.tolerance = value.get<double>();
    if (name == "minimum") m_out.minimum = value.get<double>();
    if (name == "maximum") m_out.maximum = value.get<double>();
    return {};
  }

  Result<void> read_text(const std::string& name, const std::string& text) {
    if (name == "path") return read_path(text);
    if (name == "pick") {
      m_out.pick = text;
      return expect(text == "any" || text == "first" || text == "last" || text == "only", name,
                    "any, first, last or only");
    }
    m_out.text = text;
    if (name != "pattern") return {};
    auto pattern = TextPattern::compile(text, m_where);
    if (!pattern) return tl::unexpected(pattern.error());
    m_out.pattern = std::move(*pattern);
    return {};
  }

  Result<void> read_value(const std::string& name, const Json& value) {
    m_out.value = std::make_shared<const Json>(value);
    if (name == "values") {
      const bool fits = value.is_array() && std::all_of(value.begin(), value.end(), [](auto& one) {
                          return one.is_number() || one.is_string();
                        });
      return expect(fits, name, "a list of numbers");
    }
    if (m_out.kind->name == "number_near") return expect(value.is_number(), name, "a number");
    if (m_out.kind->answer == nullptr) return {};
    if (value.is_string()) m_out.text = value.get<std::string>();
    return expect(value.is_string(), name, "a text");
  }

  const Json& m_json;
  std::string m_where;
  Assertion m_out;
};

}  // namespace

Result<std::vector<Assertion>> read_assertions(std::string_view text, std::string_view name) {
  const std::string file = escape_for_display(name);
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded())
    return fail(ErrorKind::malformed,
                fmt::format("{}: is not JSON; give {{\"checks\": […]}}", file));
  if (!json.is_object() || json.size() != 1 || !json.contains("checks") ||
      !json["checks"].is_array() || json["checks"].empty()) {
    return fail(
        ErrorKind::malformed,
        fmt::format("{}: expected an object with a list \"checks\" and nothing else", file));
  }
  std::vector<Assertion> checks;
  std::set<std::string> ids;
  for (const Json& entry : json["checks"]) {
    auto check =
        AssertionReader(entry, fmt::format("{}: check {}", file, checks.size() + 1)).read();
    if (!check) return tl::unexpected(check.error());
    if (!ids.insert(check->id).second)
      return fail(ErrorKind::malformed, fmt::format("{}: the id \"{}\" is given twice", file,
                                                    escape_for_display(check->id)));
    checks.push_back(std::move(*check));
  }
  return checks;
}

}  // namespace driftscope
