// SPDX-License-Identifier: Apache-2.0
#include "engine/text/protobuf_reader.h"

namespace driftscope {

std::optional<std::uint64_t> ProtobufReader::varint() {
  constexpr std::size_t kLongest = 10;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < kLongest && i < m_rest.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(m_rest[i]);
    value |= std::uint64_t{byte & 0x7FU} << (7 * i);
    if ((byte & 0x80U) != 0) continue;
    m_rest.remove_prefix(i + 1);
    return value;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> ProtobufReader::fixed(std::size_t bytes) {
  if (bytes > m_rest.size()) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;)
    value = (value << 8U) | static_cast<std::uint8_t>(m_rest[i]);
  m_rest.remove_prefix(bytes);
  return value;
}

bool ProtobufReader::read_value(Field& field) {
  std::optional<std::uint64_t> value;
  switch (field.wire) {
    case Wire::varint:
      value = varint();
      break;
    case Wire::fixed64:
      value = fixed(8);
      break;
    case Wire::fixed32:
      value = fixed(4);
      break;
    case Wire::bytes:
      value = varint();
      if (!value || *value > m_rest.size()) return false;
      field.bytes = m_rest.substr(0, static_cast<std::size_t>(*value));
      m_rest.remove_prefix(field.bytes.size());
      return true;
  }
  if (!value) return false;
  field.value = *value;
  return true;
}

std::optional<ProtobufReader::Field> ProtobufReader::next() {
  if (m_damaged || m_rest.empty()) return std::nullopt;
  constexpr std::uint64_t kHighestTag = 0xFFFFFFFFU;
  const auto tag = varint();
  const auto wire = tag ? static_cast<std::uint8_t>(*tag & 7U) : std::uint8_t{7};
  const bool known = wire <= 2 || wire == 5;  // groups are of no use here
  Field field;
  if (tag && *tag <= kHighestTag && *tag >= 8 && known) {
    field.number = static_cast<std::uint32_t>(*tag >> 3U);
    field.wire = static_cast<Wire>(wire);
    if (read_value(field)) return field;
  }
  m_damaged = true;
  return std::nullopt;
}

}  // namespace driftscope
