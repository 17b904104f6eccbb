// SPDX-License-Identifier: Apache-2.0
// Knobs of how requests run: batch, parallel, execution, sampling.
#include "engine/config/knob_rows.h"

namespace driftscope::knob_rows {

void add_batch(std::vector<KnobSpec>& knobs) {
  const auto g = std::string_view{"batch"};
  const Reach with_batch{.effect = KnobEffect::changes_with_batch,
                         .base = "matmul_policy=shape_dependent"};
  knobs.push_back(number<DRIFTSCOPE_FIELD(neighbours)>(
      kInteger,
      {"neighbours", g, "Neighbours",
       "Other requests in the batch, each with a prompt and a continuation of its own."},
      0, 255, with_batch));
  knobs.push_back(number<DRIFTSCOPE_FIELD(batch_position)>(
      kInteger,
      {"batch_position", g, "Position in batch",
       "Where this request stands among its neighbours. With prefill_chunk it decides whose prompt "
       "goes in first."},
      0, 255, {.effect = KnobEffect::none_expected, .base = "neighbours=4"}));
  knobs.push_back(number<DRIFTSCOPE_FIELD(prefill_chunk)>(
      kInteger,
      {"prefill_chunk", g, "Prefill chunk",
       "Prompt rows per call, beside the decode rows of others; 0: the whole prompt."},
      0, 1048576, with_batch));
  knobs.push_back(choice<DRIFTSCOPE_FIELD(prefix_cache)>(
      {"prefix_cache", g, "Prefix cache",
       "warm: the prompt's whole 16-token blocks come from an earlier request's cache."},
      with_batch));
  knobs.push_back(choice<DRIFTSCOPE_FIELD(arrival_order)>(
      {"arrival_order", g, "Arrival order",
       "together: one group; first: this request runs first and neighbours join one per step; "
       "last: neighbours already decode when it arrives."},
      {.effect = KnobEffect::changes_with_batch,
       .base = "matmul_policy=shape_dependent neighbours=4"}));
  knobs.push_back(number<DRIFTSCOPE_FIELD(neighbour_steps)>(
      kInteger,
      {"neighbour_steps", g, "Neighbour steps",
       "Steps after which neighbours leave the batch, one per step; 0: they stay."},
      0, 1048576,
      {.effect = KnobEffect::changes_with_batch,
       .base = "matmul_policy=shape_dependent neighbours=8"}));
  knobs.push_back(make<DRIFTSCOPE_FIELD(graph_sizes)>(
      KnobKind::integer_list,
      {"graph_sizes", g, "Graph padding sizes",
       "JSON list: rows of a decode call are padded up to the next of these, as captured graphs "
       "are; beyond the largest they are not padded."},
      with_batch));
  knobs.push_back(number<DRIFTSCOPE_FIELD(speculative_tokens)>(
      kInteger,
      {"speculative_tokens", g, "Speculative tokens",
       "Draft tokens verified per step: k + 1 rows of a request are in flight together."},
      0, 64, with_batch));
}

void add_parallel(std::vector<KnobSpec>& knobs) {
  const auto g = std::string_view{"parallel"};
  knobs.push_back(number<DRIFTSCOPE_FIELD(tensor_parallel)>(
      kInteger,
      {"tensor_parallel", g, "Tensor-parallel ranks",
       "Ranks that share each matrix; partial sums meet in an all-reduce."},
      1, 8, {.effect = KnobEffect::changes_bits, .base = {}}, true));
  knobs.push_back(choice<DRIFTSCOPE_FIELD(all_reduce)>(
      {"all_reduce", g, "All-reduce",
       "Order in which ranks' partial sums are added: one_shot in rank order, ring, tree, or "
       "NCCL (CUDA only)."},
      {.effect = KnobEffect::changes_bits,
       .base = "tensor_parallel=4",
       .host = {"one_shot", "ring", "tree"}}));
  knobs.push_back(choice<DRIFTSCOPE_FIELD(reduce_dtype)>(
      {"reduce_dtype", g, "All-reduce dtype", "Type of what ranks send."},
      {.effect = KnobEffect::changes_bits, .base = "tensor_parallel=4"}, {"f32", "f16", "bf16"}));
  knobs.push_back(make<DRIFTSCOPE_FIELD(tensor_parallel_invariant)>(
      KnobKind::boolean,
      {"tensor_parallel_invariant", g, "TP-invariant sums",
       "Tree-aligned plans, so that any number of ranks gives the same bits; needs "
       "all_reduce=tree, reduce_dtype=f32 and accumulator=f32."},
      {.effect = KnobEffect::changes_bits, .base = "all_reduce=tree"}));
}

void add_execution(std::vector<KnobSpec>& knobs) {
  const auto g = std::string_view{"execution"};
  const Reach unchanged{.effect = KnobEffect::none_expected, .base = {}};
  knobs.push_back(choice<DRIFTSCOPE_FIELD(backend)>(
      {"backend", g, "Backend", "Where the model runs."},
      {.effect = KnobEffect::none_expected, .base = {}, .host = {"host"}}));
  knobs.push_back(number<DRIFTSCOPE_FIELD(threads)>(
      kInteger, {"threads", g, "Threads", "Worker threads of the host backend; 0: one per core."},
      0, 1024, unchanged));
  knobs.push_back(choice<DRIFTSCOPE_FIELD(isa)>(
      {"isa", g, "Instruction set",
       "Vector instructions of the host backend; all give the same bits."},
      unchanged));
  const Reach cuda_only{.effect = KnobEffect::none_expected, .base = {}, .host = {"false"}};
  knobs.push_back(make<DRIFTSCOPE_FIELD(cuda_graph)>(
      KnobKind::boolean, {"cuda_graph", g, "CUDA graph", "Decode calls replay a captured graph."},
      cuda_only));
  knobs.push_back(number<DRIFTSCOPE_FIELD(cuda_streams)>(
      kInteger, {"cuda_streams", g, "CUDA streams", "Streams that independent kernels share."}, 1,
      32, {.effect = KnobEffect::none_expected, .base = {}, .host = {"1"}}));
  knobs.push_back(number<DRIFTSCOPE_FIELD(cublas_workspace)>(
      kInteger,
      {"cublas_workspace", g, "cuBLAS workspace", "KiB that cuBLAS may use (CUDA, vendor policy)."},
      0, 1048576, {.effect = KnobEffect::changes_bits, .base = {}, .host = {"32768"}}));
  knobs.push_back(number<DRIFTSCOPE_FIELD(cublas_algorithm)>(
      kInteger,
      {"cublas_algorithm", g, "cuBLAS algorithm",
       "-1: the heuristic's first proposal; else its n-th (CUDA, vendor policy)."},
      -1, 63, {.effect = KnobEffect::changes_bits, .base = {}, .host = {"-1"}}));
  knobs.push_back(choice<DRIFTSCOPE_FIELD(scoring)>(
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
  knobs.push_back(number<DRIFTSCOPE_FIELD(sampling.temperature)>(
      kReal,
      {"temperature", g, "Temperature", "0: greedy, the highest logit, ties to the lower id."}, 0,
      100, greedy_too));
  knobs.push_back(number<DRIFTSCOPE_FIELD(sampling.top_p)>(
      kReal, {"top_p", g, "Top-p", "Smallest set of tokens whose probability reaches this."}, 0, 1,
      choice_only));
  knobs.push_back(number<DRIFTSCOPE_FIELD(sampling.top_k)>(
      kInteger, {"top_k", g, "Top-k", "Only the k best tokens; 0: all."}, 0, 1048576, choice_only));
  knobs.push_back(number<DRIFTSCOPE_FIELD(sampling.min_p)>(
      kReal,
      {"min_p", g, "Min-p", "Only tokens with at least this share of the best one's probability."},
      0, 1, choice_only));
  knobs.push_back(number<DRIFTSCOPE_FIELD(sampling.repetition_penalty)>(
      kReal,
      {"repetition_penalty", g, "Repetition penalty",
       "Divides positive and multiplies negative logits of tokens seen, prompt included."},
      0.01, 100, greedy_too));
  knobs.push_back(number<DRIFTSCOPE_FIELD(sampling.presence_penalty)>(
      kReal,
      {"presence_penalty", g, "Presence penalty", "Subtracted once for tokens already emitted."},
      -100, 100, greedy_too));
  knobs.push_back(number<DRIFTSCOPE_FIELD(sampling.frequency_penalty)>(
      kReal,
      {"frequency_penalty", g, "Frequency penalty",
       "Subtracted for each time a token was already emitted."},
      -100, 100, greedy_too));
  knobs.push_back(number<DRIFTSCOPE_FIELD(sampling.seed)>(
      kInteger,
      {"seed", g, "Seed", "Key of the Philox generator; a draw depends on seed and step."}, 0,
      kLargest, choice_only));
  knobs.push_back(choice<DRIFTSCOPE_FIELD(sampling.seed_scope)>(
      {"seed_scope", g, "Seed scope",
       "request: each request has a stream of its own; shared_worker: one stream for all requests "
       "in flight, so neighbours consume numbers."},
      {.effect = KnobEffect::changes_choice, .base = "temperature=1 neighbours=4"}));
  knobs.push_back(choice<DRIFTSCOPE_FIELD(sampling.method)>(
      {"sampler", g, "Sampler",
       "inverse_cdf: one uniform number against the cumulative distribution; gumbel_max: the "
       "highest logit plus Gumbel noise, drawn per token."},
      choice_only));
  knobs.push_back(make<DRIFTSCOPE_FIELD(sampling.stop_strings)>(
      KnobKind::text_list, {"stop", g, "Stop strings", "JSON list of texts that end the answer."},
      greedy_too));
  knobs.push_back(make<DRIFTSCOPE_FIELD(sampling.stop_tokens)>(
      KnobKind::integer_list,
      {"stop_token_ids", g, "Stop tokens",
       "JSON list of ids that end the answer, besides the model's."},
      greedy_too));
  knobs.push_back(make<DRIFTSCOPE_FIELD(sampling.ignore_eos)>(
      KnobKind::boolean,
      {"ignore_eos", g, "Ignore end of sequence", "Go on past the model's end token."},
      greedy_too));
}

}  // namespace driftscope::knob_rows
