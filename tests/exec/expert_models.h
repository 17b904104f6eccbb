// SPDX-License-Identifier: Apache-2.0
// Small mixtures of experts for tests.
#pragma once

#include <string>

#include "engine/config/run_config.h"
#include "tests/exec/tiny_checkpoint.h"

namespace driftscope::test {

inline TinyModel tiny(const std::string& type) {
  return {.type = type, .layers = 3, .intermediate = 48, .renormalise = type != "qwen2_moe"};
}

inline RunConfig config_of(PlanPolicy policy) {
  RunConfig config;
  config.matmul_policy = policy;
  config.sampling.ignore_eos = true;
  config.threads = 1;
  return config;
}

}  // namespace driftscope::test
