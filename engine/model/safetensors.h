// SPDX-License-Identifier: Apache-2.0
// The safetensors layout: u64 little-endian header length, that many bytes of JSON (padded with
// spaces), then the tensors' bytes without gaps. Format: huggingface.co/docs/safetensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.h"

namespace driftscope {

inline constexpr std::size_t kSafetensorsPrefixBytes = 8;
inline constexpr std::uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;
inline constexpr std::size_t kMaxTensorRank = 16;

struct SafetensorsEntry {
  std::string name;
  std::string_view dtype;  // one of the format's names, in static storage
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;  // bytes from the start of the file
  std::uint64_t end = 0;
};

// `file`: the whole file (mapped; only the header is touched). `name` begins the message.
// Entries come in the order of the file. Errors: malformed, naming the rule, the tensor and
// the offset in the file.
[[nodiscard]] Result<std::vector<SafetensorsEntry>> parse_safetensors(std::string_view file,
                                                                      std::string_view name);

}  // namespace driftscope
