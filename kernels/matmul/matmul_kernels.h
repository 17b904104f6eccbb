// SPDX-License-Identifier: Apache-2.0
// Internal: what a file compiled for one instruction set offers to the driver. Plain pointers
// only, so that no template or inline function of the standard library is compiled with those
// flags and merged into baseline code.
#pragma once

#include <cstdint>

#include "kernels/plan/dtype.h"
#include "kernels/plan/reduction_plan.h"
#include "kernels/quant/quantised_view.h"

namespace driftscope::matmul_detail {

// Sums of one chunk for a few rows against a block of outputs, straight from the weights.
struct DirectJob {
  const float* x = nullptr;  // [m, length], row stride x_stride
  std::int64_t x_stride = 0;
  std::int64_t m = 0;
  const void* w = nullptr;  // [n, length] of `dtype`, row stride w_stride elements
  std::int64_t w_stride = 0;
  Dtype dtype = Dtype::f32;
  std::int64_t n = 0;
  std::int64_t length = 0;  // terms of the chunk, at least 1
  int lanes = 0;
  LaneCombine combine = LaneCombine::butterfly;
  float* out = nullptr;  // [m, n], row stride out_stride
  std::int64_t out_stride = 0;
};

// The same for quantised weights. Terms count from the start of the row of codes, whatever
// codes.first_term says; int8 and fp8: any `begin`, int4: a multiple of the
// lanes.
struct CodesJob {
  const float* x = nullptr;  // [m, length], row stride x_stride
  std::int64_t x_stride = 0;
  std::int64_t m = 0;
  QuantisedView codes;     // from the first output on
  std::int64_t begin = 0;  // of the chunk, in terms of the row
  std::int64_t n = 0;
  std::int64_t length = 0;  // terms of the chunk, at least 1
  int lanes = 0;
  LaneCombine combine = LaneCombine::butterfly;
  float* out = nullptr;  // [m, n], row stride out_stride
  std::int64_t out_stride = 0;
};

// Terms begin … begin + length - 1 of `rows` rows as f32; int4: `begin` is a
// multiple of kInt4Block.
struct DequantiseJob {
  QuantisedView codes;  // from the first row on
  std::int64_t rows = 0;
  std::int64_t begin = 0;
  std::int64_t length = 0;
  float* target = nullptr;  // [rows, length], row stride target_stride
  std::int64_t target_stride = 0;
};

// Exact integer products of a chunk: out[i, j] = sum over the terms of x · w.
struct Int8Job {
  const std::int16_t* x = nullptr;         // [m, length], int8 values, row stride x_stride
  const std::uint8_t* x_offset = nullptr;  // the same plus 128; read by the VNNI kernel only
  std::int64_t x_stride = 0;
  std::int64_t m = 0;
  const std::int8_t* w = nullptr;  // [n, length], row stride w_stride
  std::int64_t w_stride = 0;
  std::int64_t n = 0;
  std::int64_t length = 0;
  std::int32_t* out = nullptr;  // [m, n]
};

// How a chunk of `length` terms lies in a set of packed panels of R rows each, W = vector width,
// Q = lanes / W. A sweep is one of the Q. What runs over all tiles before the next begins, so that
// two panels' part of it stays in the first-level cache, is a block: several whole sweeps, or some
// steps of one. The set is [blocks][panels][sweeps][steps of the block][R][W], zero beyond the rows
// and the length, and is read from end to end. A place holds one f32, or a pair of bf16.
struct PanelLayout {
  int lanes = 0;
  std::int64_t steps = 0;        // ceil(length / (lanes · place_terms))
  int sweeps = 0;                // of a block: a power of two, at most Q
  std::int64_t block_steps = 0;  // at most; equals `steps` where sweeps > 1
};

struct PackJob {
  const void* source = nullptr;  // [rows, length] of `dtype`
  std::int64_t stride = 0;       // elements
  Dtype dtype = Dtype::f32;
  std::int64_t rows = 0;        // at most panel_rows
  std::int64_t panel_rows = 0;  // R
  std::int64_t length = 0;
  PanelLayout layout;
  std::int64_t panels = 0;  // of the set
  std::int64_t panel = 0;   // the one to fill
  float* target = nullptr;  // the set: [panels · panel_rows · steps · lanes], aligned to 64 bytes
};

// Sums of one chunk for packed panels of rows against packed panels of outputs.
struct GemmJob {
  const float* x = nullptr;  // a set of x_panels panels
  std::int64_t x_panels = 0;
  std::int64_t x_first = 0;  // the first of the ceil(m / tile_rows) panels of this job
  std::int64_t m = 0;
  const float* w = nullptr;  // a set of ceil(n / tile_outputs) panels
  std::int64_t n = 0;
  PanelLayout layout;
  LaneCombine combine = LaneCombine::butterfly;
  float* accumulators = nullptr;  // accumulator_floats(...), aligned; unused where one block is all
  float* out = nullptr;           // [m, n], row stride out_stride
  std::int64_t out_stride = 0;
};

// Any plan, one output: x, w: [k]. scratch: generic_scratch_bytes(plan), aligned to 64 bytes.
struct GenericJob {
  const float* x = nullptr;
  const float* w = nullptr;
  std::int64_t k = 0;
  const ReductionPlan* plan = nullptr;
  const int* order = nullptr;  // arrival order, where the plan asks for one
  void* scratch = nullptr;
};
// Lanes and chunks, of at most 16 bytes each (f64: 8; kahan: sum and compensation).
[[nodiscard]] inline std::int64_t generic_scratch_bytes(const ReductionPlan& plan) {
  return 16 * (std::int64_t{plan.lanes} + plan.split_k);
}

struct MatmulKernels {
  int vector_width;  // 0: no fast kernels, only `generic`
  int place_terms;   // terms of K in each of a vector's places: 1, or 2 (pairs of bf16)
  int tile_rows;
  int tile_outputs;
  void (*direct)(const DirectJob&);
  void (*pack)(const PackJob&);
  void (*gemm)(const GemmJob&);
  // y[j] = y[j] + bias[j] (null: y[j]) for j < count, a NaN made canonical.
  void (*finish)(float* y, const float* bias, std::int64_t count);
  float (*generic)(const GenericJob&);
  void (*codes)(const CodesJob&);            // null where vector_width is 0
  void (*dequantise)(const DequantiseJob&);  // null where vector_width is 0
  void (*int8_tile)(const Int8Job&);
};

extern const MatmulKernels kScalarKernels;
#if defined(__x86_64__)
extern const MatmulKernels kAvx2Kernels;
extern const MatmulKernels kAvx512Kernels;
// In place of kAvx512Kernels.int8_tile where the CPU has AVX512-VNNI: the same integers.
void run_int8_tile_vnni(const Int8Job& job);
extern const MatmulKernels kAvx512Bf16Kernels;  // pairs; `generic` is null
#endif

}  // namespace driftscope::matmul_detail
