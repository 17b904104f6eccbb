// SPDX-License-Identifier: Apache-2.0
// The element types of GGUF files: plain ones and those that hold their values in blocks.
//
// Dequantisation is done in f32 in this order, as ggml's dequantize_row functions define it (d, m,
// dmin are stored as f16; q and sc are integers; every product and difference is an f32 operation
// rounded to nearest even, none is fused):
//
//   Q4_0, Q5_0   (q - 8 or 16) * d             Q8_0     q * d
//   Q4_1, Q5_1   q * d + m                     IQ4_NL   table[q] * d
//   Q2_K         (d * sc) * q - (dmin * m)     sc and m of 4 bits per 16 elements
//   Q3_K         (d * (sc - 32)) * (q - 4 or 0)  sc of 6 bits per 16 elements
//   Q4_K, Q5_K   (d * sc) * q - (dmin * m)     sc and m of 6 bits per 32 elements
//   Q6_K         (d * sc) * (q - 32)           sc of 8 bits per 16 elements
//   IQ4_XS       (d * (sc - 32)) * table[q]    sc of 6 bits per 32 elements
//   MXFP4        table[q] * 2^(e - 128)        table of doubled E2M1 values
//
// Every product here fits the 24 bits of an f32 significand (11 of d, at most 13 of the integers),
// so each value is the real number of the formula rounded once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/checkpoint.h"
#include "kernels/plan/dtype.h"

namespace driftscope {

// `block`: the bytes of one block. `values`: room for its elements.
using DecodeBlock = void (*)(const std::uint8_t* block, float* values);

struct ElementFormat {
  std::uint32_t id;  // of the type in a GGUF file
  std::string_view name;
  std::int64_t block_elements;
  std::uint64_t block_bytes;
  std::optional<Dtype> plain;  // elements that are used as they lie in the file
  DecodeBlock decode;          // null: plain, or not supported
  [[nodiscard]] bool supported() const { return plain.has_value() || decode != nullptr; }
};

inline constexpr std::int64_t kMaxBlockElements = 256;

// Null where the format does not know the number.
[[nodiscard]] const ElementFormat* find_element_format(std::uint32_t id);
[[nodiscard]] const ElementFormat* find_element_format(std::string_view name);
[[nodiscard]] std::span<const ElementFormat> element_formats();
[[nodiscard]] std::string supported_element_formats();  // "F32, F16, Q4_0, …"

// A view of row-major elements that begin at a whole block; `bytes` must outlive it. The format
// must be supported. Values of block formats are f32, those of plain formats keep their type.
[[nodiscard]] TensorView view_of_elements(const ElementFormat& format, std::string_view bytes,
                                          std::vector<std::int64_t> shape, std::string name);

// Decodes of the formats with super-blocks of 256 elements, in block_formats_k.cpp.
void decode_q2_k(const std::uint8_t* block, float* values);
void decode_q3_k(const std::uint8_t* block, float* values);
void decode_q4_k(const std::uint8_t* block, float* values);
void decode_q5_k(const std::uint8_t* block, float* values);
void decode_q6_k(const std::uint8_t* block, float* values);
void decode_iq4_xs(const std::uint8_t* block, float* values);

// The values that the codes of IQ4_NL and IQ4_XS stand for.
inline constexpr std::int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};

// Two bytes, little-endian, as an f16.
[[nodiscard]] inline float f16_at(const std::uint8_t* bytes) {
  return f16_to_float(static_cast<std::uint16_t>(bytes[0] | (bytes[1] << 8U)));
}

}  // namespace driftscope
