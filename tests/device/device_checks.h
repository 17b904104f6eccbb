// SPDX-License-Identifier: Apache-2.0
// Self-tests and benches of a device. Needs no test library.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/backend/cuda/cuda_module.h"
#include "engine/model/checkpoint.h"

namespace driftscope::parity {

struct SelfTest {
  std::string name;
  bool passed = false;
  std::string detail;
};
// A rerun and a batch's neighbours change nothing under `invariant`; neighbours change bits under
// `shape_dependent`; a graph and further streams change nothing.
[[nodiscard]] std::vector<SelfTest> run_self_tests(const std::shared_ptr<const CudaModule>& module);

struct BenchLine {
  std::string name;
  double value = 0.0;
  std::string unit;
  double share = 0.0;  // of the limit measured in the same minute; 0: none applies
  std::string note;    // an error, where it could not run
};
// Decode against the device's copy bandwidth, prefill with our kernels and with cuBLAS, and what
// `invariant` costs, on random weights in the shapes of a 0.5 B model. `seconds`: about how long.
[[nodiscard]] std::vector<BenchLine> run_benches(const std::shared_ptr<const CudaModule>& module,
                                                 double seconds);

}  // namespace driftscope::parity
