// SPDX-License-Identifier: Apache-2.0
// Every version of the format ever released has a small file here, and opens. To make the file of a
// new version: DRIFTSCOPE_UPDATE_GOLDENS=1 capture_tests --gtest_filter='Golden.*'. Files of
// released versions are never made again.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/capture/capture_text.h"
#include "tests/capture/sample_capture.h"

namespace driftscope {
namespace {

const std::filesystem::path kFolder = DRIFTSCOPE_SOURCE_DIR "/tests/capture/golden";

// Written out here and not taken from the sample, which may change: the golden must not.
CaptureHeader golden_header() {
  CaptureHeader header;
  header.created = "2026-01-02T03:04:05Z";
  header.envelope_json = R"({"command":"driftscope run","model_a":"m","model_b":"m"})";
  header.prompt_a = {TokenId{1}, TokenId{2}};
  header.prompt_b = {TokenId{1}, TokenId{3}};
  header.prompt_text = "\xC3\xA4";
  header.vocabulary = 4;
  header.pieces = {"<s>", " a", "\xC3", std::string("\0", 1)};
  header.taps = {{.layer = 0, .operation = "l_out", .width = 2}};
  for (const Lane lane : {Lane::a, Lane::b_forced}) {
    header.lanes.push_back({.lane = lane,
                            .steps = 2,
                            .config_json = R"({"name":"golden"})",
                            .envelope_json = R"({"request_id":"r"})",
                            .model_sha256 = "0123",
                            .tokenizer_sha256 = "4567",
                            .chat_template_sha256 = ""});
  }
  return header;
}

Result<void> write_golden(const std::filesystem::path& path) {
  auto writer = CaptureWriter::create(path, golden_header(), {.deflate = 1});
  if (!writer) return tl::unexpected<Error>(writer.error());
  for (std::int64_t step = 0; step < 2; ++step) {
    for (const Lane lane : {Lane::a, Lane::b_forced}) {
      const float shift = lane == Lane::a ? 0.0F : 0.5F;
      const auto first = static_cast<float>(step);
      const std::vector<float> row{first, first + shift, -0.0F, -1.5F};
      const std::vector<float> tap{1.0F, first - shift};
      const TensorTap taps{.layer = 0, .operation = "l_out", .values = tap};
      auto done = (*writer)->accept({.lane = lane,
                                     .step = step,
                                     .choice = TokenId{1},
                                     .emitted = TokenId{static_cast<std::int32_t>(step) + 1},
                                     .logits = row,
                                     .taps = {&taps, 1},
                                     .timing_ns = 10 + step});
      if (!done) return done;
    }
  }
  if (auto done = (*writer)->finish_lane(Lane::a, TraceState::complete, "steps"); !done)
    return done;
  return (*writer)->finish(TraceState::interrupted, nullptr);
}

TEST(Golden, Version1OpensAndReadsAsItWasWritten) {
  if (std::getenv("DRIFTSCOPE_UPDATE_GOLDENS") != nullptr) {
    ASSERT_TRUE(write_golden(kFolder / "v1.h5"));
  }
  const auto reader = CaptureReader::open(kFolder / "v1.h5");
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_TRUE((*reader)->verify());
  std::ifstream file(kFolder / "v1.txt");
  const std::string expected{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(testing::capture_text(**reader), expected);
}

// What is written today is what version 1 means.
TEST(Golden, TodaysWriterGivesTheSameText) {
  const testing::ScratchFolder folder;
  ASSERT_TRUE(write_golden(folder / "v1.h5"));
  const auto today = CaptureReader::open(folder / "v1.h5");
  const auto golden = CaptureReader::open(kFolder / "v1.h5");
  ASSERT_TRUE(today && golden);
  EXPECT_EQ(testing::capture_text(**today), testing::capture_text(**golden));
}

}  // namespace
}  // namespace driftscope
