// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/filter_table.h"
#include "engine/text/jinja/operators.h"
#include "kernels/base/utf8.h"

namespace driftscope::jinja {
namespace {

// Text made of the input and nothing else.
template <std::string (*Function)(std::string_view)>
Value changed(Machine& machine, const Value& input, const Arguments& arguments) {
  const Parameters parameters("a filter of a text", arguments, {});
  return machine.text(Function(text_of(input)));
}

// The first letter of what stands between blanks, dashes and opening brackets.
std::string title_words(std::string_view text) {
  std::string result;
  const auto separates = [](char32_t c) {
    return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
  };
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size()) {
      const Utf8Step step = decode_utf8(text, end);
      if (separates(step.code_point)) break;
      end += step.length;
    }
    if (end > i) {
      const std::size_t first = decode_utf8(text, i).length;
      result += upper(text.substr(i, first));
      result += lower(text.substr(i + first, end - i - first));
    }
    if (end < text.size()) {
      const std::size_t length = decode_utf8(text, end).length;
      result += text.substr(end, length);
      end += length;
    }
    i = end;
  }
  return result;
}

std::string escape_html(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&#34;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string unchanged(std::string_view text) { return std::string(text); }

Value trim(Machine& machine, const Value& input, const Arguments& arguments) {
  const Parameters parameters("trim", arguments, {"chars"});
  const std::string text = text_of(input);
  std::optional<std::string_view> characters;
  if (parameters.given(0)) characters = parameters.text(0);
  return machine.text(std::string(strip(text, characters, Ends::both)));
}

Value replace_filter(Machine& machine, const Value& input, const Arguments& arguments) {
  const Parameters parameters("replace", arguments, {"old", "new", "count"});
  const std::int64_t count = parameters.given(2) ? parameters.integer(2, -1) : -1;
  return machine.text(replace(text_of(input), text_of(parameters.require(0)),
                              text_of(parameters.require(1)), count, kMaxTextBytes));
}

std::string indent_lines(const std::string& text, const std::string& space, bool blank) {
  std::string result;
  // With the line break that Jinja adds, so that an empty text is one line.
  const std::string whole = text + "\n";
  bool is_first = true;
  for (const std::string_view line : split_lines(whole, false)) {
    if (!is_first) {
      result += '\n';
      if (blank || !line.empty()) result += space;
    }
    is_first = false;
    result += line;
    if (result.size() > kMaxTextBytes) raise("indent makes too long a text");
  }
  return result;
}

Value indent(Machine& machine, const Value& input, const Arguments& arguments) {
  const Parameters parameters("indent", arguments, {"width", "first", "blank"});
  if (!input.is_text()) raise(fmt::format("indent does not work on a {}", type_name(input)));
  std::string space(4, ' ');
  if (const Value* width = parameters.find(0)) {
    if (width->is_text()) {
      space = width->text();
    } else {
      const std::int64_t count = integer_of(*width, "the width of indent");
      if (count > 1000000) raise("indent: the width is too large");
      space = std::string(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)), ' ');
    }
  }
  std::string text = indent_lines(input.text(), space, parameters.boolean(2, false));
  return machine.text(parameters.boolean(1, false) ? space + text : text);
}

Value format_filter(Machine& machine, const Value& input, const Arguments& arguments) {
  if (!arguments.named.empty() && !arguments.positional.empty()) {
    raise("format takes values by position or by name, not both");
  }
  Value values = make_tuple(arguments.positional);
  if (!arguments.named.empty()) {
    Mapping mapping;
    for (const auto& [name, value] : arguments.named) mapping.set(Value::of(name), value);
    values = make_mapping(std::move(mapping));
  }
  return machine.text(percent_format(machine, text_of(input), values));
}

Value tojson(Machine& machine, const Value& input, const Arguments& arguments) {
  const Parameters parameters("tojson", arguments,
                              {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonForm form{.sort_keys = parameters.boolean(3, false),
                .ensure_ascii = parameters.boolean(0, false)};
  if (parameters.given(1)) {
    const Value& given = *parameters.find(1);
    if (!given.is_text() && integer_of(given, "tojson: indent") > 1000) {
      raise("tojson: indent is too large");
    }
    form.indent =
        given.is_text()
            ? given.text()
            : std::string(static_cast<std::size_t>(std::max<std::int64_t>(given.integer(), 0)),
                          ' ');
  }
  if (parameters.given(2)) {
    const List parts = iterate(machine, *parameters.find(2));
    if (parts.size() != 2 || !parts[0].is_text() || !parts[1].is_text()) {
      raise("tojson: separators are two texts");
    }
    form.item_separator = parts[0].text();
    form.key_separator = parts[1].text();
  }
  return machine.text(json_text(machine, input, form));
}

Value wordcount(Machine& /*machine*/, const Value& input, const Arguments& arguments) {
  const Parameters parameters("wordcount", arguments, {});
  std::int64_t words = 0;
  bool inside = false;
  for (const char32_t c : characters_of(text_of(input))) {
    const bool word = c == '_' || is_alphabetic(c) || is_decimal(c) || is_numeric(c);
    if (word && !inside) ++words;
    inside = word;
  }
  return Value::of(words);
}

Value center(Machine& machine, const Value& input, const Arguments& arguments) {
  const Parameters parameters("center", arguments, {"width"});
  const Value text = Value::of(text_of(input));
  const Value method = *method_of(text, "center");
  return method.callable().call(
      machine, Arguments{.positional = {Value::of(parameters.integer(0, 80))}, .named = {}});
}

constexpr std::array kTextFilters{
    FilterRow{"upper", &changed<&upper>}, FilterRow{"lower", &changed<&lower>},
    FilterRow{"capitalize", &changed<&capitalize>}, FilterRow{"title", &changed<&title_words>},
    FilterRow{"string", &changed<&unchanged>},
    // Without automatic escaping a safe text is a text.
    FilterRow{"safe", &changed<&unchanged>}, FilterRow{"escape", &changed<&escape_html>},
    FilterRow{"e", &changed<&escape_html>}, FilterRow{"forceescape", &changed<&escape_html>},
    FilterRow{"trim", &trim}, FilterRow{"replace", &replace_filter}, FilterRow{"indent", &indent},
    FilterRow{"format", &format_filter}, FilterRow{"tojson", &tojson},
    FilterRow{"wordcount", &wordcount}, FilterRow{"center", &center}};

}  // namespace

std::span<const FilterRow> text_filters() { return kTextFilters; }

}  // namespace driftscope::jinja
