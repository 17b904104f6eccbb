// SPDX-License-Identifier: Apache-2.0
// strftime in the C locale, for a clock that stands at midnight.
#include <fmt/format.h>

#include <array>

#include "engine/text/jinja/machine.h"

namespace driftscope::jinja {
namespace {

constexpr std::array<std::string_view, 12> kMonths{"January",   "February", "March",    "April",
                                                   "May",       "June",     "July",     "August",
                                                   "September", "October",  "November", "December"};
constexpr std::array<std::string_view, 7> kDays{"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                "Thursday", "Friday", "Saturday"};

int day_of_year(const Date& date) {
  constexpr std::array<int, 12> kBefore{0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
  const bool leap = (date.year % 4 == 0 && date.year % 100 != 0) || date.year % 400 == 0;
  return kBefore[static_cast<std::size_t>(date.month - 1)] + date.day +
         (leap && date.month > 2 ? 1 : 0);
}

// 0: Sunday. Sakamoto's rule.
int day_of_week(const Date& date) {
  constexpr std::array<int, 12> kShift{0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4};
  const int year = date.month < 3 ? date.year - 1 : date.year;
  return (year + year / 4 - year / 100 + year / 400 +
          kShift[static_cast<std::size_t>(date.month - 1)] + date.day) %
         7;
}

std::string number(int value, int width, char fill, bool bare) {
  if (bare) return fmt::format("{}", value);
  return fill == '0' ? fmt::format("{:0{}}", value, width) : fmt::format("{:{}}", value, width);
}

std::string field(const Date& date, char letter, bool bare) {
  const auto month = kMonths[static_cast<std::size_t>(date.month - 1)];
  const auto day = kDays[static_cast<std::size_t>(day_of_week(date))];
  switch (letter) {
    case 'Y':
      return fmt::format("{}", date.year);
    case 'y':
      return number(date.year % 100, 2, '0', bare);
    case 'm':
      return number(date.month, 2, '0', bare);
    case 'd':
      return number(date.day, 2, '0', bare);
    case 'e':
      return number(date.day, 2, ' ', bare);
    case 'B':
      return std::string(month);
    case 'b':
    case 'h':
      return std::string(month.substr(0, 3));
    case 'A':
      return std::string(day);
    case 'a':
      return std::string(day.substr(0, 3));
    case 'j':
      return number(day_of_year(date), 3, '0', bare);
    case 'u':
      return number(day_of_week(date) == 0 ? 7 : day_of_week(date), 1, '0', true);
    case 'w':
      return number(day_of_week(date), 1, '0', true);
    case 'H':
    case 'M':
    case 'S':
      return bare ? "0" : "00";
    case 'I':
      return "12";
    case 'p':
      return "AM";
    case 'f':
      return "000000";
    case 'F':
      return fmt::format("{}-{:02}-{:02}", date.year, date.month, date.day);
    case 'D':
    case 'x':
      return fmt::format("{:02}/{:02}/{:02}", date.month, date.day, date.year % 100);
    case 'T':
    case 'X':
      return "00:00:00";
    case 'R':
      return "00:00";
    case 'c':
      return fmt::format("{} {} {:2} 00:00:00 {}", day.substr(0, 3), month.substr(0, 3), date.day,
                         date.year);
    case 'n':
      return "\n";
    case 't':
      return "\t";
    case 'Z':
    case 'z':
      return "";  // the clock has no time zone
    case '%':
      return "%";
    default:
      break;
  }
  raise(
      fmt::format("strftime_now: %{} is not supported; supported are Y y m d e B b A a j u w H M "
                  "S I p F D T R c",
                  letter));
}

}  // namespace

std::string format_date(const Date& date, std::string_view format) {
  std::string text;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      text += format[i];
      continue;
    }
    const bool bare = format[i + 1] == '-' && i + 2 < format.size();
    i += bare ? 2 : 1;
    text += field(date, format[i], bare);
    if (text.size() > kMaxTextBytes) raise("strftime_now makes too long a text");
  }
  return text;
}

}  // namespace driftscope::jinja
