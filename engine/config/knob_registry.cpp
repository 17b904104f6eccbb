// SPDX-License-Identifier: Apache-2.0
// The table of knobs. To add one: a field in RunConfig, a row here, and the code that honours it.
#include "engine/config/knob.h"
#include "engine/config/knob_codec.h"

namespace driftscope {
namespace {

using codec::Names;

// `Access` is a captureless lambda that returns a reference to the field.
template <auto Access>
using FieldOf = std::remove_cvref_t<decltype(Access(std::declval<RunConfig&>()))>;

[[nodiscard]] Result<void> refused() {
  return fail(ErrorKind::usage, "");  // set_knob() writes the message: it knows the table
}

template <auto Access>
std::string get_field(const RunConfig& config) {
  using Field = FieldOf<Access>;
  const Field& field = Access(const_cast<RunConfig&>(config));
  if constexpr (std::is_enum_v<Field>) {
    return codec::to_text_enum(field);
  } else if constexpr (std::is_same_v<Field, int>) {
    return codec::to_text(std::int64_t{field});
  } else {
    return codec::to_text(field);
  }
}

template <auto Access>
Result<void> set_field(RunConfig& config, std::string_view text) {
  using Field = FieldOf<Access>;
  Field& field = Access(config);
  bool read = false;
  if constexpr (std::is_enum_v<Field>) {
    read = codec::from_text_enum(text, field);
  } else if constexpr (std::is_same_v<Field, bool>) {
    read = codec::from_text_bool(text, field);
  } else if constexpr (std::is_arithmetic_v<Field>) {
    read = codec::from_text(text, field);
  } else {
    read = codec::from_text_list(text, field);
  }
  if (!read) return refused();
  return {};
}

struct Row {
  std::string_view id, group, title, help;
};
struct Reach {  // which values each backend honours, and what a change does
  KnobEffect effect = KnobEffect::changes_bits;
  std::string_view base;
  std::vector<std::string_view> host = {};
  std::vector<std::string_view> cuda = {"-"};
};

template <auto Access>
KnobSpec make(KnobKind kind, const Row& row, const Reach& reach) {
  KnobSpec spec;
  spec.id = row.id;
  spec.group = row.group;
  spec.title = row.title;
  spec.help = row.help;
  spec.kind = kind;
  spec.host_values = reach.host;
  spec.cuda_values = reach.cuda;
  spec.effect = reach.effect;
  spec.effect_base = reach.base;
  spec.get = &get_field<Access>;
  spec.set = &set_field<Access>;
  return spec;
}

template <auto Access>
KnobSpec choice(const Row& row, const Reach& reach, std::vector<std::string_view> only = {}) {
  KnobSpec spec = make<Access>(KnobKind::choice, row, reach);
  if (only.empty()) {
    for (const auto& entry : Names<FieldOf<Access>>::table) only.push_back(entry.first);
  }
  spec.choices = std::move(only);
  return spec;
}
template <auto Access>
KnobSpec number(KnobKind kind, const Row& row, double minimum, double maximum, const Reach& reach,
                bool power_of_two = false) {
  KnobSpec spec = make<Access>(kind, row, reach);
  spec.minimum = minimum;
  spec.maximum = maximum;
  spec.power_of_two = power_of_two;
  return spec;
}

#define FIELD(path) \
  [](RunConfig & c) -> auto& { return c.path; }

constexpr auto kInteger = KnobKind::integer;
constexpr auto kReal = KnobKind::real;
constexpr double kLargest = 9007199254740991.0;  // 2^53 - 1: exact in every JSON reader

void add_precision(std::vector<KnobSpec>& knobs) {
  const auto g = std::string_view{"precision"};
  knobs.push_back(choice<FIELD(weight_dtype)>(
      {"weight_dtype", g, "Weight dtype",
       "Type in which weights are held. A wider type than the stored one changes no value."},
      {}));
  knobs.push_back(choice<FIELD(lm_head_dtype)>(
      {"lm_head_dtype", g, "LM head dtype",
       "Type of the output matrix, where it differs from the other weights."},
      {}));
  knobs.push_back(choice<FIELD(activation_dtype)>(
      {"activation_dtype", g, "Activation dtype",
       "Type to which activations are rounded at the rounding points."},
      {}, {"f32", "f16", "bf16"}));
  knobs.push_back(choice<FIELD(rounding_points)>(
      {"rounding_points", g, "Rounding points",
       "every_op: after each operation, as separate 16-bit kernels do; fused: once at the end of "
       "each "
       "fused kernel; matmul_inputs: only what matmuls read and the KV cache stores."},
      {.base = "activation_dtype=bf16"}));
  knobs.push_back(choice<FIELD(kv_dtype)>(
      {"kv_dtype", g, "KV cache dtype", "Type in which keys and values are stored."}, {},
      {"f32", "f16", "bf16"}));
  knobs.push_back(choice<FIELD(softmax_dtype)>(
      {"softmax_dtype", g, "Softmax dtype",
       "Type of attention's exponentials and their sum; f16 and bf16 also round the result."},
      {}));
  knobs.push_back(choice<FIELD(rope_table_dtype)>(
      {"rope_table_dtype", g, "RoPE table dtype",
       "Type in which the angles of the rotary embedding are computed and stored; a mismatch known "
       "from comparing serving and training stacks."},
      {}));
  knobs.push_back(choice<FIELD(logits_dtype)>(
      {"logits_dtype", g, "Logits dtype", "Type to which the logits are rounded."}, {},
      {"f32", "f16", "bf16"}));
}

void add_matmul(std::vector<KnobSpec>& knobs) {
  const auto g = std::string_view{"matmul"};
  knobs.push_back(choice<FIELD(matmul_policy)>(
      {"matmul_policy", g, "Matmul policy",
       "invariant: one plan whatever the number of rows in flight; shape_dependent: a table from "
       "rows to plans, as GPU libraries choose kernels; vendor: cuBLAS picks (CUDA only)."},
      {.base = {}, .host = {"invariant", "shape_dependent"}}));
  knobs.push_back(number<FIELD(matmul_plan.lanes)>(
      kInteger, {"matmul_lanes", g, "Lanes", "Partial sums side by side in each dot product."}, 1,
      1024, {}, true));
  knobs.push_back(number<FIELD(matmul_plan.split_k)>(
      kInteger, {"matmul_split_k", g, "Split-K", "Chunks into which each dot product is cut."}, 1,
      1024, {}));
  knobs.push_back(choice<FIELD(matmul_plan.lane_combine)>(
      {"lane_combine", g, "Lane combine", "Order in which the lanes of a chunk are added."}, {}));
  knobs.push_back(choice<FIELD(matmul_plan.split_combine)>(
      {"split_combine", g, "Split combine",
       "Order in which chunk sums are added; arrival: a seeded permutation, as atomics give."},
      {.base = "matmul_split_k=8"}));
  knobs.push_back(
      choice<FIELD(matmul_plan.accumulator)>({"accumulator", g, "Accumulator",
                                              "Type of the matmul sums: f32, f64, compensated f32 "
                                              "(kahan), or rounded to 16 bits after each chunk."},
                                             {.base = "matmul_split_k=4"}));
  knobs.push_back(number<FIELD(matmul_plan.arrival_seed)>(
      kInteger,
      {"arrival_seed", g, "Arrival seed", "Which permutation split_combine=arrival takes."}, 0,
      kLargest, {.base = "matmul_split_k=8 split_combine=arrival"}));
}

void add_attention(std::vector<KnobSpec>& knobs) {
  const auto g = std::string_view{"attention"};
  knobs.push_back(choice<FIELD(attention)>(
      {"attention", g, "Attention",
       "eager: whole softmax; flash: online softmax over key tiles; split_kv_count: a fixed number "
       "of splits; split_kv_size: splits of a fixed size (batch-invariant)."},
      {}));
  knobs.push_back(number<FIELD(attention_tile)>(
      kInteger, {"attention_tile", g, "Flash tile", "Keys per tile of flash attention."}, 1, 65536,
      {.base = "attention=flash"}));
  knobs.push_back(number<FIELD(attention_splits)>(
      kInteger, {"attention_splits", g, "KV splits", "Number of splits under split_kv_count."}, 1,
      256, {.base = "attention=split_kv_count"}));
  knobs.push_back(number<FIELD(attention_split_size)>(
      kInteger, {"attention_split_size", g, "KV split size", "Keys per split under split_kv_size."},
      1, 65536, {.base = "attention=split_kv_size"}));
  knobs.push_back(number<FIELD(attention_lanes)>(
      kInteger, {"attention_lanes", g, "Score lanes", "Lanes of each query-key dot product."}, 1,
      1024, {}, true));
  knobs.push_back(choice<FIELD(attention_combine)>(
      {"attention_combine", g, "KV split combine", "Order in which splits are merged."},
      {.base = "attention=split_kv_count attention_splits=8"}));
}

void add_norm(std::vector<KnobSpec>& knobs) {
  const auto g = std::string_view{"norm"};
  knobs.push_back(number<FIELD(norm_lanes)>(
      kInteger, {"norm_lanes", g, "Norm lanes", "Lanes of RMSNorm's sum of squares."}, 1, 1024, {},
      true));
  knobs.push_back(number<FIELD(norm_split)>(
      kInteger, {"norm_split", g, "Norm split", "Chunks of RMSNorm's sum of squares."}, 1, 64, {}));
  knobs.push_back(choice<FIELD(residual)>({"residual", g, "Residual stream",
                                           "rounded_first: every residual sum is rounded to the "
                                           "activation type; fused_f32: it stays f32."},
                                          {.base = "activation_dtype=bf16"}));
  const Reach with_batch{.effect = KnobEffect::changes_with_batch,
                         .base = "matmul_policy=shape_dependent"};
  knobs.push_back(
      make<FIELD(fused_qkv)>(KnobKind::boolean,
                             {"fused_qkv", g, "Fused QKV",
                              "One matmul for q, k and v: its shape, and so its plan, differs."},
                             with_batch));
  knobs.push_back(make<FIELD(fused_gate_up)>(
      KnobKind::boolean, {"fused_gate_up", g, "Fused gate and up", "One matmul for gate and up."},
      with_batch));
}

void add_batch(std::vector<KnobSpec>& knobs) {
  const auto g = std::string_view{"batch"};
  const Reach with_batch{.effect = KnobEffect::changes_with_batch,
                         .base = "matmul_policy=shape_dependent"};
  knobs.push_back(number<FIELD(neighbours)>(
      kInteger,
      {"neighbours", g, "Neighbours", "Other requests in the batch, with prompts of their own."}, 0,
      255, with_batch));
  knobs.push_back(number<FIELD(batch_position)>(
      kInteger,
      {"batch_position", g, "Position in batch", "Where this request stands among its neighbours."},
      0, 255, {.effect = KnobEffect::none_expected, .base = "neighbours=4"}));
  knobs.push_back(number<FIELD(prefill_chunk)>(
      kInteger, {"prefill_chunk", g, "Prefill chunk", "Prompt rows per call; 0: the whole prompt."},
      0, 1048576, with_batch));
  knobs.push_back(choice<FIELD(prefix_cache)>(
      {"prefix_cache", g, "Prefix cache",
       "warm: the prompt's whole 16-token blocks come from an earlier request's cache."},
      with_batch));
}

void add_execution(std::vector<KnobSpec>& knobs) {
  const auto g = std::string_view{"execution"};
  const Reach unchanged{.effect = KnobEffect::none_expected, .base = {}};
  knobs.push_back(
      choice<FIELD(backend)>({"backend", g, "Backend", "Where the model runs."},
                             {.effect = KnobEffect::none_expected, .base = {}, .host = {"host"}}));
  knobs.push_back(number<FIELD(threads)>(
      kInteger, {"threads", g, "Threads", "Worker threads of the host backend; 0: one per core."},
      0, 1024, unchanged));
  knobs.push_back(
      choice<FIELD(isa)>({"isa", g, "Instruction set",
                          "Vector instructions of the host backend; all give the same bits."},
                         unchanged));
  knobs.push_back(choice<FIELD(scoring)>(
      {"scoring", "scoring", "Scoring",
       "decode: token by token with a KV cache; prefill: the whole sequence in one pass, as a "
       "trainer "
       "recomputes it."},
      {.effect = KnobEffect::changes_with_batch, .base = "matmul_policy=shape_dependent"}));
}

void add_sampling(std::vector<KnobSpec>& knobs) {
  const auto g = std::string_view{"sampling"};
  const Reach choice_only{.effect = KnobEffect::changes_choice, .base = "temperature=1"};
  const Reach greedy_too{.effect = KnobEffect::changes_choice, .base = {}};
  knobs.push_back(number<FIELD(sampling.temperature)>(
      kReal,
      {"temperature", g, "Temperature", "0: greedy, the highest logit, ties to the lower id."}, 0,
      100, greedy_too));
  knobs.push_back(number<FIELD(sampling.top_p)>(
      kReal, {"top_p", g, "Top-p", "Smallest set of tokens whose probability reaches this."}, 0, 1,
      choice_only));
  knobs.push_back(number<FIELD(sampling.top_k)>(
      kInteger, {"top_k", g, "Top-k", "Only the k best tokens; 0: all."}, 0, 1048576, choice_only));
  knobs.push_back(number<FIELD(sampling.min_p)>(
      kReal,
      {"min_p", g, "Min-p", "Only tokens with at least this share of the best one's probability."},
      0, 1, choice_only));
  knobs.push_back(number<FIELD(sampling.repetition_penalty)>(
      kReal,
      {"repetition_penalty", g, "Repetition penalty",
       "Divides positive and multiplies negative logits of tokens seen, prompt included."},
      0.01, 100, greedy_too));
  knobs.push_back(number<FIELD(sampling.presence_penalty)>(
      kReal,
      {"presence_penalty", g, "Presence penalty", "Subtracted once for tokens already emitted."},
      -100, 100, greedy_too));
  knobs.push_back(number<FIELD(sampling.frequency_penalty)>(
      kReal,
      {"frequency_penalty", g, "Frequency penalty",
       "Subtracted for each time a token was already emitted."},
      -100, 100, greedy_too));
  knobs.push_back(number<FIELD(sampling.seed)>(
      kInteger,
      {"seed", g, "Seed", "Key of the Philox generator; a draw depends on seed and step."}, 0,
      kLargest, choice_only));
  knobs.push_back(choice<FIELD(sampling.seed_scope)>(
      {"seed_scope", g, "Seed scope", "request: each request has a stream of its own."},
      {.effect = KnobEffect::none_expected, .base = {}}));
  knobs.push_back(make<FIELD(sampling.stop_strings)>(
      KnobKind::text_list, {"stop", g, "Stop strings", "JSON list of texts that end the answer."},
      greedy_too));
  knobs.push_back(make<FIELD(sampling.stop_tokens)>(
      KnobKind::integer_list,
      {"stop_token_ids", g, "Stop tokens",
       "JSON list of ids that end the answer, besides the model's."},
      greedy_too));
  knobs.push_back(make<FIELD(sampling.ignore_eos)>(
      KnobKind::boolean,
      {"ignore_eos", g, "Ignore end of sequence", "Go on past the model's end token."},
      greedy_too));
}

#undef FIELD

std::vector<KnobSpec> build_registry() {
  std::vector<KnobSpec> knobs;
  knobs.reserve(64);
  add_precision(knobs);
  add_matmul(knobs);
  add_attention(knobs);
  add_norm(knobs);
  add_batch(knobs);
  add_execution(knobs);
  add_sampling(knobs);
  return knobs;
}

}  // namespace

std::span<const KnobSpec> knob_registry() {
  static const std::vector<KnobSpec> registry = build_registry();
  return registry;
}

}  // namespace driftscope
