// SPDX-License-Identifier: Apache-2.0
// Writes NumPy's .npy format, version 1.0.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "kernels/base/result.h"

namespace driftscope::cli {

// A float32 matrix [rows, columns], row by row; PATH.part until finish().
class NpyWriter {
 public:
  [[nodiscard]] static Result<NpyWriter> create(const std::string& path, std::int64_t rows,
                                                std::int64_t columns);
  [[nodiscard]] Result<void> append(std::span<const float> row);
  [[nodiscard]] Result<void> finish();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string m_path;
  std::unique_ptr<std::FILE, Close> m_file;
};

}  // namespace driftscope::cli
