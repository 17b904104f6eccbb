// SPDX-License-Identifier: Apache-2.0
// What the CUDA backend honours of each knob. A knob that is not listed stays at its default there.
#include <deque>
#include <map>

#include "engine/config/knob_rows.h"

namespace driftscope::knob_rows {
namespace {

using Values = std::vector<std::string_view>;

// Empty: every value.
const std::map<std::string_view, Values>& honoured() {
  static const std::map<std::string_view, Values> table{
      {"backend", {"cuda"}},
      {"weight_dtype", {}},
      {"lm_head_dtype", {}},
      {"activation_dtype", {}},
      {"rounding_points", {}},
      {"kv_dtype", {}},
      {"softmax_dtype", {}},
      {"rope_table_dtype", {}},
      {"logits_dtype", {}},
      {"router_dtype", {}},
      {"quantisation",
       {"none", "int8_w8a16", "int8_w8a8", "fp8_tensor", "fp8_channel", "int4_symmetric",
        "int4_asymmetric"}},
      {"quantisation_group", {}},
      {"quantise_lm_head", {}},
      {"matmul_policy", {}},
      {"matmul_lanes", {}},
      {"matmul_split_k", {}},
      {"lane_combine", {}},
      {"split_combine", {}},
      {"accumulator", {}},
      {"arrival_seed", {}},
      {"tf32", {}},
      {"reduced_precision_reduction", {}},
      {"cublas_workspace", {}},
      {"cublas_algorithm", {}},
      {"attention", {}},
      {"attention_tile", {}},
      {"attention_splits", {}},
      {"attention_split_size", {}},
      {"attention_lanes", {}},
      {"attention_combine", {}},
      {"attention_page", {}},
      {"norm_lanes", {}},
      {"norm_split", {}},
      {"residual", {}},
      {"fused_qkv", {}},
      {"fused_gate_up", {}},
      {"tensor_parallel", {}},
      {"all_reduce", {}},
      {"reduce_dtype", {}},
      {"tensor_parallel_invariant", {}},
      {"cuda_graph", {}},
      {"cuda_streams", {}},
      // Above the backend: the batch engine and the sampler.
      {"neighbours", {}},
      {"batch_position", {}},
      {"prefill_chunk", {}},
      {"prefix_cache", {}},
      {"arrival_order", {}},
      {"neighbour_steps", {}},
      {"graph_sizes", {}},
      {"speculative_tokens", {}},
      {"scoring", {}},
      {"temperature", {}},
      {"top_p", {}},
      {"top_k", {}},
      {"min_p", {}},
      {"repetition_penalty", {}},
      {"presence_penalty", {}},
      {"frequency_penalty", {}},
      {"seed", {}},
      {"seed_scope", {}},
      {"stop", {}},
      {"stop_token_ids", {}},
      {"ignore_eos", {}},
  };
  return table;
}

}  // namespace

void set_cuda_values(std::vector<KnobSpec>& knobs) {
  static std::deque<std::string> defaults;  // string_views point into it
  for (KnobSpec& knob : knobs) {
    const auto known = honoured().find(knob.id);
    if (known != honoured().end()) {
      knob.cuda_values = known->second;
    } else {
      defaults.push_back(knob.get(RunConfig{}));
      knob.cuda_values = {defaults.back()};
    }
  }
}

}  // namespace driftscope::knob_rows
