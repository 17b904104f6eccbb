// SPDX-License-Identifier: Apache-2.0
// Writes GGUF bytes, right ones and wrong ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace driftscope {

// Little-endian.
[[nodiscard]] std::string u32_text(std::uint32_t value);
[[nodiscard]] std::string f32_text(float value);
// A u64 length and the bytes.
[[nodiscard]] std::string gguf_text(std::string_view text);

struct BuiltGgufTensor {
  std::string name;
  std::vector<std::uint64_t> dimensions;  // innermost first, as in the file
  std::uint32_t type = 0;                 // F32
  std::string bytes;                      // empty: zeros, by dimensions of an F32
};

// Pieces that a test may change before bytes() puts them together.
struct GgufBuilder {
  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::vector<std::string> pairs;  // key, type and value, ready
  std::vector<BuiltGgufTensor> tensors;
  std::uint64_t alignment = 32;         // of the data; general.alignment is the test's to add
  std::string tail = {};                // after the data
  std::uint64_t extra_pairs = 0;        // counted, but not there
  std::uint64_t extra_tensors = 0;      // likewise
  std::vector<std::string> infos = {};  // instead of the tensors' descriptions, if any
  std::uint64_t offset_of_second = 0;   // instead of the second tensor's, if not 0

  void add(std::string_view key, std::uint32_t type, std::string_view value) {
    pairs.push_back(gguf_text(key) + u32_text(type) + std::string(value));
  }
  void add_u32(std::string_view key, std::uint32_t value) { add(key, 4, u32_text(value)); }
  void add_f32(std::string_view key, float value) { add(key, 6, f32_text(value)); }
  void add_flag(std::string_view key, bool value) { add(key, 7, std::string(1, value ? 1 : 0)); }
  void add_text(std::string_view key, std::string_view value) { add(key, 8, gguf_text(value)); }
  void add_texts(std::string_view key, const std::vector<std::string>& values);
  void add_f32s(std::string_view key, const std::vector<float>& values);
  [[nodiscard]] std::string bytes() const;
};

// Description of a tensor: name, dimensions (innermost first), type, offset of its data.
[[nodiscard]] std::string gguf_info(std::string_view name,
                                    const std::vector<std::uint64_t>& dimensions,
                                    std::uint32_t type, std::uint64_t offset);

// A llama of 2 layers: hidden 8, 2 heads of 4, 1 key/value head, feed-forward 12, vocabulary 16,
// F32, output tied; the values are small and all different.
[[nodiscard]] GgufBuilder small_llama();

}  // namespace driftscope
