// SPDX-License-Identifier: Apache-2.0
// Where the key or value of a token lies in its sequence's cache, and what is read there: the bits
// of kv_widen().
#pragma once

#include "kernels/attention/attention_device.h"
#include "kernels/plan/device.cuh"
#include "kernels/quant/codes_device.h"

namespace driftscope::cuda {

// One head of one token.
struct KvRow {
  Global<const void> data;
  std::int64_t first;  // element of the block's keys or values
  float scale;         // int8 only
  KvDtype dtype;
  [[nodiscard]] __device__ float at(std::int64_t i) const {
    switch (dtype) {
      case KvDtype::f32:
        return load(data, Dtype::f32, first + i);
      case KvDtype::f16:
        return load(data, Dtype::f16, first + i);
      case KvDtype::bf16:
        return load(data, Dtype::bf16, first + i);
      case KvDtype::fp8_e4m3:
        return exact::e4m3_widened(global_cast<const std::uint8_t>(data)[first + i]);
      case KvDtype::int8:
        return __fmul_rn(exact::int8_widened(global_cast<const std::uint8_t>(data)[first + i]),
                         scale);
    }
    return 0.0F;
  }
};

enum class KvSide : std::uint8_t { keys, values };

// Where one head of one token lies.
struct KvPlace {
  char* codes;        // of the block's keys or values
  char* scales;       // int8 only
  std::int64_t head;  // [layers, block_tokens, kv_heads], counted through
};

// Keys or values of one layer of a sequence.
struct KvCacheSide {
  DeviceSequence sequence;
  std::int64_t kv_heads;
  std::int64_t layer;
  KvSide side;

  [[nodiscard]] __device__ KvPlace place(std::int64_t token, std::int64_t head) const {
    char* block = sequence.block;
    std::int64_t row = token;
    if (sequence.blocks != nullptr) {
      // 32 bits: tokens are fewer, and a division of 64 takes long.
      const auto tokens = static_cast<std::uint32_t>(sequence.block_tokens);
      const std::uint32_t number = static_cast<std::uint32_t>(token) / tokens;
      block = Global<char* const>(sequence.blocks)[number];
      row = static_cast<std::uint32_t>(token) % tokens;
    }
    const bool keys = side == KvSide::keys;
    return {block + (keys ? 0 : sequence.values_at),
            block + (keys ? sequence.key_scales_at : sequence.value_scales_at),
            (layer * sequence.block_tokens + row) * kv_heads + head};
  }
  [[nodiscard]] __device__ KvRow row(std::int64_t token, std::int64_t head, std::int64_t head_dim,
                                     KvDtype dtype) const {
    const KvPlace at = place(token, head);
    KvRow found{Global<const char>(at.codes), at.head * head_dim, 0.0F, dtype};
    if (dtype == KvDtype::int8) {
      found.scale = global_cast<const float>(Global<const char>(at.scales))[at.head];
    }
    return found;
  }
};

}  // namespace driftscope::cuda
