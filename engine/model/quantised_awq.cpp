// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "engine/model/quantised_decoders.h"
#include "engine/model/quantised_matrix.h"

namespace driftscope {
namespace {

// AWQ, version "gemm": words run along the outputs, eight columns a word in an order of their own.
class AwqDecoder final : public MatrixDecoder {
 public:
  struct Parts {
    std::int64_t inputs = 0, outputs = 0, group_size = 0;
    const char* codes = nullptr;
    const char* zeros = nullptr;
    ScaleArray scales = {};
  };
  AwqDecoder(const Parts& parts, std::string format, std::size_t stored_bytes)
      : MatrixDecoder(parts.inputs, std::move(format), stored_bytes), m_parts(parts) {}

 private:
  void decode_row(std::int64_t row, std::int64_t first, std::int64_t count,
                  float* values) const override {
    // Which four bits of its word hold column 8c + j: the inverse of (0, 2, 4, 6, 1, 3, 5, 7).
    constexpr std::array<unsigned, 8> kPlace{0, 4, 1, 5, 2, 6, 3, 7};
    const Parts& p = m_parts;
    const std::int64_t words = p.outputs / 8;
    const unsigned shift = 4 * kPlace[static_cast<std::size_t>(row % 8)];
    const auto field = [&](const char* matrix, std::int64_t line) {
      return static_cast<std::int32_t>((word_at(matrix, line * words + row / 8) >> shift) & 15U);
    };
    for (std::int64_t i = 0; i < count;) {
      const std::int64_t group = (first + i) / p.group_size;
      const std::int32_t zero = field(p.zeros, group);
      const float scale = p.scales.at(group * p.outputs + row);
      const std::int64_t end = std::min(count, (group + 1) * p.group_size - first);
      for (; i < end; ++i) values[i] = static_cast<float>(field(p.codes, first + i) - zero) * scale;
    }
  }

  Parts m_parts;
};

}  // namespace

QuantisedView awq_view(const TensorSource& stored, const QuantisedConfig& config,
                       const std::string& name) {
  const std::string module = module_of(name);
  if (module.empty() || !stored.contains(module + ".qweight")) return std::nullopt;
  PartReader reader(stored, module + ".qweight");
  const StoredElements codes = reader.take(module + ".qweight", "I32");
  const StoredElements zeros = reader.take(module + ".qzeros", "I32");
  const StoredElements scales = reader.take(module + ".scales", "F16 BF16 F32");
  if (!reader.good()) return reader.failure();
  AwqDecoder::Parts parts{.inputs = codes.shape[0], .outputs = codes.shape[1] * 8};
  parts.group_size = config.group_size == 0 ? parts.inputs : config.group_size;
  const std::int64_t groups = ceil_divide(parts.inputs, parts.group_size);
  reader.expect(
      scales.shape == std::vector<std::int64_t>{groups, parts.outputs},
      fmt::format("scales have shape [{}, {}], expected [{}, {}] from group_size {}",
                  scales.shape[0], scales.shape[1], groups, parts.outputs, config.group_size));
  reader.expect(zeros.shape == std::vector<std::int64_t>{groups, codes.shape[1]},
                fmt::format("qzeros have shape [{}, {}], expected [{}, {}]", zeros.shape[0],
                            zeros.shape[1], groups, codes.shape[1]));
  if (!reader.good()) return reader.failure();
  parts.codes = codes.bytes.data();
  parts.zeros = zeros.bytes.data();
  parts.scales = ScaleArray(scales);
  TensorView view{.shape = {parts.outputs, parts.inputs}, .name = name};
  view.decoder = std::make_shared<AwqDecoder>(parts, config.text, reader.bytes());
  return view;
}

}  // namespace driftscope
