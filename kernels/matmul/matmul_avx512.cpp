// SPDX-License-Identifier: Apache-2.0
#if defined(__AVX512F__)
// GCC 12 takes _mm512_undefined_ps() in its own header for a mistake (its bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include "kernels/matmul/matmul_generic.h"
#include "kernels/matmul/matmul_vec_avx512.h"

// GCC's vectoriser finds nothing to do in what is vectors already, and disturbs the register
// allocation of the tiles: sums spill into memory. (Ignored by other compilers.)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-vectorize")
#endif

namespace driftscope::matmul_detail {
namespace {

struct Vec : Avx512Vec {
  static constexpr int terms = 1;
};

}  // namespace
}  // namespace driftscope::matmul_detail

#include "kernels/matmul/matmul_simd.h"
// After it: uses its Vec and combine().
#include "kernels/matmul/matmul_codes_simd.h"
#include "kernels/matmul/matmul_gemm_simd.h"
#include "kernels/matmul/matmul_int8_simd.h"

namespace driftscope::matmul_detail {

const MatmulKernels kAvx512Kernels = {
    .vector_width = kWidth,
    .place_terms = kPlaceTerms,
    .tile_rows = kTileRows,
    .tile_outputs = kTileOutputs,
    .direct = run_direct,
    .pack = run_pack,
    .gemm = run_gemm,
    .finish = run_finish,
    .generic = run_generic,
    .codes = run_codes,
    .dequantise = run_dequantise,
    .int8_tile = run_int8_tile,
};

}  // namespace driftscope::matmul_detail
#endif
