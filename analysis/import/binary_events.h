// SPDX-License-Identifier: Apache-2.0
// application/vnd.amazon.eventstream: how Bedrock sends streams over the wire.
//   message: u32 total bytes, u32 header bytes, u32 CRC-32 of these eight, headers, payload,
//   u32 CRC-32 of all before it; all big-endian. Header: u8 length, name, u8 type, value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace driftscope {

struct BinaryEvents {
  // One JSON text per event: of "chunk" messages what their base64 holds, of others
  // {"event type": payload}.
  std::vector<std::string> events;
  std::string problem;  // where the reading ended early, and why; empty: it was whole
};

// Whether the first message's lengths and the checksum over them are right.
[[nodiscard]] bool is_binary_event_stream(std::string_view bytes);
[[nodiscard]] BinaryEvents read_binary_events(std::string_view bytes);

}  // namespace driftscope
