// SPDX-License-Identifier: Apache-2.0
#include "tests/capture/sample_capture.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <stdexcept>

namespace driftscope::testing {
namespace {

constexpr std::array<std::uint32_t, 8> kOddBits{
    0x7FC12345U,  // NaN with a payload
    0xFF800001U,  // signalling NaN, negative
    0x80000000U,  // -0
    0x00000001U,  // smallest subnormal
    0x7F800000U,  // +infinity
    0xFF800000U,  // -infinity
    0x7F7FFFFFU,  // largest finite
    0x3F800001U,  // 1 + 1 ulp
};

}  // namespace

std::vector<float> sample_row(Lane lane, std::int64_t step, std::int64_t width, int salt) {
  std::vector<float> row(static_cast<std::size_t>(width));
  auto state = static_cast<std::uint32_t>(step * 7919 + salt * 104729 + 1);
  // b_forced and b differ from a by a little from step 2 on; control is a.
  const bool b = lane == Lane::b || lane == Lane::b_forced;
  for (std::size_t i = 0; i < row.size(); ++i) {
    state = state * 1664525U + 1013904223U;
    row[i] = static_cast<float>(state >> 8U) / 1048576.0F - 8.0F;
    if (b && step >= 2) row[i] += static_cast<float>(i % 5) * 0.0009765625F;
  }
  if (step == 1) {
    for (std::size_t i = 0; i < kOddBits.size() && i < row.size(); ++i) {
      row[i] = std::bit_cast<float>(kOddBits[i]);
    }
  }
  return row;
}

StoredRoutes sample_routes(Lane lane, std::int64_t step) {
  const bool b = lane == Lane::b || lane == Lane::b_forced;
  const auto first = static_cast<std::int32_t>(step % 5);
  StoredRoutes routes;
  routes.experts = {first, (first + 1) % 5, 4, b && step == 3 ? 1 : 0};
  routes.weights = {0.75F, 0.25F, 0.625F, 0.375F};
  routes.margins = {0.5F + static_cast<float>(step), b ? 0.001F : 0.002F};
  return routes;
}

TokenId sample_token(Lane lane, std::int64_t step) {
  const bool parted = lane == Lane::b && step >= 4;
  return TokenId{static_cast<std::int32_t>((step * 5 + (parted ? 1 : 0)) % 37)};
}

TokenId sample_choice(Lane lane, std::int64_t step) {
  const bool flips = lane == Lane::b_forced && step == 4;
  return flips ? TokenId{sample_token(lane, step).value + 1} : sample_token(lane, step);
}

std::int64_t sample_timing_ns(Lane lane, std::int64_t step) {
  return 1000000 + 1000 * static_cast<std::int64_t>(lane) + step;
}

std::int64_t sample_rows(Lane lane, std::int64_t step) {
  const bool b = lane == Lane::b || lane == Lane::b_forced;
  return b ? 8 + step : 1;
}

std::optional<Draw> sample_draw(Lane lane, std::int64_t step) {
  if (step % 3 == 0) return std::nullopt;
  const double shift = lane == Lane::a || lane == Lane::control ? 0.0 : 0x1p-40;
  Draw draw;
  if (step % 3 == 1) {
    draw.uniform = 0.4 + shift;
    draw.lower = 0.25;
    draw.upper = 0.625;
    return draw;
  }
  for (std::int32_t i = 0; i < 5; ++i) {
    draw.candidates.push_back({.id = TokenId{9 - i}, .score = -0.1 * i, .noise = shift - 0.2 * i});
  }
  return draw;
}

std::vector<std::string> sample_plans(Lane lane) {
  if (lane == Lane::control) return {};  // an engine that tells nothing
  return {"decode q_proj m=1 n=192 k=192: lanes=32",
          "decode all_reduce ring ranks=" + std::to_string(2 + static_cast<int>(lane))};
}

ExperimentFacts sample_facts(const SampleShape& shape) {
  ExperimentFacts facts;
  facts.vocabulary = shape.vocabulary;
  facts.planned_steps = shape.steps;
  facts.prompt_a = {TokenId{1}, TokenId{2}, TokenId{3}};
  facts.prompt_b = facts.prompt_a;
  facts.prompt_text = "Grüße\n";
  facts.model_a = "sample";
  facts.model_b = "sample";
  facts.model_sha256_a = std::string(64, 'a');
  facts.model_sha256_b = std::string(64, 'a');
  facts.config_a.name = "left";
  facts.config_b.name = "right";
  facts.config_b.kv_dtype = KvDtype::bf16;
  facts.envelope_a = R"({"request_id":"one","tokenizer_sha256":"t","runtime":{"threads":1}})";
  facts.envelope_b = R"({"request_id":"two","tokenizer_sha256":"t","runtime":{"threads":2}})";
  facts.command = "driftscope run --model sample";
  facts.layers = 2;
  facts.hidden = 8;
  facts.intermediate = 16;
  facts.stored_dtype = Dtype::bf16;
  if (shape.taps) {
    facts.taps = {{.layer = -1, .operation = "embd", .width = 8},
                  {.layer = 0, .operation = "l_out-0", .width = 8},
                  {.layer = 1, .operation = "l_out-0", .width = 8},
                  {.layer = -1, .operation = "result_norm", .width = 8}};
  }
  if (shape.routes) facts.routes = {.layers = {0, 2}, .experts = 5, .chosen = 2};
  facts.lanes = shape.lanes;
  facts.piece = [](TokenId id) {
    // Token 3 is part of a character only.
    return id.value == 3 ? std::string("\xC3") : "<" + std::to_string(id.value) + ">";
  };
  return facts;
}

CaptureHeader sample_header(const SampleShape& shape) {
  CaptureHeader header = capture_header(sample_facts(shape), "2026-01-02T03:04:05Z", shape.lanes);
  for (CaptureLane& lane : header.lanes) lane.notes = NoteColumns::races;
  return header;
}

Result<void> emit_step(TraceSink& sink, const CaptureHeader& header, Lane lane, std::int64_t step) {
  const std::vector<float> row = sample_row(lane, step, header.vocabulary, 0);
  std::vector<std::vector<float>> values;
  std::vector<TensorTap> taps;
  values.reserve(header.taps.size());
  for (std::size_t i = 0; i < header.taps.size(); ++i) {
    const TapSpec& spec = header.taps[i];
    values.push_back(sample_row(lane, step, spec.width, static_cast<int>(i) + 1));
    taps.push_back({.layer = spec.layer, .operation = spec.operation, .values = values.back()});
  }
  const std::optional<Draw> draw = sample_draw(lane, step);
  const StoredRoutes routes =
      header.routes.layers.empty() ? StoredRoutes{} : sample_routes(lane, step);
  return sink.accept({.lane = lane,
                      .step = step,
                      .choice = sample_choice(lane, step),
                      .emitted = sample_token(lane, step),
                      .logits = row,
                      .taps = taps,
                      .timing_ns = sample_timing_ns(lane, step),
                      .rows_in_flight = sample_rows(lane, step),
                      .draw = draw ? &*draw : nullptr,
                      .routes = routes.row()});
}

Result<void> write_sample(const std::filesystem::path& path, const SampleShape& shape,
                          const CaptureOptions& options, TraceState state) {
  const CaptureHeader header = sample_header(shape);
  auto writer = CaptureWriter::create(path, header, options);
  if (!writer) return tl::unexpected<Error>(writer.error());
  for (std::int64_t step = 0; step < shape.steps; ++step) {
    for (const Lane lane : shape.lanes) {
      if (auto done = emit_step(**writer, header, lane, step); !done) return done;
    }
  }
  for (const Lane lane : shape.lanes) {
    if (auto done = (*writer)->keep_plans(lane, sample_plans(lane)); !done) return done;
    if (auto done = (*writer)->finish_lane(lane, state, "steps"); !done) return done;
  }
  return (*writer)->finish(state, nullptr);
}

ScratchFolder::ScratchFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "driftscope-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no scratch folder");
  m_path = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(m_path, ignored);
}

}  // namespace driftscope::testing
