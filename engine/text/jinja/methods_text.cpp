// SPDX-License-Identifier: Apache-2.0
// Methods of str: stripping, splitting, searching, replacing, case.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/machine.h"
#include "engine/text/jinja/method_table.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/searching.h"

namespace driftscope::jinja {
namespace {

template <std::string (*Function)(std::string_view)>
Value changed(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters parameters("a method of a text", arguments, {});
  return machine.text(Function(self.text()));
}

template <Ends Which>
Value stripped(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters parameters("strip", arguments, {"chars"});
  std::optional<std::string_view> characters;
  if (parameters.given(0)) characters = parameters.text(0);
  return machine.text(std::string(strip(self.text(), characters, Which)));
}

Value list_of(Machine& machine, const std::vector<std::string_view>& parts) {
  machine.charge(parts.size());
  List items;
  items.reserve(parts.size());
  for (const std::string_view part : parts) items.push_back(Value::of(part));
  return make_list(std::move(items));
}

template <auto Function>
Value parts_of(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters parameters("split", arguments, {"sep", "maxsplit"});
  std::optional<std::string_view> separator;
  if (parameters.given(0)) separator = parameters.text(0);
  return list_of(machine, Function(self.text(), separator, parameters.integer(1, -1)));
}

Value lines_of(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters parameters("splitlines", arguments, {"keepends"});
  return list_of(machine, split_lines(self.text(), parameters.boolean(0, false)));
}

Value partition(Machine& machine, const Value& self, const Arguments& arguments, bool last) {
  const Parameters parameters("partition", arguments, {"sep"});
  const std::string& text = self.text();
  const std::string& separator = parameters.text(0);
  if (separator.empty()) raise("partition: the separator is empty; give one");
  const std::size_t found = last ? find_last_text(text, separator) : find_text(text, separator);
  if (found == std::string::npos) {
    const Value none = Value::of("");
    return last ? make_tuple({none, none, self}) : make_tuple({self, none, none});
  }
  return make_tuple({machine.text(text.substr(0, found)), parameters.require(0),
                     machine.text(text.substr(found + separator.size()))});
}
Value partition_first(Machine& machine, const Value& self, const Arguments& arguments) {
  return partition(machine, self, arguments, false);
}
Value partition_last(Machine& machine, const Value& self, const Arguments& arguments) {
  return partition(machine, self, arguments, true);
}

// The part of the text between two character positions; nullopt: start lies behind the end.
struct Window {
  std::string_view text;
  std::int64_t first = 0;  // character
  bool valid = true;
};
Window window_of(const std::string& text, const Parameters& parameters) {
  const auto offsets = character_offsets(text);
  const auto size = static_cast<std::int64_t>(offsets.size()) - 1;
  const auto bound = [&](std::size_t index, std::int64_t otherwise) {
    if (!parameters.given(index)) return otherwise;
    const std::int64_t at = parameters.integer(index, otherwise);
    return at < 0 ? std::max<std::int64_t>(at + size, 0) : at;
  };
  const std::int64_t start = bound(1, 0);
  const std::int64_t stop = std::min(bound(2, size), size);
  if (start > stop) return {{}, start, false};
  const std::size_t begin = offsets[static_cast<std::size_t>(start)];
  const std::size_t end = offsets[static_cast<std::size_t>(stop)];
  return {std::string_view(text).substr(begin, end - begin), start, true};
}

std::int64_t search(const Value& self, const Arguments& arguments, bool last) {
  const Parameters parameters("find", arguments, {"sub", "start", "end"});
  const Window window = window_of(self.text(), parameters);
  const std::string& wanted = parameters.text(0);
  if (!window.valid) return -1;
  const std::size_t found =
      last ? find_last_text(window.text, wanted) : find_text(window.text, wanted);
  if (found == std::string_view::npos) return -1;
  return window.first + static_cast<std::int64_t>(count_characters(window.text.substr(0, found)));
}

template <bool Last, bool Must>
Value found_at(Machine& /*machine*/, const Value& self, const Arguments& arguments) {
  const std::int64_t at = search(self, arguments, Last);
  if (Must && at < 0) raise("index: the text is not in the other");
  return Value::of(at);
}

Value count_of(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters parameters("count", arguments, {"sub", "start", "end"});
  const Window window = window_of(self.text(), parameters);
  const std::string& wanted = parameters.text(0);
  if (!window.valid) return Value::of(std::int64_t{0});
  if (wanted.empty()) {
    return Value::of(static_cast<std::int64_t>(count_characters(window.text)) + 1);
  }
  return Value::of(static_cast<std::int64_t>(split(window.text, wanted, -1).size()) - 1 +
                   (machine.charge(), 0));
}

// startswith and endswith: one text or a tuple of them.
template <bool Start>
Value borders(Machine& /*machine*/, const Value& self, const Arguments& arguments) {
  const Parameters parameters("startswith", arguments, {"prefix", "start", "end"});
  const Window window = window_of(self.text(), parameters);
  const auto matches = [&](const Value& part) {
    if (!part.is_text()) raise("startswith and endswith need a text or a tuple of texts");
    return window.valid &&
           (Start ? window.text.starts_with(part.text()) : window.text.ends_with(part.text()));
  };
  const Value& wanted = parameters.require(0);
  if (wanted.is_undefined()) raise(wanted.why_undefined());
  if (wanted.is(Value::Kind::sequence) && wanted.sequence().form == Sequence::Form::tuple) {
    const List& items = wanted.sequence().items;
    return Value::of(std::any_of(items.begin(), items.end(), matches));
  }
  return Value::of(matches(wanted));
}

Value replaced(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters parameters("replace", arguments, {"old", "new", "count"});
  return machine.text(replace(self.text(), parameters.text(0), parameters.text(1),
                              parameters.integer(2, -1), kMaxTextBytes));
}

Value joined(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters parameters("join", arguments, {"iterable"});
  std::string text;
  bool first = true;
  for (const Value& part : iterate(machine, parameters.require(0))) {
    if (!part.is_text()) raise(fmt::format("join needs texts, not a {}", type_name(part)));
    if (!first) text += self.text();
    first = false;
    text += part.text();
    if (text.size() > kMaxTextBytes) machine.charge_text(text.size());
  }
  return machine.text(std::move(text));
}

Value without_prefix(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters parameters("removeprefix", arguments, {"prefix"});
  const std::string& prefix = parameters.text(0);
  if (!self.text().starts_with(prefix)) return self;
  return machine.text(self.text().substr(prefix.size()));
}

Value without_suffix(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters parameters("removesuffix", arguments, {"suffix"});
  const std::string& suffix = parameters.text(0);
  if (!self.text().ends_with(suffix)) return self;
  return machine.text(self.text().substr(0, self.text().size() - suffix.size()));
}

Value formatted(Machine& machine, const Value& self, const Arguments& arguments) {
  return machine.text(brace_format(machine, self.text(), arguments));
}

constexpr std::array kTextMethods{Method{"strip", &stripped<Ends::both>},
                                  Method{"lstrip", &stripped<Ends::left>},
                                  Method{"rstrip", &stripped<Ends::right>},
                                  Method{"split", &parts_of<&split>},
                                  Method{"rsplit", &parts_of<&split_right>},
                                  Method{"splitlines", &lines_of},
                                  Method{"partition", &partition_first},
                                  Method{"rpartition", &partition_last},
                                  Method{"startswith", &borders<true>},
                                  Method{"endswith", &borders<false>},
                                  Method{"find", &found_at<false, false>},
                                  Method{"rfind", &found_at<true, false>},
                                  Method{"index", &found_at<false, true>},
                                  Method{"rindex", &found_at<true, true>},
                                  Method{"count", &count_of},
                                  Method{"replace", &replaced},
                                  Method{"join", &joined},
                                  Method{"removeprefix", &without_prefix},
                                  Method{"removesuffix", &without_suffix},
                                  Method{"format", &formatted},
                                  Method{"upper", &changed<&upper>},
                                  Method{"lower", &changed<&lower>},
                                  Method{"casefold", &changed<&casefold>},
                                  Method{"title", &changed<&title>},
                                  Method{"capitalize", &changed<&capitalize>},
                                  Method{"swapcase", &changed<&swapcase>}};

}  // namespace

std::span<const Method> text_methods() { return kTextMethods; }

}  // namespace driftscope::jinja
