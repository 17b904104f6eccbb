// SPDX-License-Identifier: Apache-2.0
// How near the matmul kernels come to the machine: few rows against the memory read rate, many rows
// against the f32 multiply-add peak (bf16_dot: that of its instruction). Limit and kernel
// alternate, so a busy neighbour slows both. Usage: matmul_bench [--rounds N] [--isa NAME] [--csv
// FILE] [--quick] [--only NAME]
//                     [--cpu-clock]
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "engine/backend/host/thread_pool.h"
#include "kernels/base/large_array.h"
#include "kernels/matmul/matmul.h"
#include "tests/bench/matmul_bench_limits.h"

namespace driftscope::bench {
namespace {

struct Options {
  int rounds = 5;
  Isa isa = detect_isa();
  std::string csv;
  bool quick = false;
  bool cpu_clock = false;  // processor time, one thread
  std::string only;        // cases whose name contains this
};

struct Case {
  const char* name;
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  Dtype dtype;
  ReductionPlan plan;
  bool slow = false;  // left out by --quick
  bool dot = false;   // bf16_dot, against that instruction's peak
};

const ReductionPlan kPortable{.lanes = 32};

// Shapes of the 0.5B model (hidden 896, feed-forward 4864, vocabulary 151936) and of the 1B.
const std::vector<Case> kCases = {
    {"decode up", 1, 4864, 896, Dtype::bf16, kPortable},
    {"decode down", 1, 896, 4864, Dtype::bf16, kPortable},
    {"decode qkv", 1, 1152, 896, Dtype::bf16, kPortable},
    {"decode head", 1, 151936, 896, Dtype::bf16, kPortable},
    {"decode up f32", 1, 4864, 896, Dtype::f32, kPortable, true},
    {"decode up f16", 1, 4864, 896, Dtype::f16, kPortable, true},
    {"decode up split 4", 1, 4864, 896, Dtype::bf16, {.lanes = 32, .split_k = 4}},
    {"decode down split 4", 1, 896, 4864, Dtype::bf16, {.lanes = 32, .split_k = 4}},
    {"decode up lanes 16", 1, 4864, 896, Dtype::bf16, {.lanes = 16}, true},
    {"decode up lanes 64", 1, 4864, 896, Dtype::bf16, {.lanes = 64}, true},
    {"decode up sequential",
     1,
     4864,
     896,
     Dtype::bf16,
     {.lanes = 32, .lane_combine = LaneCombine::sequential},
     true},
    {"decode 1B up", 1, 8192, 2048, Dtype::bf16, kPortable, true},
    {"decode 1B down", 1, 2048, 8192, Dtype::bf16, kPortable, true},
    {"batch up", 2, 4864, 896, Dtype::bf16, kPortable},
    {"batch up", 4, 4864, 896, Dtype::bf16, kPortable},
    {"batch up", 8, 4864, 896, Dtype::bf16, kPortable},
    {"batch up", 11, 4864, 896, Dtype::bf16, kPortable},
    {"batch up", 12, 4864, 896, Dtype::bf16, kPortable},
    {"batch up", 16, 4864, 896, Dtype::bf16, kPortable},
    {"batch up", 24, 4864, 896, Dtype::bf16, kPortable, true},
    {"batch up", 32, 4864, 896, Dtype::bf16, kPortable},
    {"batch up", 48, 4864, 896, Dtype::bf16, kPortable, true},
    {"batch up", 96, 4864, 896, Dtype::bf16, kPortable, true},
    {"batch up", 192, 4864, 896, Dtype::bf16, kPortable, true},
    {"batch down", 16, 896, 4864, Dtype::bf16, kPortable, true},
    {"batch down", 96, 896, 4864, Dtype::bf16, kPortable, true},
    {"batch down", 192, 896, 4864, Dtype::bf16, kPortable, true},
    {"prefill up", 512, 4864, 896, Dtype::bf16, kPortable},
    {"prefill down", 512, 896, 4864, Dtype::bf16, kPortable},
    {"prefill qkv", 512, 1152, 896, Dtype::bf16, kPortable},
    {"prefill up f32", 512, 4864, 896, Dtype::f32, kPortable, true},
    {"prefill up lanes 16", 512, 4864, 896, Dtype::bf16, {.lanes = 16}, true},
    {"prefill up lanes 64", 512, 4864, 896, Dtype::bf16, {.lanes = 64}, true},
    {"prefill up split 4", 512, 4864, 896, Dtype::bf16, {.lanes = 32, .split_k = 4}, true},
    {"prefill up sequential",
     512,
     4864,
     896,
     Dtype::bf16,
     {.lanes = 32, .lane_combine = LaneCombine::sequential},
     true},
    {"prefill 1B up", 512, 8192, 2048, Dtype::bf16, kPortable, true},
    {"prefill 1B down", 512, 2048, 8192, Dtype::bf16, kPortable, true},
    {"decode up dot", 1, 4864, 896, Dtype::bf16, kPortable, true, true},
    {"decode down dot", 1, 896, 4864, Dtype::bf16, kPortable, true, true},
    {"prefill up dot", 512, 4864, 896, Dtype::bf16, kPortable, false, true},
    {"prefill down dot", 512, 896, 4864, Dtype::bf16, kPortable, true, true},
    {"prefill 1B up dot", 512, 8192, 2048, Dtype::bf16, kPortable, true, true},
    {"batch up f64", 16, 4864, 896, Dtype::bf16, {.lanes = 32, .accumulator = Accumulator::f64}},
    {"decode up kahan",
     1,
     4864,
     896,
     Dtype::bf16,
     {.lanes = 32, .accumulator = Accumulator::kahan}},
    {"decode up lanes 1", 1, 4864, 896, Dtype::bf16, {.lanes = 1}},
    {"decode up lanes 128", 1, 4864, 896, Dtype::bf16, {.lanes = 128}, true},
};

struct Measured {
  double seconds;    // of one matmul
  double gigabytes;  // weight bytes per second / 1e9
  double gigaflops;
  double memory_limit;   // GB/s
  double compute_limit;  // GFLOP/s
  double memory_share;   // medians of the rounds' ratios
  double compute_share;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void fill(HugeBuffer& buffer, Dtype dtype) {
  std::uint32_t state = 1;
  std::vector<float> values(4096);
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31F;
  }
  const std::size_t bytes = values.size() * dtype_size(dtype);
  for (std::size_t at = 0; at + bytes <= buffer.size(); at += bytes) {
    narrow(dtype, values.data(), buffer.data() + at, values.size());
  }
}

// One pass: matmuls over distinct weights all through the buffer, as a model's layers are, so
// that no cache holds them from call to call; at most about a second. Returns seconds per matmul.
double run_pass(const Case& test, const Options& options, const HugeBuffer& weights,
                const FloatArray& x, FloatArray& y, Parallel& parallel) {
  const std::size_t bytes = static_cast<std::size_t>(test.n * test.k) * dtype_size(test.dtype);
  const std::size_t copies = std::max<std::size_t>(1, weights.size() / bytes);
  const double start = now_seconds();
  std::size_t done = 0;
  while (done < copies && (done == 0 || now_seconds() - start < 0.5)) {
    MatmulArguments arguments;
    arguments.x = x.data();
    arguments.m = test.m;
    arguments.weight = {weights.data() + done * bytes, test.dtype, test.n, test.k};
    arguments.y = y.data();
    arguments.plan = test.plan;
    if (test.dot) {
      matmul_bf16_dot(arguments, parallel);
    } else {
      matmul(arguments, options.isa, parallel);
    }
    ++done;
  }
  return (now_seconds() - start) / static_cast<double>(done);
}

Measured measure(const Case& test, const Options& options, HugeBuffer& weights,
                 Parallel& parallel) {
  fill(weights, test.dtype);
  const FloatArray x(static_cast<std::size_t>(test.m * test.k), 0.25F);
  FloatArray y(static_cast<std::size_t>(test.m * test.n));
  const double bytes =
      static_cast<double>(test.n * test.k) * static_cast<double>(dtype_size(test.dtype));
  const double operations =
      2.0 * static_cast<double>(test.m * test.n) * static_cast<double>(test.k);
  std::vector<double> seconds;
  std::vector<double> memory;
  std::vector<double> compute;
  std::vector<double> memory_share;
  std::vector<double> compute_share;
  run_pass(test, options, weights, x, y, parallel);  // warm-up
  for (int round = 0; round < options.rounds; ++round) {
    memory.push_back(memory_read_rate(weights, parallel));
    compute.push_back(test.dot ? bf16_dot_rate(parallel) : fma_rate(parallel));
    seconds.push_back(run_pass(test, options, weights, x, y, parallel));
    memory_share.push_back(bytes / seconds.back() / memory.back());
    compute_share.push_back(operations / seconds.back() / compute.back());
  }
  const double typical = median(seconds);
  return {typical,
          bytes / typical * 1e-9,
          operations / typical * 1e-9,
          median(memory) * 1e-9,
          median(compute) * 1e-9,
          median(memory_share),
          median(compute_share)};
}

int run(const Options& options) {
  std::FILE* csv = options.csv.empty() ? nullptr : std::fopen(options.csv.c_str(), "w");
  constexpr const char* kColumns =
      "case,m,n,k,dtype,plan,threads,ms,ms_per_row,gbytes_s,gflop_s,read_limit,fma_limit,"
      "read_share,fma_share\n";
  if (csv != nullptr) fmt::print(csv, kColumns);
  fmt::print(
      "isa {}; rates are medians of {} rounds, shares are of limits taken in the same round\n",
      isa_name(options.isa), options.rounds);
  fmt::print(
      "{:<22} {:>4} {:>6} {:>5} {:>4} {:>3} {:>9} {:>8} {:>6} {:>7} {:>7} {:>7} {:>6} {:>6}\n",
      "case", "m", "n", "k", "type", "thr", "ms", "ms/row", "GB/s", "GFLOP/s", "read", "fma",
      "%read", "%fma");
  HugeBuffer weights(std::size_t{288} << 20U);
  for (const Case& test : kCases) {
    if (options.quick && test.slow) continue;
    if (test.dot && !has_avx512_bf16()) continue;
    if (std::string_view(test.name).find(options.only) == std::string_view::npos) continue;
    for (const int threads : {1, 2}) {
      if (options.cpu_clock && threads > 1) continue;
      ThreadPool pool(threads);
      const Measured r = measure(test, options, weights, pool);
      const double ms = r.seconds * 1e3;
      const double per_row = ms / static_cast<double>(test.m);
      fmt::print(
          "{:<22} {:>4} {:>6} {:>5} {:>4} {:>3} {:>9.4f} {:>8.4f} {:>6.1f} {:>7.1f} {:>7.1f} "
          "{:>7.1f} "
          "{:>6.1f} {:>6.1f}\n",
          test.name, test.m, test.n, test.k, dtype_name(test.dtype), threads, ms, per_row,
          r.gigabytes, r.gigaflops, r.memory_limit, r.compute_limit, 100 * r.memory_share,
          100 * r.compute_share);
      std::fflush(stdout);
      if (csv != nullptr) {
        fmt::print(csv, "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", test.name, test.m, test.n,
                   test.k, dtype_name(test.dtype), to_string(test.plan), threads, ms, per_row,
                   r.gigabytes, r.gigaflops, r.memory_limit, r.compute_limit, r.memory_share,
                   r.compute_share);
      }
    }
  }
  if (csv != nullptr) std::fclose(csv);
  return 0;
}

int usage() {
  fmt::print(stderr,
             "usage: matmul_bench [--rounds N] [--isa scalar|avx2|avx512] [--csv FILE] [--quick] "
             "[--only NAME] [--cpu-clock]\n");
  return 2;
}

}  // namespace
}  // namespace driftscope::bench

int main(int argc, char** argv) {
  using namespace driftscope::bench;
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (flag == "--quick") {
      options.quick = true;
    } else if (flag == "--cpu-clock") {
      options.cpu_clock = true;
      use_cpu_clock();
    } else if (value == nullptr) {
      return usage();
    } else if (flag == "--rounds") {
      options.rounds = std::max(1, std::atoi(value));
      ++i;
    } else if (flag == "--csv") {
      options.csv = value;
      ++i;
    } else if (flag == "--only") {
      options.only = value;
      ++i;
    } else if (flag == "--isa" && driftscope::isa_from_name(value)) {
      options.isa = *driftscope::isa_from_name(value);
      ++i;
    } else {
      return usage();
    }
  }
  return run(options);
}
