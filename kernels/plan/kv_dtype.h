// SPDX-License-Identifier: Apache-2.0
// How keys and values lie in the cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/plan/dtype.h"

namespace driftscope {

// fp8_e4m3: no scale, saturating at 448. int8: one f32 scale per token and head, stored beside.
enum class KvDtype : std::uint8_t { f32, f16, bf16, fp8_e4m3, int8 };

[[nodiscard]] constexpr std::size_t dtype_size(KvDtype dtype) {
  switch (dtype) {
    case KvDtype::f32:
      return 4;
    case KvDtype::f16:
    case KvDtype::bf16:
      return 2;
    case KvDtype::fp8_e4m3:
    case KvDtype::int8:
      return 1;
  }
  return 0;
}

// The element type where values are stored without a code of their own.
[[nodiscard]] constexpr std::optional<Dtype> plain_dtype(KvDtype dtype) {
  switch (dtype) {
    case KvDtype::f32:
      return Dtype::f32;
    case KvDtype::f16:
      return Dtype::f16;
    case KvDtype::bf16:
      return Dtype::bf16;
    case KvDtype::fp8_e4m3:
    case KvDtype::int8:
      return std::nullopt;
  }
  return std::nullopt;
}

[[nodiscard]] constexpr std::string_view dtype_name(KvDtype dtype) {
  switch (dtype) {
    case KvDtype::f32:
      return "f32";
    case KvDtype::f16:
      return "f16";
    case KvDtype::bf16:
      return "bf16";
    case KvDtype::fp8_e4m3:
      return "fp8_e4m3";
    case KvDtype::int8:
      return "int8";
  }
  return "unknown";
}

}  // namespace driftscope
