// SPDX-License-Identifier: Apache-2.0
// The GGUF layout, versions 2 and 3, little-endian: magic, version, counts, metadata, descriptions
// of the tensors, then their bytes at multiples of general.alignment.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/block_formats.h"
#include "kernels/base/result.h"

namespace driftscope {

enum class GgufType : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  list,
  u64,
  i64,
  f64,
};
[[nodiscard]] std::string_view gguf_type_name(GgufType type);  // "u8", "string", …

// A value of the metadata, or a list of values of one type, as it lies in the file.
struct GgufValue {
  GgufType type = GgufType::u8;  // of the elements where it is a list; never `list`
  bool is_list = false;
  std::uint64_t count = 1;
  std::string_view bytes;    // the elements; a string is a u64 length and its bytes
  std::uint64_t offset = 0;  // of the value in the file, for messages
};

struct GgufTensor {
  const ElementFormat* format = nullptr;
  std::vector<std::int64_t> shape;  // outermost dimension first, at most 4
  std::uint64_t begin = 0;          // bytes from the start of the file
  std::uint64_t end = 0;
};

struct GgufHeader {
  std::uint32_t version = 0;
  std::map<std::string, GgufValue, std::less<>> values;
  std::map<std::string, GgufTensor, std::less<>> tensors;
};

inline constexpr std::size_t kMaxGgufKeyBytes = 65535;
inline constexpr std::size_t kMaxGgufNameBytes = 63;
inline constexpr std::uint32_t kMaxGgufRank = 4;
inline constexpr std::uint32_t kDefaultGgufAlignment = 32;

// `file`: the whole file (mapped; only the header is touched); the values point into it. `name`
// begins the message. Errors: malformed, naming the rule, the key or tensor and the offset.
[[nodiscard]] Result<GgufHeader> parse_gguf(std::string_view file, std::string_view name);

// The strings of a list; they point into the file. `value` must be a list of strings.
[[nodiscard]] std::vector<std::string_view> gguf_strings(const GgufValue& value);

}  // namespace driftscope
