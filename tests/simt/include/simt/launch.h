// SPDX-License-Identifier: Apache-2.0
// Runs a kernel: block after block, one fiber a thread.
#pragma once

#include <functional>

#include "cuda_runtime.h"

namespace simt {

struct Shape {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
};
// Runs at once, or is recorded where the stream is being captured.
cudaError_t submit(const char* kernel, const Shape& shape, cudaStream_t stream,
                   std::function<void()> body);

}  // namespace simt
