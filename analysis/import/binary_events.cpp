// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/binary_events.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>

#include "analysis/import/json_document.h"
#include "analysis/import/readable_text.h"

namespace driftscope {
namespace {

constexpr std::size_t kPrelude = 12;
constexpr std::size_t kSmallest = 16;  // prelude and the last checksum

std::uint32_t number_at(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value = value << 8U | static_cast<unsigned char>(bytes[at + i]);
  }
  return value;
}

// CRC-32 as in gzip and Ethernet: polynomial 0xEDB88320, reflected.
std::uint32_t crc32(std::string_view bytes) {
  static const auto kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit)
        value = (value & 1U) ? value >> 1U ^ 0xEDB88320U : value >> 1U;
      table[i] = value;
    }
    return table;
  }();
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char c : bytes)
    crc = crc >> 8U ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFFU];
  return ~crc;
}

struct MessageHeaders {
  std::string event_type, message_type, exception_type;
};

// Bytes of a value by its type; empty where the type is unknown.
std::optional<std::size_t> value_size(std::string_view headers, std::size_t at,
                                      std::uint32_t type) {
  constexpr std::array<std::size_t, 6> kFixed{0, 0, 1, 2, 4, 8};  // true, false, i8, i16, i32, i64
  if (type < kFixed.size()) return kFixed[type];
  if (type == 8) return 8;   // a time
  if (type == 9) return 16;  // a UUID
  if ((type != 6 && type != 7) || at + 2 > headers.size()) return std::nullopt;
  return 2 + number_at(headers, at, 2);
}

MessageHeaders read_message_headers(std::string_view headers) {
  MessageHeaders out;
  std::size_t at = 0;
  while (at < headers.size()) {
    const std::size_t length = number_at(headers, at++, 1);
    if (length + 1 > headers.size() - at) break;
    const std::string_view name = headers.substr(at, length);
    at += length;
    const std::uint32_t type = number_at(headers, at++, 1);
    const auto size = value_size(headers, at, type);
    if (!size || *size > headers.size() - at) break;
    if (type == 7) {
      const std::string value(headers.substr(at + 2, *size - 2));
      if (name == ":event-type") out.event_type = value;
      if (name == ":message-type") out.message_type = value;
      if (name == ":exception-type" || name == ":error-code") out.exception_type = value;
    }
    at += *size;
  }
  return out;
}

std::string event_text(const MessageHeaders& headers, std::string_view payload) {
  JsonDocument document;
  const bool json = static_cast<bool>(document.parse(payload));
  if (json && headers.event_type == "chunk") {
    if (auto decoded = bytes_of_base64(document.root()["bytes"].raw());
        decoded && !decoded->empty()) {
      return *decoded;
    }
  }
  const std::string& name =
      headers.exception_type.empty() ? headers.event_type : headers.exception_type;
  const bool plain = name.find_first_of("\"\\") == std::string::npos && !name.empty();
  if (!json || !plain) return std::string(payload);
  return fmt::format("{{\"{}\":{}}}", name, payload);
}

}  // namespace

bool is_binary_event_stream(std::string_view bytes) {
  if (bytes.size() < kPrelude) return false;
  const std::uint32_t total = number_at(bytes, 0, 4);
  return total >= kSmallest && number_at(bytes, 4, 4) <= total - kSmallest &&
         crc32(bytes.substr(0, 8)) == number_at(bytes, 8, 4);
}

BinaryEvents read_binary_events(std::string_view bytes) {
  BinaryEvents out;
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::string_view rest = bytes.substr(at);
    if (!is_binary_event_stream(rest)) {
      out.problem = fmt::format("byte {}: no message begins here, or its checksum is wrong", at);
      break;
    }
    const std::size_t total = number_at(rest, 0, 4);
    if (total > rest.size()) {
      out.problem = fmt::format("byte {}: the file ends inside a message", at);
      break;
    }
    const std::string_view message = rest.substr(0, total);
    if (crc32(message.substr(0, total - 4)) != number_at(message, total - 4, 4)) {
      out.problem = fmt::format("byte {}: the checksum of a message is wrong", at);
      break;
    }
    const std::size_t headers = number_at(message, 4, 4);
    const std::string_view payload =
        message.substr(kPrelude + headers, total - kPrelude - headers - 4);
    if (!payload.empty()) {
      out.events.push_back(
          event_text(read_message_headers(message.substr(kPrelude, headers)), payload));
    }
    at += total;
  }
  return out;
}

}  // namespace driftscope
