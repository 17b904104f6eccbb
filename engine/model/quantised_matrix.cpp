// SPDX-License-Identifier: Apache-2.0
#include "engine/model/quantised_matrix.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

#include "kernels/base/display_text.h"

namespace driftscope {

void MatrixDecoder::decode(std::int64_t first, std::int64_t count, float* values) const {
  while (count > 0) {
    const std::int64_t row = first / m_columns;
    const std::int64_t column = first % m_columns;
    const std::int64_t piece = std::min(count, m_columns - column);
    decode_row(row, column, piece, values);
    first += piece;
    count -= piece;
    values += piece;
  }
}

bool ScaleArray::is_scale_type(std::string_view dtype) {
  return dtype == "F32" || dtype == "F16" || dtype == "BF16" || dtype == "F8_E8M0";
}

ScaleArray::ScaleArray(const StoredElements& elements) : m_bytes(elements.bytes.data()) {
  if (elements.dtype == "F16") m_type = Type::f16;
  if (elements.dtype == "BF16") m_type = Type::bf16;
  if (elements.dtype == "F8_E8M0") m_type = Type::e8m0;
}

float ScaleArray::at(std::int64_t index) const {
  if (m_type == Type::f32) return std::bit_cast<float>(word_at(m_bytes, index));
  if (m_type == Type::e8m0) {
    const auto exponent = static_cast<std::uint32_t>(static_cast<unsigned char>(m_bytes[index]));
    if (exponent == 0) return std::bit_cast<float>(std::uint32_t{0x00400000});    // 2^-127
    if (exponent == 255) return std::bit_cast<float>(std::uint32_t{0x7fc00000});  // NaN
    return std::bit_cast<float>(exponent << 23U);
  }
  std::uint16_t half = 0;
  std::memcpy(&half, m_bytes + 2 * index, sizeof half);
  return m_type == Type::f16 ? f16_to_float(half) : bf16_to_float(half);
}

void PartReader::refuse(const std::string& what) {
  if (!good()) return;
  m_done = fail(ErrorKind::malformed,
                fmt::format("{}: tensor {}: {}; fix the checkpoint", m_stored.file_of(m_tensor),
                            escape_for_display(m_tensor), what));
}

void PartReader::expect(bool holds, const std::string& rule) {
  if (!holds) refuse(rule);
}

StoredElements PartReader::take(const std::string& name, std::string_view types, std::size_t rank) {
  if (!good()) return {};
  auto part = m_stored.stored(name);
  if (!part) {
    refuse(fmt::format("{} is missing", escape_for_display(name)));
    return {};
  }
  if ((" " + std::string(types) + " ").find(" " + std::string(part->dtype) + " ") ==
      std::string::npos) {
    refuse(
        fmt::format("{} has dtype {}, expected {}", escape_for_display(name), part->dtype, types));
    return {};
  }
  if (part->shape.size() != rank ||
      std::find(part->shape.begin(), part->shape.end(), 0) != part->shape.end()) {
    refuse(fmt::format("{} has shape [{}], expected {} dimensions", escape_for_display(name),
                       fmt::join(part->shape, ", "), rank));
    return {};
  }
  m_bytes += part->bytes.size();
  return *part;
}

StoredElements PartReader::take_scale(const std::string& name) {
  if (!good()) return {};
  auto part = m_stored.stored(name);
  if (!part) {
    refuse(fmt::format("{} is missing", escape_for_display(name)));
    return {};
  }
  if (!ScaleArray::is_scale_type(part->dtype)) {
    refuse(fmt::format("{} has dtype {}, expected F32, F16, BF16 or F8_E8M0",
                       escape_for_display(name), part->dtype));
    return {};
  }
  m_bytes += part->bytes.size();
  return *part;
}

std::vector<std::int32_t> read_group_index(PartReader& reader, const TensorSource& stored,
                                           const std::string& name, std::int64_t inputs,
                                           std::int64_t groups) {
  if (!reader.good() || !stored.contains(name)) return {};
  const StoredElements part = reader.take(name, "I32", 1);
  if (!reader.good()) return {};
  reader.expect(part.shape[0] == inputs,
                fmt::format("{} has {} entries for {} inputs", escape_for_display(name),
                            part.shape[0], inputs));
  if (!reader.good()) return {};
  std::vector<std::int32_t> index(static_cast<std::size_t>(inputs));
  std::memcpy(index.data(), part.bytes.data(), 4 * index.size());
  if (std::all_of(index.begin(), index.end(), [](std::int32_t i) { return i == -1; })) return {};
  const auto outside = std::find_if(index.begin(), index.end(),
                                    [&](std::int32_t i) { return i < 0 || i >= groups; });
  if (outside != index.end()) {
    reader.expect(false,
                  fmt::format("{} has group {} at input {}, there are {} groups",
                              escape_for_display(name), *outside, outside - index.begin(), groups));
    return {};
  }
  return index;
}

std::string module_of(std::string_view name) {
  constexpr std::string_view kSuffix = ".weight";
  return name.ends_with(kSuffix) ? std::string(name.substr(0, name.size() - kSuffix.size()))
                                 : std::string();
}

}  // namespace driftscope
