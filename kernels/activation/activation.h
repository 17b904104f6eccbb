// SPDX-License-Identifier: Apache-2.0
// SwiGLU: silu(gate) * up (Shazeer 2020).
#pragma once

#include <cstdint>

#include "kernels/base/isa.h"
#include "kernels/base/parallel.h"
#include "kernels/plan/dtype.h"

namespace driftscope {

struct SwigluArguments {
  const float* gate = nullptr;  // [rows, width], row stride gate_stride
  const float* up = nullptr;    // [rows, width], row stride up_stride
  float* y = nullptr;           // [rows, width], contiguous
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::int64_t gate_stride = 0;
  std::int64_t up_stride = 0;
  Dtype silu_dtype = Dtype::f32;    // silu(gate) rounded to this before the product
  Dtype output_dtype = Dtype::f32;  // the product rounded to this
};
// silu(g) = g / (1 + exp(-g)) with portable::exp.
void swiglu(const SwigluArguments& arguments, Isa isa, Parallel& parallel);

}  // namespace driftscope
