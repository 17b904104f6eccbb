// SPDX-License-Identifier: Apache-2.0
#include "engine/model/block_formats.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <utility>

namespace driftscope {
namespace {

constexpr std::int64_t kSmallBlock = 32;  // elements; the low nibbles are its first half

std::uint32_t u32_at(const std::uint8_t* bytes) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = (value << 8U) | bytes[i];
  return value;
}

// Element i of a block of nibbles: the low ones are elements 0 … 15, the high ones 16 … 31.
int nibble(const std::uint8_t* codes, int i) { return i < 16 ? codes[i] & 15 : codes[i - 16] >> 4; }

// The fifth bit of element i lies at bit i of `high`.
int fifth_bit(std::uint32_t high, int i) {
  return static_cast<int>((high >> static_cast<unsigned>(i)) & 1U) << 4;
}

void decode_q4_0(const std::uint8_t* block, float* values) {
  const float d = f16_at(block);
  for (int i = 0; i < kSmallBlock; ++i) {
    values[i] = static_cast<float>(nibble(block + 2, i) - 8) * d;
  }
}

void decode_q4_1(const std::uint8_t* block, float* values) {
  const float d = f16_at(block);
  const float m = f16_at(block + 2);
  for (int i = 0; i < kSmallBlock; ++i) {
    values[i] = static_cast<float>(nibble(block + 4, i)) * d + m;
  }
}

void decode_q5_0(const std::uint8_t* block, float* values) {
  const float d = f16_at(block);
  const std::uint32_t high = u32_at(block + 2);
  for (int i = 0; i < kSmallBlock; ++i) {
    values[i] = static_cast<float>((nibble(block + 6, i) | fifth_bit(high, i)) - 16) * d;
  }
}

void decode_q5_1(const std::uint8_t* block, float* values) {
  const float d = f16_at(block);
  const float m = f16_at(block + 2);
  const std::uint32_t high = u32_at(block + 4);
  for (int i = 0; i < kSmallBlock; ++i) {
    values[i] = static_cast<float>(nibble(block + 8, i) | fifth_bit(high, i)) * d + m;
  }
}

void decode_q8_0(const std::uint8_t* block, float* values) {
  const float d = f16_at(block);
  for (int i = 0; i < kSmallBlock; ++i) {
    values[i] = static_cast<float>(static_cast<std::int8_t>(block[2 + i])) * d;
  }
}

void decode_iq4_nl(const std::uint8_t* block, float* values) {
  const float d = f16_at(block);
  for (int i = 0; i < kSmallBlock; ++i) {
    values[i] = static_cast<float>(kIq4Values[nibble(block + 2, i)]) * d;
  }
}

// 2^(exponent - 128): half of the power that the byte means, since the table holds doubled values.
float half_power(std::uint8_t exponent) {
  const std::uint32_t bits =
      exponent < 2 ? 0x00200000U << exponent : static_cast<std::uint32_t>(exponent - 1) << 23U;
  return std::bit_cast<float>(bits);
}

void decode_mxfp4(const std::uint8_t* block, float* values) {
  constexpr std::int8_t kDoubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  const float d = half_power(block[0]);
  for (int i = 0; i < kSmallBlock; ++i) {
    values[i] = static_cast<float>(kDoubled[nibble(block + 1, i)]) * d;
  }
}

constexpr DecodeBlock kNone = nullptr;
constexpr std::nullopt_t kBlocks = std::nullopt;

constexpr std::array<ElementFormat, 32> kFormats{{
    {0, "F32", 1, 4, Dtype::f32, kNone},
    {1, "F16", 1, 2, Dtype::f16, kNone},
    {30, "BF16", 1, 2, Dtype::bf16, kNone},
    {2, "Q4_0", 32, 18, kBlocks, decode_q4_0},
    {3, "Q4_1", 32, 20, kBlocks, decode_q4_1},
    {6, "Q5_0", 32, 22, kBlocks, decode_q5_0},
    {7, "Q5_1", 32, 24, kBlocks, decode_q5_1},
    {8, "Q8_0", 32, 34, kBlocks, decode_q8_0},
    {10, "Q2_K", 256, 84, kBlocks, decode_q2_k},
    {11, "Q3_K", 256, 110, kBlocks, decode_q3_k},
    {12, "Q4_K", 256, 144, kBlocks, decode_q4_k},
    {13, "Q5_K", 256, 176, kBlocks, decode_q5_k},
    {14, "Q6_K", 256, 210, kBlocks, decode_q6_k},
    {20, "IQ4_NL", 32, 18, kBlocks, decode_iq4_nl},
    {23, "IQ4_XS", 256, 136, kBlocks, decode_iq4_xs},
    {39, "MXFP4", 32, 17, kBlocks, decode_mxfp4},
    // Known by their size, so that a file is read up to where one of them is needed.
    {9, "Q8_1", 32, 36, kBlocks, kNone},
    {15, "Q8_K", 256, 292, kBlocks, kNone},
    {16, "IQ2_XXS", 256, 66, kBlocks, kNone},
    {17, "IQ2_XS", 256, 74, kBlocks, kNone},
    {18, "IQ3_XXS", 256, 98, kBlocks, kNone},
    {19, "IQ1_S", 256, 50, kBlocks, kNone},
    {21, "IQ3_S", 256, 110, kBlocks, kNone},
    {22, "IQ2_S", 256, 82, kBlocks, kNone},
    {29, "IQ1_M", 256, 56, kBlocks, kNone},
    {34, "TQ1_0", 256, 54, kBlocks, kNone},
    {35, "TQ2_0", 256, 66, kBlocks, kNone},
    {24, "I8", 1, 1, kBlocks, kNone},
    {25, "I16", 1, 2, kBlocks, kNone},
    {26, "I32", 1, 4, kBlocks, kNone},
    {27, "I64", 1, 8, kBlocks, kNone},
    {28, "F64", 1, 8, kBlocks, kNone},
}};

class BlockDecoder final : public TensorDecoder {
 public:
  BlockDecoder(const ElementFormat& format, std::string_view bytes)
      : m_format(format), m_bytes(bytes) {}
  void decode(std::int64_t first, std::int64_t count, float* values) const override;
  [[nodiscard]] std::string format() const override { return std::string(m_format.name); }
  [[nodiscard]] std::size_t stored_bytes() const override { return m_bytes.size(); }

 private:
  const ElementFormat& m_format;  // a row of kFormats
  std::string_view m_bytes;
};

void BlockDecoder::decode(std::int64_t first, std::int64_t count, float* values) const {
  std::array<float, kMaxBlockElements> whole{};
  const std::int64_t size = m_format.block_elements;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(m_bytes.data());
  while (count > 0) {
    const std::int64_t skipped = first % size;
    const std::int64_t taken = std::min(count, size - skipped);
    const auto* block = bytes + static_cast<std::uint64_t>(first / size) * m_format.block_bytes;
    if (taken == size) {
      m_format.decode(block, values);
    } else {
      m_format.decode(block, whole.data());
      std::copy_n(whole.data() + skipped, taken, values);
    }
    first += taken;
    count -= taken;
    values += taken;
  }
}

}  // namespace

std::span<const ElementFormat> element_formats() { return kFormats; }

const ElementFormat* find_element_format(std::uint32_t id) {
  const auto* found = std::find_if(kFormats.begin(), kFormats.end(),
                                   [id](const ElementFormat& row) { return row.id == id; });
  return found == kFormats.end() ? nullptr : found;
}

const ElementFormat* find_element_format(std::string_view name) {
  const auto* found = std::find_if(kFormats.begin(), kFormats.end(),
                                   [name](const ElementFormat& row) { return row.name == name; });
  return found == kFormats.end() ? nullptr : found;
}

std::string supported_element_formats() {
  std::string list;
  for (const ElementFormat& row : kFormats) {
    if (!row.supported()) continue;
    if (!list.empty()) list += ", ";
    list += row.name;
  }
  return list;
}

TensorView view_of_elements(const ElementFormat& format, std::string_view bytes,
                            std::vector<std::int64_t> shape, std::string name) {
  assert(format.supported());
  TensorView view{.data = nullptr,
                  .dtype = format.plain.value_or(Dtype::f32),
                  .shape = std::move(shape),
                  .name = std::move(name)};
  if (format.plain) {
    view.data = bytes.data();
  } else {
    view.decoder = std::make_shared<BlockDecoder>(format, bytes);
  }
  return view;
}

}  // namespace driftscope
