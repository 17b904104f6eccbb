// SPDX-License-Identifier: Apache-2.0
// Fields of a protocol buffer message in wire order (protobuf.dev, "Encoding"). Every length is
// checked against what is left.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

namespace driftscope {

class ProtobufReader {
 public:
  enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
  struct Field {
    std::uint32_t number = 0;
    Wire wire = Wire::varint;
    std::uint64_t value = 0;  // varint, fixed64, fixed32
    std::string_view bytes;   // Wire::bytes
    [[nodiscard]] float real() const {
      return std::bit_cast<float>(static_cast<std::uint32_t>(value));
    }
  };

  explicit ProtobufReader(std::string_view message) : m_rest(message) {}

  // The next field; nothing at the end, and where the message is damaged.
  [[nodiscard]] std::optional<Field> next();
  [[nodiscard]] bool damaged() const { return m_damaged; }

 private:
  std::optional<std::uint64_t> varint();
  std::optional<std::uint64_t> fixed(std::size_t bytes);
  bool read_value(Field& field);
  std::string_view m_rest;
  bool m_damaged = false;
};

}  // namespace driftscope
