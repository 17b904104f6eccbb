// SPDX-License-Identifier: Apache-2.0
// Whole models: the CUDA backend against the host's, bit for bit. Needs no test library.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/cuda/cuda_module.h"
#include "tests/device/random_checkpoint.h"

namespace driftscope::parity {

// Settings separated by spaces. Throws std::runtime_error for one that is wrong.
[[nodiscard]] RunConfig config_of(const std::string& assignments);

// Everything that a backend gives out, as bits: two sequences of different lengths prefilled in one
// call, decoded together, one of them going back in between, then a copy going on alone; logits and
// every tap. Throws std::runtime_error with the backend's message.
[[nodiscard]] std::vector<std::uint32_t> transcript(Backend& backend);

struct ModelCase {
  std::string model;  // a model type
  std::string both;   // settings of both sides
  std::string cuda;   // settings of the CUDA side only: no bit may change
};
[[nodiscard]] const std::vector<ModelCase>& model_cases();

struct ModelResult {
  std::string name;
  std::size_t values = 0;  // compared
  std::size_t equal = 0;   // up to the first that differs
};
[[nodiscard]] ModelResult run_case(const ModelCase& model_case,
                                   const std::shared_ptr<const CudaModule>& module);

}  // namespace driftscope::parity
