// SPDX-License-Identifier: Apache-2.0
#include "engine/text/jinja/template.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "engine/text/jinja/interpreter.h"
#include "kernels/base/display_text.h"
#include "kernels/base/utf8.h"

namespace driftscope::jinja {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxTemplateBytes = std::size_t{4} << 20U;

Value value_of(const Json& json, int depth) {
  if (depth > kMaxValueDepth - 10) raise("the messages are nested too deeply; make them flatter");
  switch (json.type()) {
    case Json::value_t::boolean:
      return Value::of(json.get<bool>());
    case Json::value_t::number_integer:
      return Value::of(json.get<std::int64_t>());
    case Json::value_t::number_unsigned: {
      const auto number = json.get<std::uint64_t>();
      if (number > INT64_MAX) raise("the messages hold an integer of more than 63 bits");
      return Value::of(static_cast<std::int64_t>(number));
    }
    case Json::value_t::number_float:
      return Value::of(json.get<double>());
    case Json::value_t::string:
      return Value::of(json.get<std::string>());
    case Json::value_t::array: {
      List items;
      for (const Json& entry : json) items.push_back(value_of(entry, depth + 1));
      return make_list(std::move(items));
    }
    case Json::value_t::object: {
      Mapping mapping;
      for (const auto& [key, entry] : json.items()) {
        mapping.set(Value::of(key), value_of(entry, depth + 1));
      }
      return make_mapping(std::move(mapping));
    }
    case Json::value_t::null:
    case Json::value_t::binary:
    case Json::value_t::discarded:
      break;
  }
  return {};
}

tl::unexpected<Error> as_error(const std::string& name, const Failure& failure, int line) {
  return fail(ErrorKind::malformed,
              fmt::format("{}: line {}: {}{}", name, failure.line > 0 ? failure.line : line,
                          failure.refused ? "the template refuses these messages: " : "",
                          escape_for_display(failure.message)));
}

}  // namespace

std::string Date::text() const { return fmt::format("{:04}-{:02}-{:02}", year, month, day); }

Result<Date> Date::parse(std::string_view text) {
  Date date{.year = 0, .month = 0, .day = 0};
  const auto read = [&](std::size_t begin, std::size_t count, int& target) {
    const char* const from = text.data() + begin;
    return std::from_chars(from, from + count, target).ptr == from + count;
  };
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool written = text.size() == 10 && text[4] == '-' && text[7] == '-' &&
                       read(0, 4, date.year) && read(5, 2, date.month) && read(8, 2, date.day);
  if (written && date.year >= 1 && date.month >= 1 && date.month <= 12 && date.day >= 1) {
    const bool leap = (date.year % 4 == 0 && date.year % 100 != 0) || date.year % 400 == 0;
    const int days = kDays[date.month - 1] + (date.month == 2 && leap ? 1 : 0);
    if (date.day <= days) return date;
  }
  return fail(ErrorKind::usage,
              fmt::format("date \"{}\": give a day as YYYY-MM-DD", escape_for_display(text)));
}

Result<Template> Template::parse(std::string_view source, std::string name) {
  if (source.size() > kMaxTemplateBytes) {
    return fail(ErrorKind::malformed, fmt::format("{}: a template of {} bytes; at most {} are read",
                                                  name, source.size(), kMaxTemplateBytes));
  }
  if (const std::size_t bad = find_invalid_utf8(source); bad != std::string_view::npos) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: is not UTF-8 at byte {}; convert it to UTF-8", name, bad));
  }
  try {
    return Template(std::make_shared<const Program>(parse_program(source, name)));
  } catch (const Failure& failure) {
    return as_error(name, failure, 1);
  }
}

Result<Rendered> Template::render(const Json& context, const Date& date,
                                  const Limits& limits) const {
  Interpreter interpreter(*m_program, limits, date);
  try {
    std::vector<std::pair<std::string, Value>> names;
    for (const auto& [key, value] : context.items()) names.emplace_back(key, value_of(value, 0));
    Rendered rendered;
    rendered.text = interpreter.run(std::move(names));
    rendered.date_used = interpreter.date_used();
    return rendered;
  } catch (const Failure& failure) {
    return as_error(m_program->name, failure, interpreter.line());
  }
}

}  // namespace driftscope::jinja
