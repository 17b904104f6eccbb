// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "engine/model/quantised_decoders.h"
#include "engine/model/quantised_matrix.h"

namespace driftscope {
namespace {

// GPTQ: words run along the inputs, so one row of the matrix is a column of words.
class GptqDecoder final : public MatrixDecoder {
 public:
  struct Parts {
    unsigned bits = 4;
    std::int64_t inputs = 0, outputs = 0, group_size = 0;
    std::int32_t zero_offset = 0;
    const char* codes = nullptr;
    const char* zeros = nullptr;
    ScaleArray scales;
    std::vector<std::int32_t> group_index;  // empty: input / group_size
  };
  GptqDecoder(Parts parts, std::string format, std::size_t stored_bytes)
      : MatrixDecoder(parts.inputs, std::move(format), stored_bytes), m_parts(std::move(parts)) {}

 private:
  // Field `index` of a stream of words that lie `stride` words apart.
  [[nodiscard]] std::int32_t field(const char* words, std::int64_t stride,
                                   std::int64_t index) const {
    const std::int64_t bit = index * m_parts.bits;
    const auto shift = static_cast<unsigned>(bit % 32);
    std::uint32_t value = word_at(words, bit / 32 * stride) >> shift;
    if (shift + m_parts.bits > 32) {
      value |= word_at(words, (bit / 32 + 1) * stride) << (32 - shift);
    }
    return static_cast<std::int32_t>(value & ((1U << m_parts.bits) - 1U));
  }

  void decode_row(std::int64_t row, std::int64_t first, std::int64_t count,
                  float* values) const override {
    const Parts& p = m_parts;
    const std::int64_t zero_words = p.outputs * p.bits / 32;
    std::int64_t group = -1;
    std::int32_t zero = 0;
    float scale = 0.0F;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t input = first + i;
      const std::int64_t own = p.group_index.empty()
                                   ? input / p.group_size
                                   : p.group_index[static_cast<std::size_t>(input)];
      if (own != group) {
        group = own;
        zero = field(p.zeros + 4 * group * zero_words, 1, row) + p.zero_offset;
        scale = p.scales.at(group * p.outputs + row);
      }
      const std::int32_t code = field(p.codes + 4 * row, p.outputs, input);
      values[i] = static_cast<float>(code - zero) * scale;
    }
  }

  Parts m_parts;
};

}  // namespace

QuantisedView gptq_view(const TensorSource& stored, const QuantisedConfig& config,
                        const std::string& name) {
  const std::string module = module_of(name);
  if (module.empty() || !stored.contains(module + ".qweight")) return std::nullopt;
  PartReader reader(stored, module + ".qweight");
  const StoredElements codes = reader.take(module + ".qweight", "I32");
  const StoredElements zeros = reader.take(module + ".qzeros", "I32");
  const StoredElements scales = reader.take(module + ".scales", "F16 BF16 F32");
  if (!reader.good()) return reader.failure();
  GptqDecoder::Parts parts;
  parts.bits = config.bits;
  parts.outputs = codes.shape[1];
  parts.zero_offset = config.stored_zero_is_one_less ? 1 : 0;
  reader.expect(codes.shape[0] * 32 % parts.bits == 0 && parts.outputs * parts.bits % 32 == 0,
                fmt::format("shape [{}, {}] does not hold whole rows of {}-bit codes",
                            codes.shape[0], codes.shape[1], parts.bits));
  parts.inputs = codes.shape[0] * 32 / parts.bits;
  parts.group_size = config.group_size == 0 ? parts.inputs : config.group_size;
  const std::int64_t groups = ceil_divide(parts.inputs, parts.group_size);
  reader.expect(
      scales.shape == std::vector<std::int64_t>{groups, parts.outputs},
      fmt::format("scales have shape [{}, {}], expected [{}, {}] from group_size {}",
                  scales.shape[0], scales.shape[1], groups, parts.outputs, config.group_size));
  const std::int64_t zero_words = parts.outputs * parts.bits / 32;
  reader.expect(zeros.shape == std::vector<std::int64_t>{groups, zero_words},
                fmt::format("qzeros have shape [{}, {}], expected [{}, {}]", zeros.shape[0],
                            zeros.shape[1], groups, zero_words));
  parts.group_index = read_group_index(reader, stored, module + ".g_idx", parts.inputs, groups);
  reader.expect(!config.reordered || config.group_size == 0 || !parts.group_index.empty(),
                "desc_act is set and g_idx is missing");
  if (!reader.good()) return reader.failure();
  parts.codes = codes.bytes.data();
  parts.zeros = zeros.bytes.data();
  parts.scales = ScaleArray(scales);
  TensorView view{.shape = {parts.outputs, parts.inputs}, .name = name};
  view.decoder = std::make_shared<GptqDecoder>(std::move(parts), config.text, reader.bytes());
  return view;
}

}  // namespace driftscope
