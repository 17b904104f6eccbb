// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "engine/model/quantised_decoders.h"
#include "engine/model/quantised_matrix.h"
#include "engine/model/tensor_transforms.h"

namespace driftscope {
namespace {

constexpr std::int64_t kSharingScale = 32;  // inputs that share a scale

// OCP microscaling formats, revision 1.0: E2M1, sign in the highest bit.
constexpr std::array<float, 16> kE2m1{0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,  4.0F,  6.0F,
                                      -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};

// [expert * out, in], as the files hold it; the plain tensor is the transpose of each expert's.
class Mxfp4Decoder final : public MatrixDecoder {
 public:
  Mxfp4Decoder(std::string_view blocks, const StoredElements& scales, std::int64_t inputs,
               std::size_t stored_bytes)
      : MatrixDecoder(inputs, "MXFP4", stored_bytes),
        m_blocks(blocks.data()),
        m_scales({.dtype = "F8_E8M0", .shape = {}, .bytes = scales.bytes}),
        m_in_row(inputs / kSharingScale) {}

 private:
  void decode_row(std::int64_t row, std::int64_t first, std::int64_t count,
                  float* values) const override {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t input = first + i;
      const std::int64_t block = row * m_in_row + input / kSharingScale;
      const auto byte = static_cast<unsigned char>(
          m_blocks[block * (kSharingScale / 2) + input % kSharingScale / 2]);
      const unsigned code = input % 2 == 0 ? byte & 15U : byte >> 4U;
      values[i] = kE2m1[code] * m_scales.at(block);
    }
  }

  const char* m_blocks;
  ScaleArray m_scales;
  std::int64_t m_in_row;  // blocks
};

}  // namespace

QuantisedView mxfp4_view(const TensorSource& stored, const std::string& name) {
  if (!stored.contains(name + "_blocks")) return std::nullopt;
  PartReader reader(stored, name + "_blocks");
  const StoredElements blocks = reader.take(name + "_blocks", "U8", 4);
  const StoredElements scales = reader.take(name + "_scales", "U8 F8_E8M0", 3);
  if (!reader.good()) return reader.failure();
  reader.expect(blocks.shape[3] == kSharingScale / 2 && scales.shape[0] == blocks.shape[0] &&
                    scales.shape[1] == blocks.shape[1] && scales.shape[2] == blocks.shape[2],
                fmt::format("blocks have shape [{}] and scales [{}], expected [expert, out, n, 16] "
                            "and [expert, out, n]",
                            fmt::join(blocks.shape, ", "), fmt::join(scales.shape, ", ")));
  if (!reader.good()) return reader.failure();
  const std::int64_t inputs = blocks.shape[2] * kSharingScale;
  TensorView view{.shape = {blocks.shape[0], blocks.shape[1], inputs}, .name = name};
  view.decoder = std::make_shared<Mxfp4Decoder>(blocks.bytes, scales, inputs, reader.bytes());
  // Binding transposes it back, and rows are then read as they lie.
  StridedView transposed(std::move(view));
  transposed.transpose(1);
  return std::move(transposed).finish({blocks.shape[0], inputs, blocks.shape[1]});
}

}  // namespace driftscope
