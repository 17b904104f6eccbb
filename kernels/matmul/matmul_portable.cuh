// SPDX-License-Identifier: Apache-2.0
// The portable matmul on a GPU: the same bits as the host variants for lanes = 32, butterfly, f32.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace driftscope::cuda {

enum class Element : int { f32 = 0, f16 = 1, bf16 = 2 };
enum class ChunkOrder : int { sequential = 0, tree = 1, listed = 2 };

// All pointers to device memory.
struct PortableMatmul {
  const float* x;      // [m, k]
  const void* weight;  // [n, k]
  const float* bias;   // [n], or null
  const int* order;    // [split_k] for ChunkOrder::listed, else null
  float* y;            // [m, n]
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  int split_k;  // 1 … 1024
  ChunkOrder chunk_order;
  Element weight_type;
  Element output_type;
};

cudaError_t launch_portable_matmul(const PortableMatmul& arguments, cudaStream_t stream);

}  // namespace driftscope::cuda
