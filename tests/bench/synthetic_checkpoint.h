// SPDX-License-Identifier: Apache-2.0
// Random checkpoints in real shapes, for benches.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "kernels/base/result.h"

namespace driftscope::bench {

struct SyntheticShape {
  const char* name;
  std::int64_t hidden;
  std::int64_t layers;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t intermediate;
  std::int64_t vocabulary;
};
// Qwen2.5-0.5B, tied; 494 million parameters, 988 MB in bf16.
inline constexpr SyntheticShape kHalfBillion{"0.5B", 896, 24, 14, 2, 4864, 151936};
// The shape of Llama-3.2-1B, tied; 1.24 billion parameters, 2.5 GB in bf16.
inline constexpr SyntheticShape kOneBillion{"1B", 2048, 16, 32, 8, 8192, 128256};
// For trying the bench out.
inline constexpr SyntheticShape kSmall{"15M", 288, 6, 6, 6, 768, 32000};

// Writes config.json and model.safetensors (Qwen2, bf16, a function of the shape alone) into
// `folder`, which is made if it is not there. Errors: output.
[[nodiscard]] Result<void> write_synthetic_checkpoint(const std::filesystem::path& folder,
                                                      const SyntheticShape& shape);

}  // namespace driftscope::bench
