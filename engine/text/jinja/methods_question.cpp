// SPDX-License-Identifier: Apache-2.0
// Methods of str that ask what characters it holds, and those that pad.
#include <algorithm>
#include <array>

#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/machine.h"
#include "engine/text/jinja/method_table.h"

namespace driftscope::jinja {
namespace {

bool is_alphanumeric(char32_t c) {
  return is_alphabetic(c) || is_decimal(c) || is_digit(c) || is_numeric(c);
}

// All characters are such, and there is at least one.
template <bool (*Question)(char32_t)>
Value all_are(Machine& /*machine*/, const Value& self, const Arguments& arguments) {
  const Parameters parameters("a question of a text", arguments, {});
  const std::u32string characters = characters_of(self.text());
  return Value::of(!characters.empty() &&
                   std::all_of(characters.begin(), characters.end(), Question));
}

Value all_printable(Machine& /*machine*/, const Value& self, const Arguments& arguments) {
  const Parameters parameters("isprintable", arguments, {});
  const std::u32string characters = characters_of(self.text());
  return Value::of(std::all_of(characters.begin(), characters.end(), &is_printable));
}

Value all_ascii(Machine& /*machine*/, const Value& self, const Arguments& arguments) {
  const Parameters parameters("isascii", arguments, {});
  const std::string& text = self.text();
  return Value::of(std::all_of(text.begin(), text.end(),
                               [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
}

Value all_upper(Machine& /*machine*/, const Value& self, const Arguments& arguments) {
  const Parameters parameters("isupper", arguments, {});
  return Value::of(is_all_upper(self.text()));
}

Value all_lower(Machine& /*machine*/, const Value& self, const Arguments& arguments) {
  const Parameters parameters("islower", arguments, {});
  return Value::of(is_all_lower(self.text()));
}

Value titled(Machine& /*machine*/, const Value& self, const Arguments& arguments) {
  const Parameters parameters("istitle", arguments, {});
  bool inside = false;
  bool any = false;
  for (const char32_t c : characters_of(self.text())) {
    const bool begins = is_upper_case(c) || is_title_case(c);
    if ((begins && inside) || (is_lower_case(c) && !inside)) return Value::of(false);
    inside = begins || is_lower_case(c);
    any = any || inside;
  }
  return Value::of(any);
}

enum class Side : std::uint8_t { left, right, both };

// The text on this side of the padding.
template <Side Where>
Value padded(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters parameters("padding", arguments, {"width", "fillchar"});
  const std::string fill = parameters.find(1) != nullptr ? parameters.text(1) : " ";
  if (count_characters(fill) != 1) raise("the padding of a text is one character");
  const auto missing = integer_of(parameters.require(0), "width") -
                       static_cast<std::int64_t>(count_characters(self.text()));
  if (missing <= 0) return self;
  if (static_cast<std::size_t>(missing) > kMaxTextBytes) machine.charge_text(kMaxTextBytes + 1);
  const std::int64_t width = missing + static_cast<std::int64_t>(count_characters(self.text()));
  const std::int64_t left = Where == Side::left    ? 0
                            : Where == Side::right ? missing
                                                   : missing / 2 + (missing & width & 1);
  std::string text;
  for (std::int64_t i = 0; i < left; ++i) text += fill;
  text += self.text();
  for (std::int64_t i = left; i < missing; ++i) text += fill;
  return machine.text(std::move(text));
}

Value zero_filled(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters parameters("zfill", arguments, {"width"});
  const std::string& text = self.text();
  const auto missing = parameters.integer(0, 0) - static_cast<std::int64_t>(count_characters(text));
  if (missing <= 0) return self;
  if (static_cast<std::size_t>(missing) > kMaxTextBytes) machine.charge_text(kMaxTextBytes + 1);
  const std::size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  return machine.text(text.substr(0, sign) + std::string(static_cast<std::size_t>(missing), '0') +
                      text.substr(sign));
}

constexpr std::array kQuestions{Method{"isspace", &all_are<&is_space>},
                                Method{"isalpha", &all_are<&is_alphabetic>},
                                Method{"isalnum", &all_are<&is_alphanumeric>},
                                Method{"isdigit", &all_are<&is_digit>},
                                Method{"isdecimal", &all_are<&is_decimal>},
                                Method{"isnumeric", &all_are<&is_numeric>},
                                Method{"isprintable", &all_printable},
                                Method{"isascii", &all_ascii},
                                Method{"isupper", &all_upper},
                                Method{"islower", &all_lower},
                                Method{"istitle", &titled},
                                Method{"ljust", &padded<Side::left>},
                                Method{"rjust", &padded<Side::right>},
                                Method{"center", &padded<Side::both>},
                                Method{"zfill", &zero_filled}};

}  // namespace

std::span<const Method> text_question_methods() { return kQuestions; }

}  // namespace driftscope::jinja
