// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/matmul_bench_limits.h"

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <new>

#include "kernels/base/isa.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace driftscope::bench {

namespace {

constexpr std::int64_t kSteps = 4'000'000;
std::atomic<std::uint64_t> sink{0};
bool cpu_clock = false;

#if defined(__x86_64__)
// Written in assembly: compilers delete or spill such loops. Independent sums on zeroed registers.
__attribute__((target("avx512f"))) std::int64_t fma_avx512() {
  std::int64_t left = kSteps;
  asm volatile(
      "vpxorq %%zmm30, %%zmm30, %%zmm30\n"
      "vpxorq %%zmm31, %%zmm31, %%zmm31\n"
      "1:\n"
      "vfmadd231ps %%zmm31, %%zmm30, %%zmm0\n"
      "vfmadd231ps %%zmm31, %%zmm30, %%zmm1\n"
      "vfmadd231ps %%zmm31, %%zmm30, %%zmm2\n"
      "vfmadd231ps %%zmm31, %%zmm30, %%zmm3\n"
      "vfmadd231ps %%zmm31, %%zmm30, %%zmm4\n"
      "vfmadd231ps %%zmm31, %%zmm30, %%zmm5\n"
      "vfmadd231ps %%zmm31, %%zmm30, %%zmm6\n"
      "vfmadd231ps %%zmm31, %%zmm30, %%zmm7\n"
      "vfmadd231ps %%zmm31, %%zmm30, %%zmm8\n"
      "vfmadd231ps %%zmm31, %%zmm30, %%zmm9\n"
      "vfmadd231ps %%zmm31, %%zmm30, %%zmm10\n"
      "vfmadd231ps %%zmm31, %%zmm30, %%zmm11\n"
      "vfmadd231ps %%zmm31, %%zmm30, %%zmm12\n"
      "vfmadd231ps %%zmm31, %%zmm30, %%zmm13\n"
      "vfmadd231ps %%zmm31, %%zmm30, %%zmm14\n"
      "vfmadd231ps %%zmm31, %%zmm30, %%zmm15\n"
      "dec %0\n"
      "jnz 1b\n"
      : "+r"(left)
      :
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
        "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm30", "xmm31");
  return kSteps * 16 * 16 * 2;
}

__attribute__((target("avx512f,avx512bf16"))) std::int64_t dot_avx512() {
  std::int64_t left = kSteps;
  asm volatile(
      "vpxorq %%zmm30, %%zmm30, %%zmm30\n"
      "vpxorq %%zmm31, %%zmm31, %%zmm31\n"
      "1:\n"
      "vdpbf16ps %%zmm31, %%zmm30, %%zmm0\n"
      "vdpbf16ps %%zmm31, %%zmm30, %%zmm1\n"
      "vdpbf16ps %%zmm31, %%zmm30, %%zmm2\n"
      "vdpbf16ps %%zmm31, %%zmm30, %%zmm3\n"
      "vdpbf16ps %%zmm31, %%zmm30, %%zmm4\n"
      "vdpbf16ps %%zmm31, %%zmm30, %%zmm5\n"
      "vdpbf16ps %%zmm31, %%zmm30, %%zmm6\n"
      "vdpbf16ps %%zmm31, %%zmm30, %%zmm7\n"
      "vdpbf16ps %%zmm31, %%zmm30, %%zmm8\n"
      "vdpbf16ps %%zmm31, %%zmm30, %%zmm9\n"
      "vdpbf16ps %%zmm31, %%zmm30, %%zmm10\n"
      "vdpbf16ps %%zmm31, %%zmm30, %%zmm11\n"
      "vdpbf16ps %%zmm31, %%zmm30, %%zmm12\n"
      "vdpbf16ps %%zmm31, %%zmm30, %%zmm13\n"
      "vdpbf16ps %%zmm31, %%zmm30, %%zmm14\n"
      "vdpbf16ps %%zmm31, %%zmm30, %%zmm15\n"
      "dec %0\n"
      "jnz 1b\n"
      : "+r"(left)
      :
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
        "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm30", "xmm31");
  return kSteps * 16 * 32 * 2;
}

__attribute__((target("avx2,fma"))) std::int64_t fma_avx2() {
  std::int64_t left = kSteps;
  asm volatile(
      "vpxor %%ymm14, %%ymm14, %%ymm14\n"
      "vpxor %%ymm15, %%ymm15, %%ymm15\n"
      "1:\n"
      "vfmadd231ps %%ymm15, %%ymm14, %%ymm0\n"
      "vfmadd231ps %%ymm15, %%ymm14, %%ymm1\n"
      "vfmadd231ps %%ymm15, %%ymm14, %%ymm2\n"
      "vfmadd231ps %%ymm15, %%ymm14, %%ymm3\n"
      "vfmadd231ps %%ymm15, %%ymm14, %%ymm4\n"
      "vfmadd231ps %%ymm15, %%ymm14, %%ymm5\n"
      "vfmadd231ps %%ymm15, %%ymm14, %%ymm6\n"
      "vfmadd231ps %%ymm15, %%ymm14, %%ymm7\n"
      "vfmadd231ps %%ymm15, %%ymm14, %%ymm8\n"
      "vfmadd231ps %%ymm15, %%ymm14, %%ymm9\n"
      "vfmadd231ps %%ymm15, %%ymm14, %%ymm10\n"
      "vfmadd231ps %%ymm15, %%ymm14, %%ymm11\n"
      "dec %0\n"
      "jnz 1b\n"
      : "+r"(left)
      :
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
        "xmm10", "xmm11", "xmm14", "xmm15");
  return kSteps * 12 * 8 * 2;
}

__attribute__((target("avx2"))) std::uint64_t read_avx2(const std::uint8_t* data,
                                                        std::size_t bytes) {
  __m256i s[8];
#pragma GCC unroll 8
  for (std::size_t i = 0; i < 8; ++i) s[i] = _mm256_setzero_si256();
  for (std::size_t at = 0; at + 256 <= bytes; at += 256) {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < 8; ++i) {
      const auto* p = reinterpret_cast<const __m256i*>(data + at + 32 * i);
      s[i] = _mm256_add_epi64(s[i], _mm256_loadu_si256(p));
    }
  }
#pragma GCC unroll 8
  for (std::size_t i = 1; i < 8; ++i) s[0] = _mm256_add_epi64(s[0], s[i]);
  return static_cast<std::uint64_t>(_mm256_extract_epi64(s[0], 0)) +
         static_cast<std::uint64_t>(_mm256_extract_epi64(s[0], 1)) +
         static_cast<std::uint64_t>(_mm256_extract_epi64(s[0], 2)) +
         static_cast<std::uint64_t>(_mm256_extract_epi64(s[0], 3));
}
#endif

std::int64_t fma_plain() {
  float s[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  for (std::int64_t step = 0; step < kSteps; ++step) {
    for (float& v : s) {
      v = v * 0.999F + 0.001F;
      asm volatile("" : "+m"(v));
    }
  }
  return kSteps * 8 * 2;
}

std::uint64_t read_plain(const std::uint8_t* data, std::size_t bytes) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(data);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < bytes / 8; ++i) sum += words[i];
  return sum;
}

std::int64_t fma_widest() {
#if defined(__x86_64__)
  if (isa_supported(Isa::avx512)) return fma_avx512();
  if (isa_supported(Isa::avx2)) return fma_avx2();
#endif
  return fma_plain();
}

std::uint64_t read_widest(const std::uint8_t* data, std::size_t bytes) {
#if defined(__x86_64__)
  if (isa_supported(Isa::avx2)) return read_avx2(data, bytes);
#endif
  return read_plain(data, bytes);
}

}  // namespace

HugeBuffer::HugeBuffer(std::size_t bytes) : m_size(bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  m_data = static_cast<std::uint8_t*>(memory);
}
HugeBuffer::~HugeBuffer() { ::munmap(m_data, m_size); }

void use_cpu_clock() { cpu_clock = true; }

double now_seconds() {
  if (cpu_clock) {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

double memory_read_rate(const HugeBuffer& buffer, Parallel& parallel) {
  constexpr std::size_t kPiece = std::size_t{1} << 20U;
  const std::size_t pieces = buffer.size() / kPiece;
  const double start = now_seconds();
  parallel.run(pieces, [&](std::size_t piece, int) {
    sink += read_widest(buffer.data() + piece * kPiece, kPiece);
  });
  return static_cast<double>(pieces * kPiece) / (now_seconds() - start);
}

namespace {

// Operations of all workers per second.
double operation_rate(std::int64_t (*run)(), Parallel& parallel) {
  std::atomic<std::int64_t> operations{0};
  const double start = now_seconds();
  parallel.run(static_cast<std::size_t>(parallel.workers()),
               [&](std::size_t, int) { operations += run(); });
  return static_cast<double>(operations) / (now_seconds() - start);
}

}  // namespace

double fma_rate(Parallel& parallel) { return operation_rate(fma_widest, parallel); }

double bf16_dot_rate(Parallel& parallel) {
#if defined(__x86_64__)
  if (has_avx512_bf16()) return operation_rate(dot_avx512, parallel);
#endif
  static_cast<void>(parallel);
  return 0.0;
}

}  // namespace driftscope::bench
