// SPDX-License-Identifier: Apache-2.0
// What is left of a capture when its writer dies or the disk is full.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <functional>

#include "tests/capture/sample_capture.h"

namespace driftscope {
namespace {

using testing::SampleShape;
using testing::ScratchFolder;

constexpr std::array kWrittenLanes{Lane::a, Lane::b_forced, Lane::b, Lane::control};

// Runs `body` in a child process; its exit status is what `body` returns.
pid_t run_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

// Writes steps for ever and says after each through the pipe how many the lanes have.
int write_and_tell(const std::filesystem::path& path, const SampleShape& shape,
                   const CaptureOptions& options, int pipe_end) {
  const CaptureHeader header = testing::sample_header(shape);
  auto writer = CaptureWriter::create(path, header, options);
  if (!writer) return 1;
  for (std::int64_t step = 0; step < shape.steps; ++step) {
    for (const Lane lane : kWrittenLanes) {
      if (!testing::emit_step(**writer, header, lane, step)) return 2;
      const char told = static_cast<char>(lane);
      if (::write(pipe_end, &told, 1) != 1) return 3;
    }
  }
  ::pause();
  return 0;
}

// How many records the child told of, at least `wanted`; then it is killed.
std::int64_t kill_after(pid_t child, int pipe_end, std::int64_t wanted) {
  std::int64_t told = 0;
  char lane = 0;
  while (told < wanted && ::read(pipe_end, &lane, 1) == 1) ++told;
  ::kill(child, SIGKILL);
  const int status = wait_for(child);
  EXPECT_TRUE(WIFSIGNALED(status));
  while (::read(pipe_end, &lane, 1) == 1) ++told;  // told before the end came
  return told;
}

void expect_rows(const CaptureReader& reader, const SampleShape& shape, Lane lane) {
  const CaptureLaneInfo& info = *reader.lane(lane);
  const auto tokens = reader.tokens(lane);
  ASSERT_TRUE(tokens) << tokens.error().message;
  for (std::int64_t step = 0; step < info.steps_complete; ++step) {
    EXPECT_EQ((*tokens)[static_cast<std::size_t>(step)], testing::sample_token(lane, step));
    const auto row = reader.logits(lane, step);
    ASSERT_TRUE(row) << row.error().message;
    const auto expected = testing::sample_row(lane, step, shape.vocabulary, 0);
    ASSERT_EQ(std::memcmp(row->data(), expected.data(), expected.size() * sizeof(float)), 0);
  }
}

class KilledWriter : public ::testing::TestWithParam<CaptureOptions> {};

TEST_P(KilledWriter, LosesNoAcknowledgedStep) {
  const ScratchFolder folder;
  SampleShape shape;
  shape.steps = 400;
  shape.vocabulary = 301;
  const std::int64_t unflushed = GetParam().flush_every - 1;  // steps a lane may be behind
  for (const std::int64_t records : {0, 1, 2, 5, 17, 40, 83, 200, 511, 1023, 1300}) {
    SCOPED_TRACE(records);
    const auto path = folder / ("k" + std::to_string(records) + ".h5");
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const pid_t child = run_child([&] {
      ::close(ends[0]);
      return write_and_tell(path, shape, GetParam(), ends[1]);
    });
    ::close(ends[1]);
    const std::int64_t told = kill_after(child, ends[0], records);
    ::close(ends[0]);
    ASSERT_GE(told, records);
    EXPECT_FALSE(std::filesystem::exists(path));
    const auto reader = CaptureReader::open(path.string() + ".part");
    if (records == 0 && !reader) continue;  // killed before there was a file to speak of
    ASSERT_TRUE(reader) << reader.error().message << reader.error().detail;
    EXPECT_EQ((*reader)->state(), TraceState::partial);
    for (std::size_t i = 0; i < kWrittenLanes.size(); ++i) {
      // Records were told of lane by lane.
      const std::int64_t acknowledged = (told - static_cast<std::int64_t>(i) + 3) / 4;
      const CaptureLaneInfo* info = (*reader)->lane(kWrittenLanes[i]);
      ASSERT_NE(info, nullptr);
      EXPECT_GE(info->steps_complete, acknowledged - unflushed);
      EXPECT_EQ(info->state, TraceState::partial);
      expect_rows(**reader, shape, kWrittenLanes[i]);
    }
    const auto verified = (*reader)->verify();
    EXPECT_TRUE(verified) << verified.error().message;
  }
}

INSTANTIATE_TEST_SUITE_P(Options, KilledWriter,
                         ::testing::Values(CaptureOptions{}, CaptureOptions{.flush_every = 8},
                                           CaptureOptions{.deflate = 1}));

TEST(KilledWriterRecovery, SavesEveryStepOfAKilledCapture) {
  const ScratchFolder folder;
  SampleShape shape;
  shape.steps = 50;
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = run_child([&] {
    ::close(ends[0]);
    return write_and_tell(folder / "k.h5", shape, {}, ends[1]);
  });
  ::close(ends[1]);
  const std::int64_t told = kill_after(child, ends[0], 101);
  ::close(ends[0]);
  const auto saved = recover_capture(folder / "k.h5.part", folder / "saved.h5");
  ASSERT_TRUE(saved) << saved.error().message;
  EXPECT_GE(*saved, told);
  const auto reader = CaptureReader::open(folder / "saved.h5");
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ((*reader)->state(), TraceState::partial);
  for (const Lane lane : kWrittenLanes) expect_rows(**reader, shape, lane);
}

// The child's exit status: 0 when all went as a full disk should.
int write_until_full(const std::filesystem::path& path, const SampleShape& shape,
                     std::size_t limit) {
  const rlimit size{limit, limit};
  if (::setrlimit(RLIMIT_FSIZE, &size) != 0) return 10;
  const CaptureHeader header = testing::sample_header(shape);
  auto writer = CaptureWriter::create(path, header, {});
  if (!writer) return writer.error().kind == ErrorKind::output ? 20 : 11;
  std::int64_t accepted = 0;
  Result<void> done;
  for (std::int64_t step = 0; step < shape.steps && done; ++step) {
    for (const Lane lane : kWrittenLanes) {
      if (done) done = testing::emit_step(**writer, header, lane, step);
      if (done) ++accepted;
    }
  }
  if (done) return 12;
  if (done.error().kind != ErrorKind::output) return 13;
  if (done.error().message.find("file size limit") == std::string::npos) return 14;
  const Result<void> finished = (*writer)->finish(TraceState::complete, nullptr);
  if (finished || finished.error().message != done.error().message) return 15;
  writer->reset();  // closing must not crash
  const auto reader = CaptureReader::open(path.string() + ".part");
  if (!reader) return 16;
  std::int64_t readable = 0;
  for (const Lane lane : kWrittenLanes) readable += (*reader)->lane(lane)->steps_complete;
  if (readable < accepted) return 17;
  if (!(*reader)->verify()) return 18;
  return std::filesystem::exists(path) ? 19 : 0;
}

TEST(FullDisk, IsOneClearErrorAndKeepsWhatWasWritten) {
  const ScratchFolder folder;
  SampleShape shape;
  shape.steps = 4000;
  shape.vocabulary = 1000;
  for (std::size_t limit = 300000; limit < 1500000; limit += 77777) {
    SCOPED_TRACE(limit);
    const auto path = folder / ("f" + std::to_string(limit) + ".h5");
    const int status = wait_for(run_child([&] { return write_until_full(path, shape, limit); }));
    ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
}

TEST(FullDisk, BeforeTheFirstStepIsAnErrorOfKindOutput) {
  const ScratchFolder folder;
  const SampleShape shape;
  for (const std::size_t limit : {0UL, 10UL, 1000UL, 5000UL, 20000UL}) {
    const auto path = folder / ("f" + std::to_string(limit) + ".h5");
    const int status = wait_for(run_child([&] { return write_until_full(path, shape, limit); }));
    ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 20) << limit;
  }
}

TEST(Writer, SaysWhyItCannotWrite) {
  const ScratchFolder folder;
  const CaptureHeader header = testing::sample_header({});
  const auto missing = CaptureWriter::create(folder / "no/such/c.h5", header, {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::output);
  EXPECT_THAT(missing.error().message, ::testing::HasSubstr("folder does not exist"));
  std::filesystem::create_directory(folder / "d.h5");
  const auto is_folder = CaptureWriter::create(folder / "d.h5", header, {});
  ASSERT_FALSE(is_folder);
  EXPECT_THAT(is_folder.error().message, ::testing::HasSubstr("it is a folder"));
}

TEST(Writer, DoesNotOverwriteThePartOfALivingWriter) {
  const ScratchFolder folder;
  const CaptureHeader header = testing::sample_header({});
  auto first = CaptureWriter::create(folder / "c.h5", header, {});
  ASSERT_TRUE(first);
  const auto second = CaptureWriter::create(folder / "c.h5", header, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::output);
  EXPECT_THAT(second.error().message, ::testing::HasSubstr("another run is writing"));
  first->reset();  // left as .part
  EXPECT_TRUE(CaptureWriter::create(folder / "c.h5", header, {}));
}

TEST(Reader, TwoReadersFollowAWriter) {
  const ScratchFolder folder;
  SampleShape shape;
  shape.steps = 30;
  const CaptureHeader header = testing::sample_header(shape);
  auto writer = CaptureWriter::create(folder / "c.h5", header, {});
  ASSERT_TRUE(writer);
  const auto part = folder / "c.h5.part";
  for (std::int64_t step = 0; step < shape.steps; ++step) {
    for (const Lane lane : kWrittenLanes) {
      ASSERT_TRUE(testing::emit_step(**writer, header, lane, step));
    }
    if (step % 7 != 0) continue;
    const int status = wait_for(run_child([&] {
      const auto one = CaptureReader::open(part);
      const auto two = CaptureReader::open(part);
      if (!one || !two) return 1;
      if ((*one)->lane(Lane::control)->steps_complete != step + 1) return 2;
      if ((*two)->state() != TraceState::partial) return 3;
      return (*one)->verify() && (*two)->verify() ? 0 : 4;
    }));
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << step;
  }
  // A reader keeps what it opened while the writer ends and renames.
  const auto reader = CaptureReader::open(part);
  ASSERT_TRUE(reader) << reader.error().message;
  ASSERT_TRUE((*writer)->finish(TraceState::complete, nullptr));
  EXPECT_TRUE((*reader)->verify());
  EXPECT_TRUE(CaptureReader::open(folder / "c.h5"));
}

}  // namespace
}  // namespace driftscope
