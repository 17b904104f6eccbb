// SPDX-License-Identifier: Apache-2.0
// A small capture cut at many places and with single bytes changed: no crash, and no wrong number
// that passes for a right one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "tests/capture/sample_capture.h"

namespace driftscope {
namespace {

using testing::SampleShape;
using testing::ScratchFolder;

SampleShape small_shape() {
  SampleShape shape;
  shape.steps = 2;
  shape.vocabulary = 11;
  shape.taps = false;
  shape.lanes = {Lane::a};
  return shape;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Everything that a reader of this file says, or the words of its error.
std::string dump(const std::filesystem::path& path) {
  const auto opened = CaptureReader::open(path);
  if (!opened) return "error: " + opened.error().message;
  const CaptureReader& reader = **opened;
  if (const auto verified = reader.verify(); !verified) {
    return "error: " + verified.error().message;
  }
  std::string text = *reader.describe();
  text += reader.header().prompt_text;
  for (const TokenId id : reader.header().prompt_a) text += std::to_string(id.value) + ",";
  for (const std::string& piece : reader.header().pieces) text += piece + "|";
  for (const CaptureLaneInfo& info : reader.lanes()) {
    const auto tokens = reader.tokens(info.lane.lane);
    for (const TokenId id : *tokens) text += std::to_string(id.value) + ",";
    const auto notes = reader.notes(info.lane.lane);
    for (const StepNote& note : *notes) {
      text += std::to_string(note.rows_in_flight) + (note.draw ? "drawn," : ",");
    }
    for (std::int64_t step = 0; step < info.steps_complete; ++step) {
      const auto row = reader.logits(info.lane.lane, step);
      text.append(reinterpret_cast<const char*>(row->data()), row->size() * sizeof(float));
    }
  }
  return text;
}

class Damage : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(testing::write_sample(m_folder / "whole.h5", small_shape(), {.deflate = GetParam()},
                                      TraceState::complete));
    m_whole = read_file(m_folder / "whole.h5");
    m_text = dump(m_folder / "whole.h5");
    ASSERT_EQ(m_text.substr(0, 6), "{\"form");
  }
  ScratchFolder m_folder;
  std::string m_whole;
  std::string m_text;
};

TEST_P(Damage, AFileCutShortIsRefusedOrWhole) {
  for (std::size_t size = 0; size < m_whole.size(); size += 512) {
    write_file(m_folder / "cut.h5", m_whole.substr(0, size));
    const std::string text = dump(m_folder / "cut.h5");
    EXPECT_EQ(text.substr(0, 6), "error:") << size;
    EXPECT_EQ(text.find('\n'), std::string::npos) << size;
  }
}

// Every byte of the file is changed in turn; the stride of the long version is 1.
TEST_P(Damage, AChangedByteIsFoundOrHarmless) {
  const char* full = std::getenv("DRIFTSCOPE_EVERY_BYTE");
  const std::size_t stride = full != nullptr ? 1 : 61;
  std::size_t found = 0;
  for (auto at = static_cast<std::size_t>(GetParam()); at < m_whole.size(); at += stride) {
    std::string changed = m_whole;
    changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
    write_file(m_folder / "flip.h5", changed);
    const std::string text = dump(m_folder / "flip.h5");
    const bool refused = text.substr(0, 6) == "error:";
    found += refused ? 1 : 0;
    EXPECT_TRUE(refused || text == m_text) << "byte " << at;
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(found, 100U);
}

INSTANTIATE_TEST_SUITE_P(Plain, Damage, ::testing::Values(0));
INSTANTIATE_TEST_SUITE_P(Compressed, Damage, ::testing::Values(1));

}  // namespace
}  // namespace driftscope
