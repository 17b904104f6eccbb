// SPDX-License-Identifier: Apache-2.0
// Instruction set chosen at run time. Every portable variant gives the same bits on each.
#pragma once

#include <optional>
#include <string_view>

namespace driftscope {

enum class Isa { scalar, avx2, avx512 };

[[nodiscard]] std::string_view isa_name(Isa isa);
[[nodiscard]] std::optional<Isa> isa_from_name(std::string_view name);
// The widest set that both this CPU and the operating system support. The environment variable
// DRIFTSCOPE_ISA (scalar, avx2, avx512) may lower it, never raise it; other values are ignored.
[[nodiscard]] Isa detect_isa();
// True where `isa` can run here (scalar always can).
[[nodiscard]] bool isa_supported(Isa isa);
// True where the CPU has AVX512-BF16 dot instructions (a named, non-portable variant).
[[nodiscard]] bool has_avx512_bf16();

}  // namespace driftscope
