// SPDX-License-Identifier: Apache-2.0
// TensorView::convert() on several threads: loading is decoding codes, or the first touch of fresh
// pages, and both take time in proportion to the cores that do it.
#pragma once

#include <cstddef>

#include "engine/model/checkpoint.h"
#include "kernels/base/parallel.h"

namespace driftscope {

// The same bytes as tensor.convert(dtype, target), whatever the number of threads; `parallel` null:
// this thread.
void convert_weights(const TensorView& tensor, Dtype dtype, std::byte* target, Parallel* parallel);

}  // namespace driftscope
