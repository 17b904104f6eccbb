// SPDX-License-Identifier: Apache-2.0
// A capture tells the same as the run that wrote it.
#include <gtest/gtest.h>

#include "analysis/report/documents.h"
#include "tests/report/sample_comparison.h"

namespace driftscope {
namespace {

using testing::SampleShape;
using testing::ScratchFolder;

TEST(CompareCapture, GivesTheComparisonOfTheRun) {
  const ScratchFolder folder;
  const SampleShape shape;
  const ComparePolicy policy{.top_k = 4};
  ASSERT_TRUE(testing::write_sample(folder / "c.h5", shape, {}, TraceState::complete));
  const auto reader = CaptureReader::open(folder / "c.h5");
  ASSERT_TRUE(reader);
  const auto read = compare_capture(**reader, policy);
  ASSERT_TRUE(read) << read.error().message;
  const auto run = testing::built_sample(shape, policy)->snapshot(TraceState::complete);
  // The document holds every field, every step and every number to the last bit.
  EXPECT_EQ(compare_document(**read, {.per_step = true}),
            compare_document(*run, {.per_step = true}));
}

// What the file says of metrics is what the comparison says.
TEST(CompareCapture, ColumnsAreReadableAsPlainDatasets) {
  const ScratchFolder folder;
  const SampleShape shape;
  const auto comparison = testing::built_sample(shape, {})->snapshot(TraceState::complete);
  const CaptureHeader header = testing::sample_header(shape);
  auto writer = CaptureWriter::create(folder / "c.h5", header, {});
  ASSERT_TRUE(writer);
  for (std::int64_t step = 0; step < shape.steps; ++step) {
    for (const Lane lane : shape.lanes) {
      ASSERT_TRUE(testing::emit_step(**writer, header, lane, step));
    }
  }
  ASSERT_TRUE((*writer)->finish(TraceState::complete, comparison.get()));
  const auto reader = CaptureReader::open(folder / "c.h5");
  ASSERT_TRUE(reader);
  const auto verified = (*reader)->verify();
  EXPECT_TRUE(verified) << verified.error().message;
}

// Only the best logits kept: the stored metrics and the kept rankings say the same as the rows did.
TEST(CompareCapture, WorksFromStoredMetricsWhereRowsWereNotKept) {
  const ScratchFolder folder;
  SampleShape shape;
  shape.taps = false;
  const ComparePolicy policy{.top_k = 3};
  const auto run = testing::built_sample(shape, policy)->snapshot(TraceState::complete);
  const CaptureHeader header = testing::sample_header(shape);
  auto writer =
      CaptureWriter::create(folder / "c.h5", header, {.keep = KeepMode::topk, .top_k = 37});
  ASSERT_TRUE(writer);
  for (std::int64_t step = 0; step < shape.steps; ++step) {
    for (const Lane lane : shape.lanes) {
      ASSERT_TRUE(testing::emit_step(**writer, header, lane, step));
    }
  }
  for (const Lane lane : shape.lanes) {
    ASSERT_TRUE((*writer)->finish_lane(lane, TraceState::complete, "steps"));
  }
  ASSERT_TRUE((*writer)->finish(TraceState::complete, run.get()));
  const auto reader = CaptureReader::open(folder / "c.h5");
  ASSERT_TRUE(reader);
  const auto stored = compare_capture(**reader, policy);
  ASSERT_TRUE(stored) << stored.error().message;
  ASSERT_EQ((*stored)->steps.size(), run->steps.size());
  for (std::size_t i = 0; i < run->steps.size(); ++i) {
    SCOPED_TRACE(i);
    const StepComparison& a = *run->steps[i];
    const StepComparison& b = *(*stored)->steps[i];
    EXPECT_EQ(a.token_a, b.token_a);
    EXPECT_EQ(a.choice_b, b.choice_b);
    EXPECT_EQ(a.token_b, b.token_b);
    EXPECT_EQ(a.flipped, b.flipped);
    EXPECT_EQ(a.flips, b.flips);  // K is the vocabulary: every rank was kept
    EXPECT_EQ(a.metrics.top_a, b.metrics.top_a);
    EXPECT_EQ(a.metrics.top_b, b.metrics.top_b);
    EXPECT_EQ(a.metrics.max_abs_token, b.metrics.max_abs_token);
    ASSERT_EQ(a.metrics.values.size(), b.metrics.values.size());
    for (std::size_t m = 0; m < a.metrics.values.size(); ++m) {
      const double x = a.metrics.values[m];
      const double y = b.metrics.values[m];
      EXPECT_TRUE(x == y || (x != x && y != y)) << metric_registry()[m].id;
    }
  }
  ASSERT_TRUE((*stored)->first_divergence);
  EXPECT_EQ((*stored)->first_divergence->step, run->first_divergence->step);
  EXPECT_EQ((*stored)->first_divergence->cause, run->first_divergence->cause);
  EXPECT_EQ((*stored)->findings.back().id, "top_k_only");
}

TEST(CompareCaptures, TakesLaneAOfBoth) {
  const ScratchFolder folder;
  SampleShape shape;
  shape.lanes = {Lane::a};
  shape.taps = false;
  ASSERT_TRUE(testing::write_sample(folder / "one.h5", shape, {}, TraceState::complete));
  ASSERT_TRUE(testing::write_sample(folder / "two.h5", shape, {}, TraceState::complete));
  const auto one = CaptureReader::open(folder / "one.h5");
  const auto two = CaptureReader::open(folder / "two.h5");
  ASSERT_TRUE(one && two);
  const auto same = compare_captures(**one, **two, {});
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_EQ((*same)->verdict, Tier::bitwise);
  EXPECT_EQ((*same)->steps.size(), 6U);
  EXPECT_EQ((*same)->tokens_equal, 6);

  shape.vocabulary = 36;
  ASSERT_TRUE(testing::write_sample(folder / "three.h5", shape, {}, TraceState::complete));
  const auto three = CaptureReader::open(folder / "three.h5");
  ASSERT_TRUE(three);
  const auto other = compare_captures(**one, **three, {});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, ErrorKind::inconclusive);
}

TEST(CompareCaptures, StopsForcingAfterTheFirstDivergence) {
  const ScratchFolder folder;
  SampleShape shape;
  shape.lanes = {Lane::a};
  shape.taps = false;
  ASSERT_TRUE(testing::write_sample(folder / "one.h5", shape, {}, TraceState::complete));
  // The second capture's lane a is the sample's lane b, which parts at step 4.
  const CaptureHeader header = testing::sample_header(shape);
  {
    auto writer = CaptureWriter::create(folder / "two.h5", header, {});
    ASSERT_TRUE(writer);
    for (std::int64_t step = 0; step < shape.steps; ++step) {
      const auto row = testing::sample_row(Lane::b, step, shape.vocabulary, 0);
      const TokenId token = testing::sample_token(Lane::b, step);
      ASSERT_TRUE((*writer)->accept({.lane = Lane::a,
                                     .step = step,
                                     .choice = token,
                                     .emitted = token,
                                     .logits = row,
                                     .taps = {},
                                     .timing_ns = 1}));
    }
    ASSERT_TRUE((*writer)->finish(TraceState::complete, nullptr));
  }
  const auto one = CaptureReader::open(folder / "one.h5");
  const auto two = CaptureReader::open(folder / "two.h5");
  ASSERT_TRUE(one && two);
  const auto compared = compare_captures(**one, **two, {});
  ASSERT_TRUE(compared) << compared.error().message;
  ASSERT_TRUE((*compared)->first_divergence);
  EXPECT_EQ((*compared)->first_divergence->step, 4);
  EXPECT_EQ((*compared)->steps.size(), 5U);  // steps 0 to 4 saw the same tokens
  EXPECT_TRUE((*compared)->steps[4]->flipped);
}

}  // namespace
}  // namespace driftscope
