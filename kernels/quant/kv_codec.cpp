// SPDX-License-Identifier: Apache-2.0
#include "kernels/quant/kv_codec.h"

#include <algorithm>
#include <vector>

#include "kernels/quant/fp8.h"
#include "kernels/quant/quantise.h"

namespace driftscope {

void kv_store(KvDtype dtype, const float* values, std::int64_t heads, std::int64_t head_dim,
              void* target, float* scales) {
  const std::int64_t count = heads * head_dim;
  auto* codes = static_cast<std::uint8_t*>(target);
  if (const auto plain = plain_dtype(dtype)) {
    narrow(*plain, values, target, static_cast<std::size_t>(count));
  } else if (dtype == KvDtype::fp8_e4m3) {
    std::transform(values, values + count, codes, e4m3_from_float);
  } else {
    std::vector<std::int16_t> row(static_cast<std::size_t>(head_dim));
    for (std::int64_t head = 0; head < heads; ++head) {
      scales[head] = quantise_activations(values + head * head_dim, head_dim, row.data());
      std::transform(row.begin(), row.end(), codes + head * head_dim, [](std::int16_t code) {
        return static_cast<std::uint8_t>(static_cast<std::int8_t>(code));
      });
    }
  }
}

void kv_widen(KvDtype dtype, const void* source, const float* scale, float* target,
              std::int64_t count) {
  const auto* codes = static_cast<const std::uint8_t*>(source);
  if (const auto plain = plain_dtype(dtype)) {
    widen(*plain, source, target, static_cast<std::size_t>(count));
  } else if (dtype == KvDtype::fp8_e4m3) {
    std::transform(codes, codes + count, target, e4m3_to_float);
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      target[i] = static_cast<float>(static_cast<std::int8_t>(codes[i])) * *scale;
    }
  }
}

}  // namespace driftscope
