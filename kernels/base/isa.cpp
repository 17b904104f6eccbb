// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/isa.h"

#include <cstdlib>

namespace driftscope {

namespace {

#if defined(__x86_64__)
// The builtins read cpuid and, for AVX and AVX-512, whether the operating system saves the
// registers.
bool cpu_has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool cpu_has_avx512() {
  return cpu_has_avx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq");
}
bool cpu_has_avx512_bf16() { return cpu_has_avx512() && __builtin_cpu_supports("avx512bf16"); }
#else
bool cpu_has_avx2() { return false; }
bool cpu_has_avx512() { return false; }
bool cpu_has_avx512_bf16() { return false; }
#endif

Isa widest_supported() {
  if (cpu_has_avx512()) return Isa::avx512;
  if (cpu_has_avx2()) return Isa::avx2;
  return Isa::scalar;
}

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::scalar:
      return "scalar";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
  }
  return "unknown";
}

std::optional<Isa> isa_from_name(std::string_view name) {
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    if (isa_name(isa) == name) return isa;
  }
  return std::nullopt;
}

Isa detect_isa() {
  const Isa widest = widest_supported();
  const char* wish = std::getenv("DRIFTSCOPE_ISA");
  if (wish == nullptr) return widest;
  const std::optional<Isa> wished = isa_from_name(wish);
  return wished && *wished < widest ? *wished : widest;
}

bool isa_supported(Isa isa) { return isa <= widest_supported(); }

bool has_avx512_bf16() { return cpu_has_avx512_bf16(); }

}  // namespace driftscope
