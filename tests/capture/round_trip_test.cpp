// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>

#include "tests/capture/sample_capture.h"

namespace driftscope {
namespace {

using testing::SampleShape;
using testing::ScratchFolder;

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

void expect_lane(const CaptureReader& reader, const SampleShape& shape, Lane lane) {
  SCOPED_TRACE(lane_name(lane));
  ASSERT_NE(reader.lane(lane), nullptr);
  const CaptureLaneInfo& info = *reader.lane(lane);
  EXPECT_EQ(info.steps_complete, shape.steps);
  EXPECT_EQ(info.state, TraceState::complete);
  EXPECT_EQ(info.stop, "steps");
  EXPECT_TRUE(info.full_rows);
  const auto tokens = reader.tokens(lane);
  const auto choices = reader.choices(lane);
  const auto timing = reader.timing_ns(lane);
  ASSERT_TRUE(tokens && choices && timing);
  ASSERT_EQ(static_cast<std::int64_t>(tokens->size()), shape.steps);
  const auto plans = reader.plans(lane);
  ASSERT_TRUE(plans) << plans.error().message;
  EXPECT_EQ(*plans, testing::sample_plans(lane));
  for (std::int64_t step = 0; step < shape.steps; ++step) {
    const auto i = static_cast<std::size_t>(step);
    EXPECT_EQ((*tokens)[i], testing::sample_token(lane, step));
    EXPECT_EQ((*choices)[i], testing::sample_choice(lane, step));
    EXPECT_EQ((*timing)[i], testing::sample_timing_ns(lane, step));
    const auto row = reader.logits(lane, step);
    ASSERT_TRUE(row) << row.error().message;
    EXPECT_EQ(bits_of(*row), bits_of(testing::sample_row(lane, step, shape.vocabulary, 0)));
    for (std::size_t t = 0; t < reader.header().taps.size(); ++t) {
      const TapSpec& spec = reader.header().taps[t];
      const auto tap = reader.tap(lane, spec, step);
      ASSERT_TRUE(tap) << tap.error().message;
      EXPECT_EQ(bits_of(*tap),
                bits_of(testing::sample_row(lane, step, spec.width, static_cast<int>(t) + 1)));
    }
  }
}

class RoundTrip : public ::testing::TestWithParam<CaptureOptions> {};

TEST_P(RoundTrip, KeepsEveryBit) {
  const ScratchFolder folder;
  const SampleShape shape;
  const auto written =
      testing::write_sample(folder / "c.h5", shape, GetParam(), TraceState::complete);
  ASSERT_TRUE(written) << written.error().message << written.error().detail;
  EXPECT_FALSE(std::filesystem::exists(folder / "c.h5.part"));
  const auto reader = CaptureReader::open(folder / "c.h5");
  ASSERT_TRUE(reader) << reader.error().message << reader.error().detail;
  EXPECT_EQ((*reader)->state(), TraceState::complete);
  EXPECT_EQ((*reader)->format_version(), 1);
  for (const Lane lane : shape.lanes) expect_lane(**reader, shape, lane);
  // 4 lanes of 6 steps: the small columns, the logits and 4 taps of each step.
  const auto rows = (*reader)->verify();
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(*rows, 4 * 6 * (1 + 1 + 4));
}

INSTANTIATE_TEST_SUITE_P(Options, RoundTrip,
                         ::testing::Values(CaptureOptions{}, CaptureOptions{.deflate = 1},
                                           CaptureOptions{.deflate = 9},
                                           CaptureOptions{.flush_every = 4},
                                           CaptureOptions{.flush_every = 100}));

TEST(Capture, HeaderComesBack) {
  const ScratchFolder folder;
  SampleShape shape;
  CaptureHeader header = testing::sample_header(shape);
  header.prompt_b = {TokenId{7}};
  header.pieces[0] = std::string("\0\xFF", 2);
  {
    auto writer = CaptureWriter::create(folder / "c.h5", header, {});
    ASSERT_TRUE(writer) << writer.error().message;
    ASSERT_TRUE((*writer)->finish(TraceState::interrupted, nullptr));
  }
  const auto reader = CaptureReader::open(folder / "c.h5");
  ASSERT_TRUE(reader) << reader.error().message;
  const CaptureHeader& read = (*reader)->header();
  EXPECT_EQ((*reader)->state(), TraceState::interrupted);
  EXPECT_EQ(read.created, header.created);
  EXPECT_EQ(read.envelope_json, header.envelope_json);
  EXPECT_EQ(read.prompt_a, header.prompt_a);
  EXPECT_EQ(read.prompt_b, header.prompt_b);
  EXPECT_EQ(read.prompt_text, header.prompt_text);
  EXPECT_EQ(read.vocabulary, header.vocabulary);
  EXPECT_EQ(read.pieces, header.pieces);
  EXPECT_EQ(read.taps, header.taps);
  ASSERT_EQ(read.lanes.size(), header.lanes.size());
  for (std::size_t i = 0; i < read.lanes.size(); ++i) {
    EXPECT_EQ(read.lanes[i].lane, header.lanes[i].lane);
    EXPECT_EQ(read.lanes[i].steps, header.lanes[i].steps);
    EXPECT_EQ(read.lanes[i].config_json, header.lanes[i].config_json);
    EXPECT_EQ(read.lanes[i].envelope_json, header.lanes[i].envelope_json);
    EXPECT_EQ(read.lanes[i].model_sha256, header.lanes[i].model_sha256);
    EXPECT_EQ(read.lanes[i].tokenizer_sha256, header.lanes[i].tokenizer_sha256);
  }
}

Draw uniform_draw(double uniform) {
  Draw draw;
  draw.uniform = uniform;
  draw.lower = uniform / 2;
  draw.upper = 0.9;
  return draw;
}
Draw race_draw() {
  Draw draw;
  for (std::int32_t id = 0; id < 3; ++id) {
    draw.candidates.push_back({.id = TokenId{10 - id}, .score = -0.5 * id, .noise = 0.1 * id});
  }
  return draw;
}

void expect_draw(const std::optional<Draw>& read, const Draw& written) {
  ASSERT_TRUE(read);
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  EXPECT_EQ(bits(read->uniform), bits(written.uniform));
  EXPECT_EQ(bits(read->lower), bits(written.lower));
  EXPECT_EQ(bits(read->upper), bits(written.upper));
  EXPECT_EQ(read->candidates, written.candidates);
}

// Rows in flight and draws, and their way through a recovered copy.
TEST(Capture, NotesComeBack) {
  const ScratchFolder folder;
  const SampleShape shape{.lanes = {Lane::a, Lane::b, Lane::b_forced}};
  CaptureHeader header = testing::sample_header(shape);
  header.taps.clear();
  header.lanes[1].notes = NoteColumns::uniforms;
  header.lanes[2].notes = NoteColumns::races;
  const std::vector<Draw> draws{uniform_draw(0.25), uniform_draw(0x1.fffffffffffffp-1),
                                race_draw()};
  {
    auto writer = CaptureWriter::create(folder / "c.h5", header, {.flush_every = 2});
    ASSERT_TRUE(writer) << writer.error().message;
    for (std::int64_t step = 0; step < 3; ++step) {
      for (const Lane lane : shape.lanes) {
        const std::vector<float> row(static_cast<std::size_t>(shape.vocabulary), 0.5F);
        StepRecord record{.lane = lane, .step = step, .logits = row, .taps = {}};
        record.rows_in_flight = 7 + step;
        if (lane == Lane::b && step < 2) record.draw = &draws[static_cast<std::size_t>(step)];
        if (lane == Lane::b_forced && step == 2) record.draw = &draws[2];
        ASSERT_TRUE((*writer)->accept(record));
      }
    }
    ASSERT_TRUE((*writer)->finish(TraceState::complete, nullptr));
  }
  ASSERT_TRUE(recover_capture(folder / "c.h5", folder / "copy.h5"));
  for (const char* name : {"c.h5", "copy.h5"}) {
    SCOPED_TRACE(name);
    const auto reader = CaptureReader::open(folder / name);
    ASSERT_TRUE(reader) << reader.error().message;
    EXPECT_TRUE((*reader)->verify());
    for (const Lane lane : shape.lanes) {
      const auto notes = (*reader)->notes(lane);
      ASSERT_TRUE(notes) << notes.error().message;
      ASSERT_EQ(notes->size(), 3U);
      for (std::int64_t step = 0; step < 3; ++step) {
        EXPECT_EQ((*notes)[static_cast<std::size_t>(step)].rows_in_flight, 7 + step);
      }
      EXPECT_EQ((*notes)[0].draw.has_value(), lane == Lane::b);
      EXPECT_EQ((*notes)[2].draw.has_value(), lane == Lane::b_forced);
    }
    expect_draw((*(*reader)->notes(Lane::b))[0].draw, draws[0]);
    expect_draw((*(*reader)->notes(Lane::b))[1].draw, draws[1]);
    expect_draw((*(*reader)->notes(Lane::b_forced))[2].draw, draws[2]);
  }
}

TEST(Capture, TopKKeepsTheBestOfEachRow) {
  const ScratchFolder folder;
  const SampleShape shape;
  const auto written = testing::write_sample(
      folder / "c.h5", shape, {.keep = KeepMode::topk, .top_k = 5}, TraceState::complete);
  ASSERT_TRUE(written) << written.error().message;
  const auto reader = CaptureReader::open(folder / "c.h5");
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_FALSE((*reader)->lane(Lane::a)->full_rows);
  for (std::int64_t step = 0; step < shape.steps; ++step) {
    const auto best = (*reader)->top(Lane::b, step);
    ASSERT_TRUE(best) << best.error().message;
    EXPECT_EQ(*best, top_tokens(testing::sample_row(Lane::b, step, shape.vocabulary, 0), 5));
  }
  const auto row = (*reader)->logits(Lane::a, 0);
  ASSERT_FALSE(row);
  EXPECT_EQ(row.error().kind, ErrorKind::inconclusive);
}

TEST(Capture, PlansComeOnceAndBeforeTheEndOfTheirLane) {
  const ScratchFolder folder;
  const CaptureHeader header = testing::sample_header({});
  for (const bool twice : {true, false}) {
    auto writer = CaptureWriter::create(folder / (twice ? "twice.h5" : "late.h5"), header, {});
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->keep_plans(Lane::a, {"one"}));
    if (!twice) {
      ASSERT_TRUE((*writer)->finish_lane(Lane::a, TraceState::complete, "steps"));
    }
    const auto again = (*writer)->keep_plans(Lane::a, {"two"});
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().kind, ErrorKind::output);
  }
}

// A lane that was cut off may have half of them: none are told.
TEST(Capture, PlansOfAPartialLaneAreNotRead) {
  const ScratchFolder folder;
  const CaptureHeader header = testing::sample_header({});
  auto writer = CaptureWriter::create(folder / "c.h5", header, {});
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->keep_plans(Lane::a, {"one"}));
  ASSERT_TRUE((*writer)->finish(TraceState::partial, nullptr));
  const auto reader = CaptureReader::open(folder / "c.h5");
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_TRUE((*reader)->plans(Lane::a)->empty());
}

TEST(Capture, LanesMayEndEarly) {
  const ScratchFolder folder;
  const SampleShape shape;
  const CaptureHeader header = testing::sample_header(shape);
  auto writer = CaptureWriter::create(folder / "c.h5", header, {});
  ASSERT_TRUE(writer);
  for (std::int64_t step = 0; step < 3; ++step) {
    ASSERT_TRUE(testing::emit_step(**writer, header, Lane::a, step));
    if (step < 1) {
      ASSERT_TRUE(testing::emit_step(**writer, header, Lane::b, step));
    }
  }
  ASSERT_TRUE((*writer)->finish_lane(Lane::b, TraceState::complete, "end_of_sequence"));
  ASSERT_TRUE((*writer)->finish(TraceState::interrupted, nullptr));
  const auto reader = CaptureReader::open(folder / "c.h5");
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ((*reader)->lane(Lane::a)->steps_complete, 3);
  EXPECT_EQ((*reader)->lane(Lane::a)->state, TraceState::interrupted);
  EXPECT_EQ((*reader)->lane(Lane::b)->steps_complete, 1);
  EXPECT_EQ((*reader)->lane(Lane::b)->state, TraceState::complete);
  EXPECT_EQ((*reader)->lane(Lane::b)->stop, "end_of_sequence");
  EXPECT_TRUE((*reader)->plans(Lane::b)->empty());
  EXPECT_EQ((*reader)->lane(Lane::control)->steps_complete, 0);
  EXPECT_EQ((*reader)->lane(Lane::reference), nullptr);
}

}  // namespace
}  // namespace driftscope
