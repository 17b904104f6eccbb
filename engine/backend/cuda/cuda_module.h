// SPDX-License-Identifier: Apache-2.0
// Finds and loads the module driftscope_cuda. Includes no CUDA header and is always built: on a
// machine without CUDA, load() fails with a calm line and nothing else changes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/backend/cuda/cuda_interface.h"
#include "kernels/base/result.h"

namespace driftscope {

struct CudaDevice {
  std::string name;
  int compute_major = 0;
  int compute_minor = 0;
  int multiprocessors = 0;
  std::uint64_t memory_bytes = 0;
};

class CudaModule {
 public:
  // Where it looks: the environment variable DRIFTSCOPE_CUDA_MODULE (a file) alone if set, else
  // beside the executable, then ../lib/driftscope. Errors (engine): not there, not loadable, built
  // for another interface.
  [[nodiscard]] static Result<CudaModule> load();
  [[nodiscard]] static Result<CudaModule> load(const std::string& path);

  [[nodiscard]] const std::string& path() const { return m_path; }
  // "12.4"; empty where no driver is installed.
  [[nodiscard]] Result<std::string> driver_version() const;
  [[nodiscard]] Result<std::string> runtime_version() const;
  // Errors (engine): no driver, or no device; the message says which and what to do.
  [[nodiscard]] Result<std::vector<CudaDevice>> devices() const;
  [[nodiscard]] const CudaTable& table() const { return *m_table; }

  // A table that is part of this program (the SIMT harness).
  [[nodiscard]] static CudaModule of(const CudaTable& table);

 private:
  struct Close {
    void operator()(void* handle) const;
  };
  [[nodiscard]] Result<CudaVersions> versions() const;

  std::unique_ptr<void, Close> m_handle;
  std::string m_path;
  const CudaTable* m_table = nullptr;
};

// One line for `doctor`: the devices, or why there are none.
[[nodiscard]] std::string cuda_summary();

}  // namespace driftscope
