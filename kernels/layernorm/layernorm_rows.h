// SPDX-License-Identifier: Apache-2.0
// A range of rows per instruction set; the driver in layernorm.cpp cuts the work.
#pragma once

#include <cstdint>

#include "kernels/layernorm/layernorm.h"

namespace driftscope {

void layernorm_rows_scalar(const LayerNormArguments& arguments, std::int64_t begin,
                           std::int64_t end);
void layernorm_rows_avx2(const LayerNormArguments& arguments, std::int64_t begin, std::int64_t end);
void layernorm_rows_avx512(const LayerNormArguments& arguments, std::int64_t begin,
                           std::int64_t end);

}  // namespace driftscope
