// SPDX-License-Identifier: Apache-2.0
#include "tests/device/model_parity.h"

#include <bit>
#include <sstream>
#include <stdexcept>

#include "engine/backend/cuda/cuda_backend.h"
#include "engine/backend/host/host_backend.h"
#include "engine/config/knob.h"

namespace driftscope::parity {
namespace {

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

std::vector<TokenId> tokens(std::initializer_list<int> ids) {
  std::vector<TokenId> result;
  for (const int id : ids) result.push_back(TokenId{id});
  return result;
}

class Transcript {
 public:
  explicit Transcript(Backend& backend) : m_backend(backend) {}

  std::vector<std::uint32_t> run() {
    auto a = value_of(m_backend.create_cache(4));  // grows on the way
    auto b = value_of(m_backend.create_cache(40));
    const auto prompt_a = tokens({3, 14, 15, 9, 26, 5, 35});
    const auto prompt_b = tokens({2, 7, 18});
    call(Phase::prefill, {{a.get(), prompt_a, 2, true}, {b.get(), prompt_b, 1, false}});
    for (int step = 0; step < 6; ++step) {
      const auto next_a = tokens({8 + step});
      const auto next_b = tokens({40 - 3 * step});
      call(Phase::decode, {{a.get(), next_a, 1, true}, {b.get(), next_b, 1, false}});
      if (step == 3) b->truncate(4);
    }
    auto copy = value_of(a->clone());
    const auto more = tokens({1, 2, 3});
    call(Phase::score, {{copy.get(), more, 3, true}});
    call(Phase::score, {{a.get(), more, 0, false}});
    return std::move(m_bits);
  }

 private:
  void call(Phase phase, const std::vector<BatchSequence>& sequences) {
    value_of(m_backend.forward({.phase = phase, .sequences = sequences, .taps = TapLevel::all},
                               std::stop_token{}));
    const std::int64_t rows = m_backend.output_rows();
    m_bits.push_back(static_cast<std::uint32_t>(rows));
    for (std::int64_t row = 0; row < rows; ++row) {
      append(value_of(m_backend.logits(row, 1)));  // one by one, as large vocabularies are asked
      for (const TensorTap& tap : m_backend.taps(row)) append(tap.values);
      const RouteRow routes = m_backend.routes(row);
      for (const std::int32_t id : routes.experts) m_bits.push_back(static_cast<std::uint32_t>(id));
      append(routes.weights);
      append(routes.margins);
    }
  }
  void append(std::span<const float> values) {
    for (const float value : values) m_bits.push_back(std::bit_cast<std::uint32_t>(value));
  }

  Backend& m_backend;
  std::vector<std::uint32_t> m_bits;
};

}  // namespace

RunConfig config_of(const std::string& assignments) {
  RunConfig config;
  std::istringstream words(assignments);
  for (std::string word; words >> word;) value_of(set_knob_assignment(config, word));
  return config;
}

std::vector<std::uint32_t> transcript(Backend& backend) { return Transcript(backend).run(); }

const std::vector<ModelCase>& model_cases() {
  static const std::vector<ModelCase> cases{
      {"llama", "", ""},
      {"llama", "", "cuda_graph=true"},
      {"llama", "", "cuda_graph=true cuda_streams=3"},
      {"llama", "", "cuda_streams=2"},
      {"qwen2", "", ""},
      {"qwen2", "fused_qkv=true fused_gate_up=true", ""},
      {"qwen3", "activation_dtype=bf16 kv_dtype=bf16", "cuda_graph=true"},
      {"mistral", "attention_tile=4", ""},
      {"mistral", "attention=eager activation_dtype=f16", ""},
      {"llama", "activation_dtype=bf16 rounding_points=every_op", ""},
      {"llama", "activation_dtype=bf16 rounding_points=fused residual=fused_f32", ""},
      {"llama", "activation_dtype=f16 rounding_points=matmul_inputs kv_dtype=f16", ""},
      {"llama", "weight_dtype=f32 lm_head_dtype=f16 logits_dtype=bf16 rope_table_dtype=f64", ""},
      {"llama", "rope_table_dtype=bf16 norm_lanes=8 norm_split=3", ""},
      {"llama", "matmul_policy=shape_dependent fused_qkv=true", "cuda_graph=true"},
      {"llama", "matmul_lanes=16 matmul_split_k=3 split_combine=tree lane_combine=sequential", ""},
      {"llama", "matmul_split_k=4 split_combine=arrival arrival_seed=5", "cuda_graph=true"},
      {"llama", "accumulator=f64", ""},
      {"llama", "accumulator=kahan matmul_lanes=64", ""},
      {"llama", "accumulator=bf16 matmul_split_k=2", ""},
      {"llama", "accumulator=f16 matmul_split_k=2", ""},
      {"llama", "kv_dtype=fp8_e4m3", "cuda_graph=true"},
      {"mistral", "kv_dtype=int8 activation_dtype=bf16", ""},
      {"llama", "kv_dtype=int8 attention=eager attention_page=4", "cuda_graph=true"},
      {"llama", "kv_dtype=fp8_e4m3 attention=split_kv_size attention_split_size=3", ""},
      {"llama", "attention_page=3 kv_dtype=f16 attention=split_kv_count", ""},
      {"llama", "", "attention_page=5 cuda_graph=true"},
      {"llama", "kv_dtype=int8", "attention_page=1"},
      {"mixtral", "", ""},
      {"mixtral", "activation_dtype=bf16 router_dtype=bf16 fused_gate_up=true", "cuda_streams=2"},
      {"mixtral", "matmul_policy=shape_dependent quantisation=int4_symmetric quantisation_group=16",
       ""},
      {"qwen2_moe", "activation_dtype=bf16 rounding_points=every_op", ""},
      {"qwen2_moe", "activation_dtype=f16 rounding_points=fused quantisation=int8_w8a8", ""},
      {"qwen3_moe", "router_dtype=f16 kv_dtype=int8", ""},
      {"llama", "tensor_parallel=2", "cuda_graph=true"},
      {"qwen2", "tensor_parallel=4 all_reduce=ring reduce_dtype=bf16", "cuda_streams=3"},
      {"qwen2",
       "tensor_parallel=4 all_reduce=tree reduce_dtype=f16 fused_qkv=true "
       "fused_gate_up=true activation_dtype=bf16",
       "cuda_graph=true cuda_streams=2"},
      {"llama", "tensor_parallel=2 matmul_policy=shape_dependent matmul_split_k=2", ""},
      {"llama", "tensor_parallel=4 tensor_parallel_invariant=true all_reduce=tree", ""},
      {"llama", "tensor_parallel_invariant=true all_reduce=tree", ""},
      {"llama", "tensor_parallel=2 quantisation=int8_w8a8", ""},
      {"llama",
       "tensor_parallel=4 quantisation=int4_asymmetric quantisation_group=16 all_reduce=ring", ""},
      {"qwen2_moe", "tensor_parallel=4 all_reduce=ring reduce_dtype=bf16", ""},
      {"mixtral", "tensor_parallel=2 fused_gate_up=true quantisation=fp8_channel", ""},
      {"llama", "quantisation=int8_w8a16", "cuda_graph=true"},
      {"qwen2", "quantisation=int8_w8a16 fused_qkv=true fused_gate_up=true", ""},
      {"qwen2", "quantisation=int8_w8a8 matmul_split_k=2", "cuda_streams=3 cuda_graph=true"},
      {"llama", "quantisation=int8_w8a8 fused_qkv=true accumulator=f64 quantise_lm_head=true", ""},
      {"llama", "quantisation=fp8_tensor activation_dtype=bf16", ""},
      {"qwen3", "quantisation=fp8_channel quantise_lm_head=true matmul_lanes=16", ""},
      {"llama", "quantisation=int4_symmetric quantisation_group=16 fused_gate_up=true", ""},
      {"llama",
       "quantisation=int4_asymmetric quantisation_group=32 quantise_lm_head=true "
       "matmul_policy=shape_dependent",
       "cuda_graph=true"},
      {"llama", "attention=eager softmax_dtype=f64", "cuda_graph=true"},
      {"llama", "attention=flash attention_tile=3 softmax_dtype=bf16", ""},
      {"llama", "attention=split_kv_count attention_splits=3 attention_combine=tree", ""},
      {"llama", "attention=split_kv_count attention_splits=5 attention_combine=arrival",
       "cuda_graph=true"},
      {"llama",
       "attention=split_kv_size attention_split_size=4 attention_combine=arrival "
       "attention_lanes=4",
       "cuda_graph=true"},
      {"llama",
       "attention=split_kv_size attention_split_size=2 softmax_dtype=f64 attention_combine=tree",
       ""},
  };
  return cases;
}

namespace {

void mix(ExpertDescription& moe, std::int64_t experts, std::int64_t chosen,
         std::int64_t intermediate) {
  moe.experts = experts;
  moe.chosen = chosen;
  moe.intermediate = intermediate;
  moe.renormalise = true;
}

// Two layers, of which a mixture may leave one dense; heads and channels for 1, 2, 4 and 8 ranks.
RandomModel shape_of(const ModelCase& model_case) {
  RandomModel shape;
  shape.type = model_case.model;
  shape.sliding_window = model_case.model == "mistral" ? 5 : 0;
  shape.tied = model_case.model == "qwen2";
  if (shape.type == "mixtral") {
    mix(shape.moe, 5, 2, 24);
  } else if (shape.type == "qwen2_moe") {
    mix(shape.moe, 6, 3, 16);
    shape.moe.renormalise = false;
    shape.moe.shared_intermediate = 40;
    shape.moe.dense_layers.push_back(1);
  } else if (shape.type == "qwen3_moe") {
    mix(shape.moe, 40, 4, 8);
  }
  return shape;
}

}  // namespace

ModelResult run_case(const ModelCase& model_case, const std::shared_ptr<const CudaModule>& module) {
  const auto checkpoint = random_checkpoint(shape_of(model_case));
  const RunConfig on_host = config_of(model_case.both);
  const RunConfig on_device = config_of(model_case.both + " " + model_case.cuda + " backend=cuda");
  value_of(check_config(on_host));
  value_of(check_config(on_device));
  HostResources host;
  CudaResources cuda(module);
  const auto expected = transcript(*value_of(host.open(checkpoint, on_host)));
  const auto measured = transcript(*value_of(cuda.open(checkpoint, on_device)));
  ModelResult result{.name = model_case.model + ": " + model_case.both + " | " + model_case.cuda,
                     .values = expected.size()};
  if (measured.size() != expected.size()) return result;
  while (result.equal < expected.size() && measured[result.equal] == expected[result.equal]) {
    ++result.equal;
  }
  return result;
}

}  // namespace driftscope::parity
