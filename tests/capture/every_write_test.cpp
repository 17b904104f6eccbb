// SPDX-License-Identifier: Apache-2.0
// Kills a writer before each of its writes to the file, from the first to the last of finish().
#include <gtest/gtest.h>

#if defined(__x86_64__) && defined(__linux__)

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>

#include "tests/capture/sample_capture.h"

namespace driftscope {
namespace {

using testing::SampleShape;
using testing::ScratchFolder;

constexpr std::array kLanes{Lane::a, Lane::b};

SampleShape small_shape() {
  SampleShape shape;
  shape.steps = 3;
  shape.taps = false;
  shape.lanes.assign(kLanes.begin(), kLanes.end());
  return shape;
}

// Tells every accepted record and the end through the pipe.
int write_all(const std::filesystem::path& path, int pipe_end) {
  const SampleShape shape = small_shape();
  const CaptureHeader header = testing::sample_header(shape);
  auto writer = CaptureWriter::create(path, header, {});
  if (!writer) return 1;
  for (std::int64_t step = 0; step < shape.steps; ++step) {
    for (const Lane lane : kLanes) {
      if (!testing::emit_step(**writer, header, lane, step)) return 2;
      if (::write(pipe_end, "s", 1) != 1) return 3;
    }
  }
  for (const Lane lane : kLanes) {
    if (!(*writer)->finish_lane(lane, TraceState::complete, "steps")) return 4;
  }
  if (!(*writer)->finish(TraceState::complete, nullptr)) return 5;
  return ::write(pipe_end, "f", 1) == 1 ? 0 : 6;
}

struct Outcome {
  bool killed = false;
  std::string told;
};

// Stops the child at every system call and kills it before write number `fatal`.
Outcome kill_before_write(const std::filesystem::path& path, int fatal) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(90);
    ::raise(SIGSTOP);
    ::_exit(write_all(path, ends[1]));
  }
  ::close(ends[1]);
  Outcome outcome;
  int status = 0;
  int writes = 0;
  bool entering = true;
  ::waitpid(child, &status, 0);
  while (WIFSTOPPED(status)) {
    if (WSTOPSIG(status) == SIGTRAP) {
      user_regs_struct registers{};
      ::ptrace(PTRACE_GETREGS, child, nullptr, &registers);
      if (entering && registers.orig_rax == SYS_pwrite64 && ++writes == fatal) {
        ::kill(child, SIGKILL);
        outcome.killed = true;
      }
      entering = !entering;
    }
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    if (::waitpid(child, &status, 0) != child) break;
  }
  char byte = 0;
  while (::read(ends[0], &byte, 1) == 1) outcome.told += byte;
  ::close(ends[0]);
  return outcome;
}

bool may_trace() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void expect_readable(const std::filesystem::path& path, const std::string& told) {
  const auto reader = CaptureReader::open(path);
  // Before the first step was accepted there may be nothing to open.
  if (!reader && told.empty()) return;
  ASSERT_TRUE(reader) << reader.error().message << reader.error().detail;
  const SampleShape shape = small_shape();
  for (std::size_t i = 0; i < kLanes.size(); ++i) {
    const CaptureLaneInfo& info = *(*reader)->lane(kLanes[i]);
    const auto accepted = static_cast<std::int64_t>((told.size() + 1 - i) / 2);
    EXPECT_GE(info.steps_complete, accepted);
    for (std::int64_t step = 0; step < info.steps_complete; ++step) {
      const auto row = (*reader)->logits(kLanes[i], step);
      ASSERT_TRUE(row) << row.error().message;
      const auto expected = testing::sample_row(kLanes[i], step, shape.vocabulary, 0);
      EXPECT_EQ(std::memcmp(row->data(), expected.data(), expected.size() * sizeof(float)), 0);
    }
  }
  EXPECT_TRUE((*reader)->verify());
}

TEST(KilledBeforeAnyWrite, LeavesAFileThatOpensWithEveryAcceptedStep) {
  if (!may_trace()) GTEST_SKIP() << "this system does not let a process trace its child";
  const ScratchFolder folder;
  int fatal = 1;
  for (bool killed = true; killed; ++fatal) {
    SCOPED_TRACE(fatal);
    const auto path = folder / ("w" + std::to_string(fatal) + ".h5");
    const Outcome outcome = kill_before_write(path, fatal);
    killed = outcome.killed;
    if (killed) {
      EXPECT_FALSE(std::filesystem::exists(path));
      expect_readable(path.string() + ".part", outcome.told);
    } else {
      EXPECT_EQ(outcome.told, "ssssssf");
      expect_readable(path, "ssssss");
    }
    if (::testing::Test::HasFailure()) return;
    std::filesystem::remove(path.string() + ".part");
  }
  EXPECT_GT(fatal, 50);  // there were writes to kill at
  RecordProperty("writes", fatal - 2);
}

}  // namespace
}  // namespace driftscope

#endif
