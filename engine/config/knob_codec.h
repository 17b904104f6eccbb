// SPDX-License-Identifier: Apache-2.0
// Text forms of knob values: one codec per kind of field. Private to engine/config.
#pragma once

#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/config/run_config.h"
#include "kernels/base/result.h"

namespace driftscope::codec {

template <class E>
struct Names;  // specialised below: the text of each enumerator, in the order shown to people

template <class E>
using NameTable = std::pair<std::string_view, E>;

template <>
struct Names<WeightDtype> {
  static constexpr std::array table{NameTable<WeightDtype>{"checkpoint", WeightDtype::checkpoint},
                                    NameTable<WeightDtype>{"f32", WeightDtype::f32},
                                    NameTable<WeightDtype>{"f16", WeightDtype::f16},
                                    NameTable<WeightDtype>{"bf16", WeightDtype::bf16}};
};
template <>
struct Names<Dtype> {
  static constexpr std::array table{
      NameTable<Dtype>{"f32", Dtype::f32}, NameTable<Dtype>{"f16", Dtype::f16},
      NameTable<Dtype>{"bf16", Dtype::bf16}, NameTable<Dtype>{"f64", Dtype::f64}};
};
template <>
struct Names<KvDtype> {
  static constexpr std::array table{
      NameTable<KvDtype>{"f32", KvDtype::f32}, NameTable<KvDtype>{"f16", KvDtype::f16},
      NameTable<KvDtype>{"bf16", KvDtype::bf16}, NameTable<KvDtype>{"fp8_e4m3", KvDtype::fp8_e4m3},
      NameTable<KvDtype>{"int8", KvDtype::int8}};
};
template <>
struct Names<RopeTableDtype> {
  static constexpr std::array table{NameTable<RopeTableDtype>{"f32", RopeTableDtype::f32},
                                    NameTable<RopeTableDtype>{"f64", RopeTableDtype::f64},
                                    NameTable<RopeTableDtype>{"bf16", RopeTableDtype::bf16}};
};
template <>
struct Names<RoundingPoints> {
  static constexpr std::array table{
      NameTable<RoundingPoints>{"every_op", RoundingPoints::every_op},
      NameTable<RoundingPoints>{"fused", RoundingPoints::fused},
      NameTable<RoundingPoints>{"matmul_inputs", RoundingPoints::matmul_inputs}};
};
template <>
struct Names<ResidualMode> {
  static constexpr std::array table{
      NameTable<ResidualMode>{"rounded_first", ResidualMode::rounded_first},
      NameTable<ResidualMode>{"fused_f32", ResidualMode::fused_f32}};
};
template <>
struct Names<PlanPolicy> {
  static constexpr std::array table{
      NameTable<PlanPolicy>{"invariant", PlanPolicy::invariant},
      NameTable<PlanPolicy>{"shape_dependent", PlanPolicy::shape_dependent},
      NameTable<PlanPolicy>{"vendor", PlanPolicy::vendor}};
};
template <>
struct Names<LaneCombine> {
  static constexpr std::array table{NameTable<LaneCombine>{"butterfly", LaneCombine::butterfly},
                                    NameTable<LaneCombine>{"sequential", LaneCombine::sequential}};
};
template <>
struct Names<SplitCombine> {
  static constexpr std::array table{NameTable<SplitCombine>{"sequential", SplitCombine::sequential},
                                    NameTable<SplitCombine>{"tree", SplitCombine::tree},
                                    NameTable<SplitCombine>{"arrival", SplitCombine::arrival}};
};
template <>
struct Names<Accumulator> {
  static constexpr std::array table{NameTable<Accumulator>{"f32", Accumulator::f32},
                                    NameTable<Accumulator>{"f64", Accumulator::f64},
                                    NameTable<Accumulator>{"kahan", Accumulator::kahan},
                                    NameTable<Accumulator>{"bf16", Accumulator::bf16},
                                    NameTable<Accumulator>{"f16", Accumulator::f16}};
};
template <>
struct Names<AttentionMode> {
  static constexpr std::array table{
      NameTable<AttentionMode>{"eager", AttentionMode::eager},
      NameTable<AttentionMode>{"flash", AttentionMode::flash},
      NameTable<AttentionMode>{"split_kv_count", AttentionMode::split_kv_count},
      NameTable<AttentionMode>{"split_kv_size", AttentionMode::split_kv_size}};
};
template <>
struct Names<PrefixCache> {
  static constexpr std::array table{NameTable<PrefixCache>{"cold", PrefixCache::cold},
                                    NameTable<PrefixCache>{"warm", PrefixCache::warm}};
};
template <>
struct Names<Scoring> {
  static constexpr std::array table{NameTable<Scoring>{"decode", Scoring::decode},
                                    NameTable<Scoring>{"prefill", Scoring::prefill}};
};
template <>
struct Names<BackendKind> {
  static constexpr std::array table{NameTable<BackendKind>{"host", BackendKind::host},
                                    NameTable<BackendKind>{"cuda", BackendKind::cuda}};
};
template <>
struct Names<IsaChoice> {
  static constexpr std::array table{NameTable<IsaChoice>{"auto", IsaChoice::automatic},
                                    NameTable<IsaChoice>{"scalar", IsaChoice::scalar},
                                    NameTable<IsaChoice>{"avx2", IsaChoice::avx2},
                                    NameTable<IsaChoice>{"avx512", IsaChoice::avx512}};
};
template <>
struct Names<SeedScope> {
  static constexpr std::array table{
      NameTable<SeedScope>{"request", SeedScope::request},
      NameTable<SeedScope>{"shared_worker", SeedScope::shared_worker}};
};
template <>
struct Names<SamplerMethod> {
  static constexpr std::array table{
      NameTable<SamplerMethod>{"inverse_cdf", SamplerMethod::inverse_cdf},
      NameTable<SamplerMethod>{"gumbel_max", SamplerMethod::gumbel_max}};
};
template <>
struct Names<Quantisation> {
  static constexpr std::array table{
      NameTable<Quantisation>{"none", Quantisation::none},
      NameTable<Quantisation>{"int8_w8a16", Quantisation::int8_w8a16},
      NameTable<Quantisation>{"int8_w8a8", Quantisation::int8_w8a8},
      NameTable<Quantisation>{"fp8_tensor", Quantisation::fp8_tensor},
      NameTable<Quantisation>{"fp8_channel", Quantisation::fp8_channel},
      NameTable<Quantisation>{"int4_symmetric", Quantisation::int4_symmetric},
      NameTable<Quantisation>{"int4_asymmetric", Quantisation::int4_asymmetric},
      NameTable<Quantisation>{"q8_0", Quantisation::q8_0},
      NameTable<Quantisation>{"q4_0", Quantisation::q4_0},
      NameTable<Quantisation>{"q4_k", Quantisation::q4_k},
      NameTable<Quantisation>{"q5_k", Quantisation::q5_k},
      NameTable<Quantisation>{"q6_k", Quantisation::q6_k}};
};
template <>
struct Names<MatmulKernel> {
  static constexpr std::array table{NameTable<MatmulKernel>{"portable", MatmulKernel::portable},
                                    NameTable<MatmulKernel>{"bf16_dot", MatmulKernel::bf16_dot}};
};
template <>
struct Names<AllReduce> {
  static constexpr std::array table{NameTable<AllReduce>{"one_shot", AllReduce::one_shot},
                                    NameTable<AllReduce>{"ring", AllReduce::ring},
                                    NameTable<AllReduce>{"tree", AllReduce::tree},
                                    NameTable<AllReduce>{"nccl", AllReduce::nccl}};
};
template <>
struct Names<ArrivalOrder> {
  static constexpr std::array table{NameTable<ArrivalOrder>{"together", ArrivalOrder::together},
                                    NameTable<ArrivalOrder>{"first", ArrivalOrder::first},
                                    NameTable<ArrivalOrder>{"last", ArrivalOrder::last}};
};

template <class E>
[[nodiscard]] std::string to_text_enum(E value) {
  for (const auto& [name, entry] : Names<E>::table) {
    if (entry == value) return std::string(name);
  }
  return "?";
}
template <class E>
[[nodiscard]] bool from_text_enum(std::string_view text, E& value) {
  for (const auto& [name, entry] : Names<E>::table) {
    if (name == text) {
      value = entry;
      return true;
    }
  }
  return false;
}

// Numbers: shortest text that reads back to the same bits; independent of the locale.
[[nodiscard]] std::string to_text(double value);
[[nodiscard]] std::string to_text(std::int64_t value);
[[nodiscard]] std::string to_text(std::uint64_t value);
[[nodiscard]] std::string to_text(bool value);
template <class Number>
[[nodiscard]] bool from_text(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}
[[nodiscard]] bool from_text_bool(std::string_view text, bool& value);  // true false on off 1 0

// Lists are JSON arrays in text form: ["\n\n","END"], [2,7].
[[nodiscard]] std::string to_text(const std::vector<std::string>& values);
[[nodiscard]] std::string to_text(const std::vector<std::int32_t>& values);
[[nodiscard]] bool from_text_list(std::string_view text, std::vector<std::string>& values);
[[nodiscard]] bool from_text_list(std::string_view text, std::vector<std::int32_t>& values);

}  // namespace driftscope::codec
