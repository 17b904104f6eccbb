// SPDX-License-Identifier: Apache-2.0
// The C interface of the module driftscope_cuda, which is loaded at run time so that one program
// starts with and without CUDA. Plain types only; includes no CUDA header. Every function returns
// 0, or a CUDA error number (negative: an error of the module) with one line in `message`.
#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {

// Raised whenever a struct or a function below changes.
enum { kDriftscopeCudaInterface = 1 };

struct DriftscopeCudaMessage {
  char text[256];
};

struct DriftscopeCudaVersions {
  int driver;   // 12040 is 12.4; 0: no driver
  int runtime;  // what the module was built with
};

struct DriftscopeCudaDevice {
  char name[256];
  int compute_major;
  int compute_minor;
  int multiprocessors;
  uint64_t memory_bytes;
};

// Element types as kernels/plan/dtype.h numbers them: f32 0, f16 1, bf16 2.
// y = x · wᵀ + bias under the plan lanes = 32, butterfly, f32 accumulator; all pointers to host
// memory.
struct DriftscopeCudaMatmul {
  const float* x;  // [m, k]
  int64_t m;
  const void* weight;  // [n, k] of weight_dtype
  int weight_dtype;
  int64_t n;
  int64_t k;
  const float* bias;  // [n], or null
  float* y;           // [m, n]
  int output_dtype;
  int split_k;
  int split_combine;  // 0 sequential, 1 tree, 2 in the order given
  const int* order;   // [split_k], where split_combine is 2
};

typedef int (*DriftscopeCudaInterfaceVersion)(void);
typedef int (*DriftscopeCudaGetVersions)(DriftscopeCudaVersions*, DriftscopeCudaMessage*);
typedef int (*DriftscopeCudaDeviceCount)(int*, DriftscopeCudaMessage*);
typedef int (*DriftscopeCudaGetDevice)(int, DriftscopeCudaDevice*, DriftscopeCudaMessage*);
typedef int (*DriftscopeCudaRunMatmul)(const DriftscopeCudaMatmul*, DriftscopeCudaMessage*);

}  // extern "C"
