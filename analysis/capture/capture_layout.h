// SPDX-License-Identifier: Apache-2.0
// Names and limits of a capture file, shared by writer and reader. FORMAT.md explains them.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/trace/trace.h"

namespace driftscope::layout {

static_assert(
    std::endian::native == std::endian::little,
    "captures are little-endian; a big-endian host needs conversions in writer and reader");

inline constexpr std::string_view kFormatName = "driftscope-capture";

// Limits that the reader imposes before it allocates; the writer refuses to go beyond them.
inline constexpr std::int64_t kMaximumVocabulary = std::int64_t{1} << 24;
inline constexpr std::int64_t kMaximumWidth = std::int64_t{1} << 24;  // of a tap row
inline constexpr std::int64_t kMaximumLayer = std::int64_t{1} << 20;
inline constexpr std::int64_t kMaximumTopK = std::int64_t{1} << 20;
inline constexpr std::int64_t kMaximumTaps = 1 << 16;                 // per lane
inline constexpr std::int64_t kMaximumText = std::int64_t{1} << 26;   // bytes of one text
inline constexpr std::int64_t kMaximumAttribute = 60000;              // bytes, below HDF5's 64 KiB
inline constexpr std::int64_t kMaximumChunk = std::int64_t{1} << 27;  // bytes

inline constexpr std::int64_t kStateLength = 16;  // bytes of the attribute `state`
inline constexpr std::int64_t kStopLength = 64;   // bytes of the attribute `stop`

// On datasets that do not grow by rows: the CRC-32C of all their bytes.
inline constexpr std::string_view kCheckAttribute = "crc32c";

// Columns of the dataset crc32c: 0 covers the small columns of the step, 1 the logits, 2 … the
// taps.
inline constexpr std::int64_t kCrcStepColumn = 0;
inline constexpr std::int64_t kCrcLogitsColumn = 1;
inline constexpr std::int64_t kCrcFirstTapColumn = 2;

[[nodiscard]] inline std::string lane_path(Lane lane) {
  return "/traces/" + std::string(lane_name(lane));
}
// Relative to the lane's group.
[[nodiscard]] inline std::string tap_path(int layer, std::string_view operation) {
  return "taps/" + std::to_string(layer) + "/" + std::string(operation);
}

// The name of an operation is part of a path: nothing in it may lead elsewhere.
[[nodiscard]] inline bool is_plain_name(std::string_view name) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  constexpr std::size_t kLongest = 64;
  return !name.empty() && name.size() <= kLongest &&
         name.find_first_not_of(kPlain) == std::string_view::npos;
}

// What the check value of column 0 covers, in this order, little-endian.
struct StepCells {
  std::int64_t step = 0;
  std::int64_t timing_ns = 0;
  std::int32_t token = 0;
  std::int32_t choice = 0;
};
static_assert(sizeof(StepCells) == 24);

}  // namespace driftscope::layout
