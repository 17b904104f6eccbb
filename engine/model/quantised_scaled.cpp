// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/model/quantised_decoders.h"
#include "engine/model/quantised_matrix.h"
#include "kernels/quant/fp8.h"

namespace driftscope {
namespace {

// A number for every block of `block_rows` x `block_columns` elements.
struct BlockGrid {
  std::int64_t block_rows = 1, block_columns = 1;
  std::int64_t across = 1;  // blocks in a row of blocks
  [[nodiscard]] std::int64_t index(std::int64_t row, std::int64_t block_column) const {
    return row / block_rows * across + block_column;
  }
};

// [] or [1]: one for all; [out] or [out, 1]: one a row; [out, n]: n a row; else blocks of the
// configured size. Errors through `reader`.
BlockGrid make_grid(PartReader& reader, const std::vector<std::int64_t>& shape, std::int64_t rows,
                    std::int64_t columns, const QuantisedConfig& config) {
  const std::int64_t down = shape.empty() ? 1 : shape[0];
  const std::int64_t across = shape.size() < 2 ? 1 : shape[1];
  reader.expect(shape.size() <= 2 && down > 0 && across > 0 && across <= columns,
                fmt::format("its scales have shape [{}]", fmt::join(shape, ", ")));
  if (!reader.good()) return {};
  BlockGrid grid{.across = across};
  if (config.block_rows > 0) {
    grid.block_rows = config.block_rows;
    grid.block_columns = config.block_columns;
    reader.expect(
        down == ceil_divide(rows, grid.block_rows) &&
            across == ceil_divide(columns, grid.block_columns),
        fmt::format("its scales have shape [{}], not one for each block of {} x {} of "
                    "[{}, {}]",
                    fmt::join(shape, ", "), grid.block_rows, grid.block_columns, rows, columns));
    return grid;
  }
  grid.block_rows = down == 1 ? rows : 1;
  grid.block_columns =
      config.group_size > 0 && across > 1 ? config.group_size : ceil_divide(columns, across);
  reader.expect((down == 1 || down == rows) && ceil_divide(columns, grid.block_columns) == across,
                fmt::format("its scales have shape [{}], expected one, [{}, 1] or [{}, groups]",
                            fmt::join(shape, ", "), rows, rows));
  return grid;
}

enum class CodeType : std::uint8_t { e4m3, e5m2, int8 };

// Elements of a byte each, a scale a block.
class ScaledDecoder final : public MatrixDecoder {
 public:
  struct Parts {
    CodeType type = CodeType::e4m3;
    std::int64_t columns = 0;
    const char* codes = nullptr;
    ScaleArray scales = {};
    const char* zeros = nullptr;  // I8, one a block; null: none
    BlockGrid grid = {};
  };
  ScaledDecoder(const Parts& parts, std::string format, std::size_t stored_bytes)
      : MatrixDecoder(parts.columns, std::move(format), stored_bytes), m_parts(parts) {}

 private:
  [[nodiscard]] float code(std::int64_t index, std::int32_t zero) const {
    const auto byte = static_cast<std::uint8_t>(m_parts.codes[index]);
    if (m_parts.type == CodeType::e4m3) return e4m3_to_float(byte);
    // E5M2 is the upper half of an F16.
    if (m_parts.type == CodeType::e5m2) {
      return f16_to_float(static_cast<std::uint16_t>(byte << 8U));
    }
    return static_cast<float>(static_cast<std::int8_t>(byte) - zero);
  }

  void decode_row(std::int64_t row, std::int64_t first, std::int64_t count,
                  float* values) const override {
    const Parts& p = m_parts;
    for (std::int64_t i = 0; i < count;) {
      const std::int64_t block = (first + i) / p.grid.block_columns;
      const std::int64_t at = p.grid.index(row, block);
      const float scale = p.scales.at(at);
      const std::int32_t zero = p.zeros == nullptr ? 0 : static_cast<std::int8_t>(p.zeros[at]);
      const std::int64_t end = std::min(count, (block + 1) * p.grid.block_columns - first);
      for (; i < end; ++i) values[i] = code(row * p.columns + first + i, zero) * scale;
    }
  }

  Parts m_parts;
};

// 32 / bits codes a word along the row, offset by half their range.
class PackedDecoder final : public MatrixDecoder {
 public:
  struct Parts {
    unsigned bits = 4;
    std::int64_t columns = 0, words = 0;  // words in a row
    const char* codes = nullptr;
    const char* zeros = nullptr;  // packed along the rows; null: none
    std::int64_t zero_columns = 0;
    ScaleArray scales = {};
    BlockGrid grid = {};
    std::vector<std::int32_t> group_index = {};
  };
  PackedDecoder(Parts parts, std::string format, std::size_t stored_bytes)
      : MatrixDecoder(parts.columns, std::move(format), stored_bytes), m_parts(std::move(parts)) {}

 private:
  [[nodiscard]] std::int32_t field(std::uint32_t word, std::int64_t place) const {
    const std::uint32_t mask = (1U << m_parts.bits) - 1U;
    const auto shift = static_cast<unsigned>(place) * m_parts.bits;
    return static_cast<std::int32_t>((word >> shift) & mask) - (1 << (m_parts.bits - 1U));
  }

  void decode_row(std::int64_t row, std::int64_t first, std::int64_t count,
                  float* values) const override {
    const Parts& p = m_parts;
    const std::int64_t in_word = 32 / p.bits;
    std::int64_t group = -1;
    std::int32_t zero = 0;
    float scale = 0.0F;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t column = first + i;
      const std::int64_t own = p.group_index.empty()
                                   ? column / p.grid.block_columns
                                   : p.group_index[static_cast<std::size_t>(column)];
      if (own != group) {
        group = own;
        scale = p.scales.at(p.grid.index(row, group));
        if (p.zeros != nullptr) {
          zero = field(word_at(p.zeros, row / in_word * p.zero_columns + group), row % in_word);
        }
      }
      const std::uint32_t word = word_at(p.codes, row * p.words + column / in_word);
      values[i] = static_cast<float>(field(word, column % in_word) - zero) * scale;
    }
  }

  Parts m_parts;
};

std::optional<CodeType> code_type(std::string_view dtype, QuantisedMethod method) {
  if (dtype == "F8_E4M3") return CodeType::e4m3;
  if (dtype == "F8_E5M2") return CodeType::e5m2;
  if (dtype == "I8" && method == QuantisedMethod::compressed_tensors) return CodeType::int8;
  return std::nullopt;
}

std::string scale_text(const BlockGrid& grid, std::int64_t rows, std::int64_t columns) {
  if (grid.block_rows >= rows && grid.block_columns >= columns) return "one scale";
  if (grid.block_rows == 1 && grid.block_columns >= columns) return "a scale per row";
  if (grid.block_rows == 1) return fmt::format("group {}", grid.block_columns);
  return fmt::format("blocks of {} x {}", grid.block_rows, grid.block_columns);
}

// Bits of a code, from the words that a row has: the configuration may have several groups.
unsigned packed_bits(PartReader& reader, const QuantisedConfig& config, std::int64_t words,
                     std::int64_t columns) {
  for (const unsigned bits : config.packed_bits) {
    if (words == ceil_divide(columns, 32 / bits)) return bits;
  }
  reader.expect(false, fmt::format("{} words a row do not hold {} codes", words, columns));
  return 4;
}

// weight_shape: out, in.
std::vector<std::int64_t> read_shape(PartReader& reader, const std::string& name) {
  const StoredElements part = reader.take(name, "I64 I32", 1);
  reader.expect(part.shape == std::vector<std::int64_t>{2}, "weight_shape is not two numbers");
  if (!reader.good()) return {0, 0};
  std::vector<std::int64_t> shape(2);
  for (std::int64_t i = 0; i < 2; ++i) {
    if (part.dtype == "I64") {
      std::memcpy(&shape[static_cast<std::size_t>(i)], part.bytes.data() + 8 * i, 8);
    } else {
      shape[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(word_at(part.bytes.data(), i));
    }
  }
  return shape;
}

}  // namespace

QuantisedView scaled_view(const TensorSource& stored, const QuantisedConfig& config,
                          const std::string& name) {
  const auto found = stored.stored(name);
  if (!found) return std::nullopt;
  const auto type = code_type(found->dtype, config.method);
  if (!type) return std::nullopt;
  PartReader reader(stored, name);
  const StoredElements codes = reader.take(name, found->dtype);
  const std::string inverse = name + "_scale_inv";
  const StoredElements scales =
      reader.take_scale(stored.contains(inverse) ? inverse : name + "_scale");
  if (!reader.good()) return reader.failure();
  ScaledDecoder::Parts parts{.type = *type, .columns = codes.shape[1]};
  parts.grid = make_grid(reader, scales.shape, codes.shape[0], codes.shape[1], config);
  const std::string zeros = name + "_zero_point";
  if (*type == CodeType::int8 && stored.contains(zeros)) {
    const auto part = reader.take(zeros, "I8", scales.shape.size());
    reader.expect(part.shape == scales.shape, "zero points and scales differ in shape");
    parts.zeros = part.bytes.data();
  }
  reader.expect(*type != CodeType::int8 || !config.zeros_required || parts.zeros != nullptr,
                "symmetric is false and weight_zero_point is missing");
  if (!reader.good()) return reader.failure();
  parts.codes = codes.bytes.data();
  parts.scales = ScaleArray(scales);
  TensorView view{.shape = codes.shape, .name = name};
  const char* const kind = *type == CodeType::int8   ? "INT8"
                           : *type == CodeType::e4m3 ? "FP8 E4M3"
                                                     : "FP8 E5M2";
  view.decoder = std::make_shared<ScaledDecoder>(
      parts,
      fmt::format("{}, {}{}", kind, scale_text(parts.grid, codes.shape[0], codes.shape[1]),
                  parts.zeros != nullptr ? ", zero points" : ""),
      reader.bytes());
  return view;
}

QuantisedView packed_view(const TensorSource& stored, const QuantisedConfig& config,
                          const std::string& name) {
  if (!name.ends_with(".weight") || !stored.contains(name + "_packed")) return std::nullopt;
  PartReader reader(stored, name + "_packed");
  const StoredElements codes = reader.take(name + "_packed", "I32");
  const std::vector<std::int64_t> shape = read_shape(reader, name + "_shape");
  const StoredElements scales = reader.take_scale(name + "_scale");
  reader.expect(!reader.good() ||
                    (shape[0] == codes.shape[0] && shape[1] > 0 && shape[1] <= codes.shape[1] * 32),
                "weight_shape and the packed codes disagree");
  if (!reader.good()) return reader.failure();
  PackedDecoder::Parts parts{.columns = shape[1], .words = codes.shape[1]};
  parts.bits = packed_bits(reader, config, parts.words, parts.columns);
  parts.grid = make_grid(reader, scales.shape, shape[0], shape[1], config);
  if (!reader.good()) return reader.failure();
  const std::string zeros = name + "_zero_point";
  if (stored.contains(zeros)) {
    const auto part = reader.take(zeros, "I32");
    parts.zero_columns = parts.grid.across;
    reader.expect(
        !reader.good() ||
            part.shape == std::vector<std::int64_t>{ceil_divide(shape[0], 32 / parts.bits),
                                                    parts.zero_columns},
        "zero points are not packed as its scales ask for");
    parts.zeros = part.bytes.data();
  }
  parts.group_index = read_group_index(reader, stored, module_of(name) + ".weight_g_idx",
                                       parts.columns, parts.grid.across);
  reader.expect(!config.zeros_required || parts.zeros != nullptr,
                "symmetric is false and weight_zero_point is missing");
  reader.expect(!config.reordered || !parts.group_index.empty(),
                "actorder is \"group\" and weight_g_idx is missing");
  if (!reader.good()) return reader.failure();
  parts.codes = codes.bytes.data();
  parts.scales = ScaleArray(scales);
  const std::string format =
      fmt::format("INT{} packed, {}{}", parts.bits, scale_text(parts.grid, shape[0], shape[1]),
                  parts.zeros != nullptr ? ", zero points" : "");
  TensorView view{.shape = shape, .name = name};
  view.decoder = std::make_shared<PackedDecoder>(std::move(parts), format, reader.bytes());
  return view;
}

}  // namespace driftscope
