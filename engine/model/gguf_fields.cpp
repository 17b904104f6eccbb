// SPDX-License-Identifier: Apache-2.0
#include "engine/model/gguf_fields.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

constexpr std::int64_t kHighestCount = 0x7fffffff;
constexpr std::int64_t kNoId = 0xffffffff;

template <class T>
T element(const GgufValue& value, std::uint64_t index) {
  T result{};
  std::memcpy(&result, value.bytes.data() + index * sizeof(T), sizeof(T));
  return result;
}

// Nothing where the type is no integer or the value is beyond 64 signed bits.
std::optional<std::int64_t> integer_element(const GgufValue& value, std::uint64_t index) {
  switch (value.type) {
    case GgufType::u8:
    case GgufType::boolean:
      return element<std::uint8_t>(value, index);
    case GgufType::i8:
      return element<std::int8_t>(value, index);
    case GgufType::u16:
      return element<std::uint16_t>(value, index);
    case GgufType::i16:
      return element<std::int16_t>(value, index);
    case GgufType::u32:
      return element<std::uint32_t>(value, index);
    case GgufType::i32:
      return element<std::int32_t>(value, index);
    case GgufType::i64:
      return element<std::int64_t>(value, index);
    case GgufType::u64: {
      const auto wide = element<std::uint64_t>(value, index);
      if (wide > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) return std::nullopt;
      return static_cast<std::int64_t>(wide);
    }
    case GgufType::f32:
    case GgufType::f64:
    case GgufType::string:
    case GgufType::list:
      break;
  }
  return std::nullopt;
}

}  // namespace

double shortest_decimal(float value) {
  std::array<char, 64> text{};
  const auto written = std::to_chars(text.data(), text.data() + text.size(), value);
  double result = value;
  std::from_chars(text.data(), written.ptr, result);
  return result;
}

GgufFields::GgufFields(const GgufHeader& header, std::string name)
    : m_header(header), m_name(std::move(name)) {}

const GgufValue* GgufFields::find(std::string_view key) const {
  const auto found = m_header.values.find(key);
  return found == m_header.values.end() ? nullptr : &found->second;
}

const GgufValue* GgufFields::find_needed(std::string_view key, bool needed) {
  const GgufValue* value = find(key);
  if (value == nullptr && needed) {
    refuse(fmt::format("metadata {} is missing; convert the model again", key));
  }
  return value;
}

void GgufFields::refuse(std::string reason) {
  adopt({.kind = ErrorKind::malformed,
         .message = fmt::format("{}: {}", m_name, reason),
         .detail = {}});
}

void GgufFields::adopt(Error error) {
  if (good()) m_error = std::move(error);
}

void GgufFields::refuse_type(std::string_view key, const GgufValue& value,
                             std::string_view expected) {
  refuse(fmt::format("metadata {} at byte {} is {}{}, not {}; convert the model again", key,
                     value.offset, value.is_list ? "a list of " : "", gguf_type_name(value.type),
                     expected));
}

std::optional<std::int64_t> GgufFields::integer(std::string_view key, bool needed) {
  const GgufValue* value = find_needed(key, needed);
  if (value == nullptr) return std::nullopt;
  if (value->type == GgufType::boolean || value->count == 0) {
    refuse_type(key, *value, "an integer");
    return std::nullopt;
  }
  const auto first = integer_element(*value, 0);
  if (!first) {
    refuse_type(key, *value, "an integer of 64 bits");
    return std::nullopt;
  }
  for (std::uint64_t i = 1; i < value->count; ++i) {
    if (integer_element(*value, i) == first) continue;
    refuse(fmt::format("metadata {} at byte {} differs between layers, which is not supported", key,
                       value->offset));
    return std::nullopt;
  }
  return first;
}

std::int64_t GgufFields::whole(std::string_view key, std::optional<std::int64_t> absent) {
  const auto value = integer(key, !absent);
  if (!value) return absent.value_or(0);
  if (*value >= 0 && *value <= kHighestCount) return *value;
  refuse(fmt::format("metadata {} at byte {} is {}; 0 to {} are allowed", key, find(key)->offset,
                     *value, kHighestCount));
  return 0;
}

std::int64_t GgufFields::count(std::string_view key, std::optional<std::int64_t> absent) {
  const std::int64_t value = whole(key, absent);
  if (value > 0 || !good() || !has(key)) return value;
  refuse(fmt::format("metadata {} at byte {} is 0; it must be from 1 on", key, find(key)->offset));
  return value;
}

double GgufFields::positive(std::string_view key, std::optional<double> absent) {
  const GgufValue* value = find_needed(key, !absent);
  if (value == nullptr) return absent.value_or(0.0);
  double result = 0.0;
  if (value->is_list || (value->type != GgufType::f32 && value->type != GgufType::f64)) {
    refuse_type(key, *value, "an f32");
    return result;
  }
  result = value->type == GgufType::f32 ? shortest_decimal(element<float>(*value, 0))
                                        : element<double>(*value, 0);
  if (!std::isfinite(result) || result <= 0.0) {
    refuse(fmt::format("metadata {} at byte {} is {}; it must be above 0", key, value->offset,
                       result));
  }
  return result;
}

bool GgufFields::flag(std::string_view key, bool absent) {
  const GgufValue* value = find(key);
  if (value == nullptr) return absent;
  if (value->is_list || value->type != GgufType::boolean) {
    refuse_type(key, *value, "a bool");
    return absent;
  }
  return element<std::uint8_t>(*value, 0) != 0;
}

std::string_view GgufFields::text(std::string_view key, std::optional<std::string_view> absent) {
  const GgufValue* value = find_needed(key, !absent);
  if (value == nullptr) return absent.value_or("");
  if (value->is_list || value->type != GgufType::string) {
    refuse_type(key, *value, "a string");
    return {};
  }
  return gguf_strings(*value).front();
}

std::optional<std::int64_t> GgufFields::id(std::string_view key) {
  const auto value = integer(key, false);
  if (!value || *value == kNoId || *value == -1) return std::nullopt;
  if (*value >= 0 && *value <= kHighestCount) return value;
  refuse(fmt::format("metadata {} at byte {} is {}, which is no token id", key, find(key)->offset,
                     *value));
  return std::nullopt;
}

std::vector<std::string_view> GgufFields::texts(std::string_view key) {
  const GgufValue* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_list || value->type != GgufType::string) {
    refuse_type(key, *value, "a list of strings");
    return {};
  }
  return gguf_strings(*value);
}

std::vector<float> GgufFields::floats(std::string_view key) {
  const GgufValue* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_list || value->type != GgufType::f32) {
    refuse_type(key, *value, "a list of f32");
    return {};
  }
  std::vector<float> result(value->count);
  if (!result.empty()) std::memcpy(result.data(), value->bytes.data(), value->bytes.size());
  return result;
}

std::vector<std::int64_t> GgufFields::integers(std::string_view key) {
  const GgufValue* value = find(key);
  if (value == nullptr) return {};
  std::vector<std::int64_t> result;
  result.reserve(value->is_list ? value->count : 0);
  for (std::uint64_t i = 0; value->is_list && i < value->count; ++i) {
    const auto item = integer_element(*value, i);
    if (!item) break;
    result.push_back(*item);
  }
  if (!value->is_list || result.size() != value->count) {
    refuse_type(key, *value, "a list of integers");
    return {};
  }
  return result;
}

}  // namespace driftscope
