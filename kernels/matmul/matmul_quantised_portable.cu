// SPDX-License-Identifier: Apache-2.0
// Weights as codes: each code becomes its f32 value, code · scale in one rounded product, and is
// multiplied as any other weight.
#include "kernels/matmul/matmul_quantised.cuh"
#include "kernels/matmul/matmul_rows.cuh"
#include "kernels/quant/codes_device.h"

namespace driftscope::cuda {

namespace {

// What a row of any format begins with.
struct Codes {
  Global<const std::uint8_t> codes;
  Global<const float> scales;
  std::int64_t first_term = 0;
  Codes() = default;
  __device__ Codes(const DeviceMatmul& a, std::int64_t column)
      : codes(Global<const std::uint8_t>(a.quantised.codes) + column * a.quantised.code_stride),
        scales(Global<const float>(a.quantised.scales) + column * a.quantised.scale_stride),
        first_term(a.quantised.first_term) {}
};

// A byte a code and a scale a row.
template <bool IsFp8>
struct ByteRow : Codes {
  float scale = 0.0F;
  ByteRow() = default;
  __device__ ByteRow(const DeviceMatmul& a, std::int64_t column)
      : Codes(a, column), scale(scales[0]) {}
  [[nodiscard]] __device__ float at(std::int64_t i) const {
    const std::uint8_t code = codes[first_term + i];
    return __fmul_rn(IsFp8 ? exact::e4m3_widened(code) : exact::int8_widened(code), scale);
  }
};

// Half a byte a code, scales and perhaps zero points in groups.
struct Int4Row : Codes {
  Global<const std::uint8_t> zeros;
  int group_shift = 0;  // log2(group)
  Int4Row() = default;
  __device__ Int4Row(const DeviceMatmul& a, std::int64_t column) : Codes(a, column) {
    if (a.quantised.zeros != nullptr) {
      zeros = Global<const std::uint8_t>(a.quantised.zeros) + column * a.quantised.scale_stride;
    }
    while ((std::int64_t{1} << group_shift) < a.quantised.group) ++group_shift;
  }
  [[nodiscard]] __device__ float at(std::int64_t i) const {
    const std::int64_t term = first_term + i;
    const exact::NibblePlace place = exact::int4_place(term);
    const int code = static_cast<int>(codes[place.byte]) >> place.shift & 0xf;
    const std::int64_t group = term >> group_shift;
    const int zero = zeros == nullptr ? 8 : static_cast<int>(zeros[group]);
    return __fmul_rn(static_cast<float>(code - zero), scales[group]);
  }
};

template <class Row>
cudaError_t launch_rows(const DeviceMatmul& a, cudaStream_t stream) {
  return has_tile(a.plan) ? launch_tiles<Row>(a, stream) : launch_any_plan<Row>(a, stream);
}

}  // namespace

cudaError_t launch_quantised_matmul(const DeviceMatmul& a, cudaStream_t stream) {
  if (a.quantised.scales == nullptr) return cudaErrorInvalidValue;
  switch (a.quantised.format) {
    case QuantFormat::int8_channel:
      return launch_rows<ByteRow<false>>(a, stream);
    case QuantFormat::fp8_tensor:
    case QuantFormat::fp8_channel:
      return launch_rows<ByteRow<true>>(a, stream);
    case QuantFormat::int4_symmetric:
    case QuantFormat::int4_asymmetric:
      return a.quantised.group < 16 ? cudaErrorInvalidValue : launch_rows<Int4Row>(a, stream);
    case QuantFormat::int8_dynamic:
      break;
  }
  return cudaErrorInvalidValue;
}

}  // namespace driftscope::cuda
