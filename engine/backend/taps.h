// SPDX-License-Identifier: Apache-2.0
// The operations of a forward pass that can be recorded, in the order in which they run.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/model/checkpoint.h"
#include "engine/trace/trace.h"

namespace driftscope {

enum class Operation : std::uint8_t {
  embd,
  attn_norm,
  q_cur,
  k_cur,
  v_cur,
  q_cur_normed,
  k_cur_normed,
  q_rope,
  k_rope,
  kqv_out,
  attn_out,
  attn_post_norm,
  ffn_inp,
  ffn_norm,
  ffn_gate,
  ffn_up,
  ffn_swiglu,
  moe_logits,
  moe_out,
  moe_shared,
  ffn_out,
  ffn_post_norm,
  l_out,
  result_norm,
};

// Where an operation stands: once before the layers, in each of them, or once after them.
enum class OperationPlace : std::uint8_t { before_layers, in_layer, after_layers };

struct OperationSpec {
  Operation operation = Operation::embd;
  std::string_view name;  // llama.cpp's name for it, so that other tools' dumps line up
  OperationPlace place = OperationPlace::in_layer;
  bool at_layers = false;  // recorded at TapLevel::layers already
  // Which layers have it.
  bool (*exists)(const ModelDescription&, std::int64_t layer) = nullptr;
  std::int64_t (*width)(const ModelDescription&) = nullptr;
  std::string_view help;
};
// In the order of Operation and of execution.
[[nodiscard]] std::span<const OperationSpec> tap_operations();
[[nodiscard]] std::string_view name_of(Operation operation);

// The routers of this model.
[[nodiscard]] RouteSpec route_spec(const ModelDescription& model);

// Taps that a run of this model emits at this level, in the order of emission.
[[nodiscard]] std::vector<TapSpec> tap_specs(const ModelDescription& model, TapLevel level);

}  // namespace driftscope
