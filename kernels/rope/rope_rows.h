// SPDX-License-Identifier: Apache-2.0
// A range of rows per instruction set; the driver in rope.cpp cuts the work.
#pragma once

#include <cstdint>

#include "kernels/rope/rope.h"

namespace driftscope {

// cos and sin of one position, [half] each.
struct RopeEntry {
  const float* cosine;
  const float* sine;
};
[[nodiscard]] RopeEntry rope_entry(const RopeTable& table, std::int64_t position);

void rope_rows_scalar(const RopeArguments& arguments, std::int64_t begin, std::int64_t end);
void rope_rows_avx2(const RopeArguments& arguments, std::int64_t begin, std::int64_t end);
void rope_rows_avx512(const RopeArguments& arguments, std::int64_t begin, std::int64_t end);

}  // namespace driftscope
