// SPDX-License-Identifier: Apache-2.0
// Quantised weights and 8-bit caches in whole runs.
#include <gtest/gtest.h>

#include <limits>

#include "engine/backend/host/host_weights.h"
#include "engine/config/knob.h"
#include "kernels/quant/quantise.h"
#include "tests/exec/ranked_model.h"
#include "tests/exec/recording.h"
#include "tests/exec/tiny_checkpoint.h"

namespace driftscope::test {
namespace {

const char* const kFormats[] = {"int8_w8a16",  "int8_w8a8",      "fp8_tensor",
                                "fp8_channel", "int4_symmetric", "int4_asymmetric"};

RunConfig config_with(std::initializer_list<const char*> assignments) {
  RunConfig config;
  config.threads = 1;
  config.sampling.ignore_eos = true;
  for (const char* assignment : assignments) {
    const auto done = set_knob_assignment(config, assignment);
    EXPECT_TRUE(done) << assignment;
  }
  return config;
}

RunConfig quantised(const char* format) {
  RunConfig config = config_with({"quantisation_group=32"});
  EXPECT_TRUE(set_knob(config, "quantisation", format));
  return config;
}

std::shared_ptr<const ModelCheckpoint> model() {
  static const auto checkpoint = tiny_checkpoint({.type = "qwen2"});
  return checkpoint;
}

std::vector<RecordedStep> run(const RunConfig& config) {
  return generate({.model = model(), .config = config, .prompt = some_ids(20, 160, 1)}, 4);
}

std::vector<float> stored(const TensorView& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  widen(tensor.dtype, tensor.data, values.data(), values.size());
  return values;
}

std::vector<float> read(const WeightView& view) {
  std::vector<float> values(static_cast<std::size_t>(view.rows * view.columns));
  for (std::int64_t row = 0; row < view.rows; ++row) {
    dequantise_row(view.quantised, row, 0, view.columns, values.data() + row * view.columns);
  }
  return values;
}

// Every matrix of a layer, against quantising that tensor alone.
TEST(QuantisedWeights, AreTheCheckpointsTensorsQuantisedOneByOne) {
  for (const QuantFormatInfo& info : quant_formats()) {
    const QuantSpec spec{.format = info.format, .group = 32};
    const auto weights = *HostWeights::load(model(), {.stacked = true, .quantisation = spec});
    const HostLayer& layer = weights->layer(1);
    const LayerTensors& tensors = model()->layer(1);
    const std::pair<const TensorView*, const Linear*> pairs[] = {
        {&tensors.q, &layer.q},      {&tensors.k, &layer.k},       {&tensors.v, &layer.v},
        {&tensors.o, &layer.o},      {&tensors.gate, &layer.gate}, {&tensors.up, &layer.up},
        {&tensors.down, &layer.down}};
    for (const auto& [tensor, linear] : pairs) {
      const std::int64_t rows = tensor->shape[0];
      const std::int64_t columns = tensor->shape[1];
      const QuantLayout layout = quant_layout(spec, rows, columns);
      std::vector<std::uint8_t> codes(layout.code_bytes);
      std::vector<float> scales(layout.scale_count);
      std::vector<std::uint8_t> zeros(layout.zero_bytes);
      const QuantTarget target{.codes = codes.data(),
                               .scales = scales.data(),
                               .zeros = zeros.empty() ? nullptr : zeros.data()};
      SerialParallel serial;
      ASSERT_FALSE(
          quantise_matrix(spec, tensor->dtype, tensor->data, rows, columns, target, serial));
      const WeightView alone{.data = codes.data(),
                             .dtype = Dtype::f32,
                             .rows = rows,
                             .columns = columns,
                             .quantised = quantised_view(spec, layout, target)};
      EXPECT_EQ(linear->weight.rows, rows);
      EXPECT_EQ(read(linear->weight), read(alone)) << info.name << " " << tensor->name;
      EXPECT_NE(read(linear->weight), stored(*tensor)) << info.name << " " << tensor->name;
    }
    std::vector<float> parts = read(layer.q.weight);
    for (const Linear* part : {&layer.k, &layer.v}) {
      const auto values = read(part->weight);
      parts.insert(parts.end(), values.begin(), values.end());
    }
    EXPECT_EQ(read(layer.qkv.weight), parts) << info.name;
    EXPECT_FALSE(weights->embedding().quantised.present());
    EXPECT_FALSE(weights->lm_head().quantised.present());
  }
}

TEST(QuantisedWeights, LmHeadIsQuantisedOnRequestAndTheEmbeddingNever) {
  const QuantSpec spec{.format = QuantFormat::int8_channel};
  for (const bool tied : {false, true}) {
    const auto checkpoint = tiny_checkpoint({.tied = tied});
    const auto weights =
        *HostWeights::load(checkpoint, {.quantisation = spec, .quantise_lm_head = true});
    EXPECT_FALSE(weights->embedding().quantised.present());
    EXPECT_TRUE(weights->lm_head().quantised.present());
    EXPECT_NE(weights->quantisation_note().find("lm_head int8_channel"), std::string::npos);
    const auto left = *HostWeights::load(checkpoint, {.quantisation = spec});
    EXPECT_EQ(left->lm_head().data == left->embedding().data, tied);
    EXPECT_NE(left->quantisation_note().find("lm_head as stored"), std::string::npos);
    EXPECT_NE(left->storage_note().find(left->quantisation_note()), std::string::npos);
  }
}

TEST(QuantisedWeights, NanIsAnErrorThatNamesTheTensor) {
  const TinyModel tiny{};
  auto tensors = random_tensors(tiny);
  for (NamedTensor& tensor : tensors) {
    if (tensor.name == "model.layers.1.mlp.up_proj.weight") {
      tensor.values[65] = std::numeric_limits<float>::quiet_NaN();  // 64 columns: row 1, column 1
    }
  }
  const auto checkpoint = open_tensors(tiny, tensors);
  const auto loaded = HostWeights::load(
      checkpoint, {.quantisation = QuantSpec{.format = QuantFormat::int4_symmetric}});
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().kind, ErrorKind::malformed);
  EXPECT_NE(loaded.error().message.find("model.layers.1.mlp.up_proj.weight: element [1, 1]"),
            std::string::npos)
      << loaded.error().message;
}

TEST(QuantisedWeights, CacheTellsFormatsGroupsAndHeadsApart) {
  WeightCache cache;
  const QuantSpec int4{.format = QuantFormat::int4_symmetric, .group = 32};
  const auto first = *cache.get(model(), {.quantisation = int4});
  EXPECT_EQ(first, *cache.get(model(), {.stacked = true, .quantisation = int4}));
  EXPECT_NE(first, *cache.get(model(), {}));
  EXPECT_NE(first, *cache.get(model(), {.quantisation = int4, .quantise_lm_head = true}));
  const QuantSpec wider{.format = QuantFormat::int4_symmetric, .group = 64};
  EXPECT_NE(first, *cache.get(model(), {.quantisation = wider}));
}

// The same logits from one thread and two, from every instruction set, fused or not, in chunks of
// prefill or whole, and beside neighbours.
TEST(QuantisedRuns, NothingButTheFormatMatters) {
  for (const char* format : kFormats) {
    const RunConfig base = quantised(format);
    const auto expected = run(base);
    for (const char* assignment : {"threads=2", "isa=scalar", "isa=avx2", "fused_qkv=true",
                                   "fused_gate_up=true", "prefill_chunk=7", "attention_page=16"}) {
      RunConfig other = base;
      ASSERT_TRUE(set_knob_assignment(other, assignment));
      if (other.isa == IsaChoice::avx2 && !isa_supported(Isa::avx2)) continue;
      EXPECT_TRUE(same_logits(expected, run(other))) << format << " " << assignment;
    }
    RunConfig beside = base;
    beside.neighbours = 3;
    LaneInput input{.model = model(), .config = beside, .prompt = some_ids(20, 160, 1)};
    for (std::uint64_t i = 0; i < 3; ++i) {
      input.neighbour_prompts.push_back(some_ids(9, 160, 5 + i));
    }
    EXPECT_TRUE(same_logits(expected, generate(input, 4))) << format << " beside neighbours";
  }
}

TEST(QuantisedRuns, EveryFormatHasItsOwnLogits) {
  std::vector<std::vector<RecordedStep>> runs = {run(config_with({}))};
  for (const char* format : kFormats) runs.push_back(run(quantised(format)));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_FALSE(same_bits(runs[i][0].logits, runs[j][0].logits)) << i << " and " << j;
    }
  }
}

TEST(QuantisedRuns, EightBitCachesChangeBitsAndPagesDoNot) {
  const auto plain = run(config_with({}));
  for (const char* type : {"kv_dtype=fp8_e4m3", "kv_dtype=int8"}) {
    const auto coded = run(config_with({type}));
    EXPECT_FALSE(same_logits(plain, coded)) << type;
    EXPECT_TRUE(same_logits(coded, run(config_with({type, "attention_page=8"})))) << type;
    EXPECT_TRUE(same_logits(coded, run(config_with({type, "isa=scalar"})))) << type;
  }
}

// Ranks share a row of codes: columns that begin inside a block of int4, or inside a group.
TEST(QuantisedRuns, RanksGiveTheSameBitsWithOneTreeOfSums) {
  for (const char* format : {"int8_w8a16", "fp8_channel", "int4_symmetric", "int4_asymmetric"}) {
    std::vector<RecordedStep> alone;
    for (const std::int64_t ranks : {1, 2, 8}) {
      RunConfig config = invariant_config(ranks);
      config.quantisation_group = 32;
      ASSERT_TRUE(set_knob(config, "quantisation", format));
      const auto steps = generate(input_of(eight_heads(), config), 3);
      if (alone.empty()) alone = steps;
      EXPECT_TRUE(same_logits(alone, steps)) << format << " " << ranks << " ranks";
    }
  }
}

// Each rank has scales of its own for its inputs: the codes differ, so no order of sums helps.
TEST(QuantisedRuns, RanksOfIntegerActivationsDifferAndSaySo) {
  RunConfig one = config_of(1);
  RunConfig two = config_of(2);
  one.quantisation = two.quantisation = Quantisation::int8_w8a8;
  EXPECT_FALSE(same_logits(generate(input_of(eight_heads(), one), 2),
                           generate(input_of(eight_heads(), two), 2)));
  RunConfig invariant = invariant_config(2);
  invariant.quantisation = Quantisation::int8_w8a8;
  RecordingSink sink;
  const LaneInput input = input_of(eight_heads(), invariant);
  const auto done = run_lockstep({.a = input, .b = input, .steps = 1}, sink, {}, {});
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("tensor_parallel_invariant"), std::string::npos);
}

}  // namespace
}  // namespace driftscope::test
