// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/host/matmul_kernel_check.h"

#include <fmt/format.h>

#include <string>

#include "kernels/base/isa.h"
#include "kernels/matmul/matmul.h"

namespace driftscope {
namespace {

Result<void> refuse(const std::string& why) {
  return fail(ErrorKind::engine, fmt::format("knob matmul_kernel: bf16_dot {}", why));
}

// Empty where all matrices are bf16, else the first that is not.
std::string other_matrix(const HostWeights& weights) {
  const auto name = [](std::string_view matrix, const WeightView& weight) {
    return fmt::format("{} is {}", matrix, dtype_name(weight.dtype));
  };
  for (std::int64_t i = 0; i < weights.checkpoint().description().layers; ++i) {
    const HostLayer& layer = weights.layer(i);
    const HostExperts& moe = layer.moe;
    const std::pair<std::string_view, const Linear*> all[] = {
        {"q_proj", &layer.q},
        {"k_proj", &layer.k},
        {"v_proj", &layer.v},
        {"o_proj", &layer.o},
        {"gate_proj", &layer.gate},
        {"up_proj", &layer.up},
        {"down_proj", &layer.down},
        {"router", &moe.router},
        {"gate_proj of the shared expert", &moe.shared.gate},
        {"up_proj of the shared expert", &moe.shared.up},
        {"down_proj of the shared expert", &moe.shared.down},
        {"gate of the shared expert", &moe.shared_weight}};
    for (const auto& [matrix, linear] : all) {
      const WeightView& weight = linear->weight;
      if (weight.data == nullptr || weight.dtype == Dtype::bf16) continue;
      return name(fmt::format("{} of layer {}", matrix, i), weight);
    }
    for (const HostExpert& expert : moe.experts) {
      for (const Linear* linear : {&expert.gate, &expert.up, &expert.down}) {
        if (linear->weight.dtype == Dtype::bf16) continue;
        return name(fmt::format("an expert of layer {}", i), linear->weight);
      }
    }
  }
  if (weights.lm_head().dtype != Dtype::bf16) return name("lm_head", weights.lm_head());
  return {};
}

}  // namespace

Result<void> check_matmul_kernel(const RunConfig& config, const HostWeights& weights) {
  if (config.matmul_kernel != MatmulKernel::bf16_dot) return {};
  if (!has_avx512_bf16()) {
    return refuse(
        "needs a CPU with AVX512-BF16, which this one is not; use matmul_kernel=portable");
  }
  if (config.isa == IsaChoice::scalar || config.isa == IsaChoice::avx2) {
    return refuse("is an AVX-512 instruction; use isa=auto or isa=avx512");
  }
  if (!bf16_dot_accepts(config.matmul_plan)) {
    return refuse(
        fmt::format("runs with 16, 32 or 64 lanes and accumulator f32, bf16 or f16, not lanes={} "
                    "accumulator={}; "
                    "change them or use matmul_kernel=portable",
                    config.matmul_plan.lanes, name_of(config.matmul_plan.accumulator)));
  }
  if (config.quantisation != Quantisation::none) {
    return refuse("has no quantised weights; use quantisation=none or matmul_kernel=portable");
  }
  if (const std::string other = other_matrix(weights); !other.empty()) {
    return refuse(
        fmt::format("needs bf16 weights, and {}; give weight_dtype=bf16 and "
                    "lm_head_dtype=bf16 or matmul_kernel=portable",
                    other));
  }
  return {};
}

}  // namespace driftscope
