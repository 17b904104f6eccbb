// SPDX-License-Identifier: Apache-2.0
// Any bytes as a safetensors file: refused with a message, or every tensor lies inside.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/model/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const auto entries = driftscope::parse_safetensors(file, "fuzz.safetensors");
  if (!entries) {
    if (entries.error().message.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  for (const auto& entry : *entries) {
    if (entry.begin > entry.end || entry.end > size) std::abort();
  }
  return 0;
}
