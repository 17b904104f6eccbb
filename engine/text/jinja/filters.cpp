// SPDX-License-Identifier: Apache-2.0
// Finding filters, and those for numbers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/text/jinja/filter_table.h"
#include "engine/text/jinja/literal.h"
#include "engine/text/jinja/operators.h"

namespace driftscope::jinja {
namespace {

using Kind = Value::Kind;

// int(value) of a number; nullopt where the number has none (nan, infinities).
std::optional<std::int64_t> truncated(double value) {
  if (!std::isfinite(value)) return std::nullopt;
  if (std::abs(value) >= 0x1p63) raise("int: more than 63 bits; they are not supported");
  return static_cast<std::int64_t>(value);
}

Value to_int(Machine& /*machine*/, const Value& input, const Arguments& arguments) {
  const Parameters parameters("int", arguments, {"default", "base"});
  const Value otherwise =
      parameters.find(0) != nullptr ? *parameters.find(0) : Value::of(std::int64_t{0});
  if (input.is_undefined()) raise(input.why_undefined());
  if (input.is(Kind::integer) || input.is(Kind::boolean)) return Value::of(input.integer());
  std::optional<std::int64_t> found;
  if (input.is(Kind::real)) {
    if (std::isinf(input.real())) return otherwise;
    found = truncated(input.real());
  } else if (input.is_text()) {
    found = parse_integer(input.text(), static_cast<int>(parameters.integer(1, 10)));
    if (!found) {
      const auto real = parse_real(input.text());
      if (real) found = truncated(*real);
    }
  }
  return found ? Value::of(*found) : otherwise;
}

Value to_float(Machine& /*machine*/, const Value& input, const Arguments& arguments) {
  const Parameters parameters("float", arguments, {"default"});
  if (input.is_undefined()) raise(input.why_undefined());
  if (input.is_number()) return Value::of(input.real());
  if (input.is_text()) {
    if (const auto real = parse_real(input.text())) return Value::of(*real);
  }
  return parameters.find(0) != nullptr ? *parameters.find(0) : Value::of(0.0);
}

Value absolute(Machine& /*machine*/, const Value& input, const Arguments& arguments) {
  const Parameters parameters("abs", arguments, {});
  if (input.is(Kind::real)) return Value::of(std::abs(input.real()));
  if (!input.is_number()) raise(fmt::format("abs does not work on a {}", type_name(input)));
  return input.integer() < 0 ? negative(input) : Value::of(input.integer());
}

// Half to even, on the exact decimal value, as CPython rounds.
double rounded(double value, std::int64_t precision) {
  if (!std::isfinite(value) || precision > 400) return value;
  if (precision < -400) return std::copysign(0.0, value);
  if (precision >= 0) return parse_real(fmt::format("{:.{}f}", value, precision)).value_or(value);
  const double scale = std::pow(10.0, static_cast<double>(-precision));
  return std::nearbyint(value / scale) * scale;
}

Value round_integer(std::int64_t value, std::int64_t precision) {
  if (precision >= 0) return Value::of(value);
  if (precision < -18) return Value::of(std::int64_t{0});
  std::int64_t scale = 1;
  for (std::int64_t i = 0; i > precision; --i) scale *= 10;
  std::int64_t quotient = value / scale;
  const std::int64_t rest = std::abs(value % scale);
  if (rest > scale / 2 || (rest == scale / 2 && quotient % 2 != 0)) quotient += value < 0 ? -1 : 1;
  return Value::of(quotient * scale);
}

Value round_filter(Machine& /*machine*/, const Value& input, const Arguments& arguments) {
  const Parameters parameters("round", arguments, {"precision", "method"});
  const std::int64_t precision = parameters.integer(0, 0);
  const std::string method = parameters.find(1) != nullptr ? parameters.text(1) : "common";
  if (method != "common" && method != "ceil" && method != "floor") {
    raise("round: method must be common, ceil or floor");
  }
  if (!input.is_number()) raise(fmt::format("round does not work on a {}", type_name(input)));
  if (method == "common") {
    return input.is(Kind::real) ? Value::of(rounded(input.real(), precision))
                                : round_integer(input.integer(), precision);
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = input.real() * scale;
  return Value::of((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

constexpr std::array kNumberFilters{FilterRow{"int", &to_int}, FilterRow{"float", &to_float},
                                    FilterRow{"abs", &absolute}, FilterRow{"round", &round_filter}};

}  // namespace

std::span<const FilterRow> number_filters() { return kNumberFilters; }

FilterFunction find_filter(std::string_view name) {
  for (const auto rows : {text_filters(), number_filters(), list_filters(), choice_filters()}) {
    const auto found = std::find_if(rows.begin(), rows.end(),
                                    [&](const FilterRow& row) { return row.name == name; });
    if (found != rows.end()) return found->function;
  }
  return nullptr;
}

FilterFunction require_filter(std::string_view name) {
  if (const FilterFunction found = find_filter(name)) return found;
  raise(fmt::format("unknown filter \"{}\"; write the expression without it", name));
}

}  // namespace driftscope::jinja
