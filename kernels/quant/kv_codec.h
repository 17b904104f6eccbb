// SPDX-License-Identifier: Apache-2.0
// Keys and values in and out of the cache's types.
#pragma once

#include <cstdint>

#include "kernels/plan/kv_dtype.h"

namespace driftscope {

// Stores `heads` heads of head_dim f32 elements each, contiguous. f16, bf16, fp8: each element
// rounded to nearest even (fp8 saturates at 448). int8: scales[head] = amax / 127 of the head in
// f32, codes = rint(x / scale); amax 0 gives scale 0; a head with NaN or infinity gives scale NaN
// and so reads back as NaN throughout. scales: [heads], used by int8 only.
void kv_store(KvDtype dtype, const float* values, std::int64_t heads, std::int64_t head_dim,
              void* target, float* scales);

// Reads `count` elements of one head back as f32: exact, but for int8, where code · scale is
// rounded once. scale: of the head, used by int8 only.
void kv_widen(KvDtype dtype, const void* source, const float* scale, float* target,
              std::int64_t count);

}  // namespace driftscope
