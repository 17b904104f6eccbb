// SPDX-License-Identifier: Apache-2.0
// Ctrl-C, SIGKILL, a full disk and a reader that goes away: what was captured is kept.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "analysis/capture/capture.h"
#include "tests/cli/program.h"

namespace driftscope::test {
namespace {

namespace fs = std::filesystem;

// A run with --events whose stdout we read line by line.
class LiveRun {
 public:
  LiveRun(const std::string& output, rlim_t largest_file) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("pipe failed");
    m_child = fork();
    if (m_child == 0) {
      dup2(ends[1], 1);
      close(ends[0]);
      close(ends[1]);
      const int null = open("/dev/null", O_WRONLY);
      dup2(null, 2);
      if (largest_file != RLIM_INFINITY) {
        const rlimit limit{largest_file, largest_file};
        setrlimit(RLIMIT_FSIZE, &limit);
      }
      const std::string model = sample_model();
      execl(DRIFTSCOPE_CLI_PATH, DRIFTSCOPE_CLI_PATH, "run", "--model", model.c_str(), "--prompt",
            "And", "--steps", "240", "--set-a", "ignore_eos=true", "--events", "-q", "-o",
            output.c_str(), nullptr);
      _exit(127);
    }
    close(ends[1]);
    m_stream.reset(fdopen(ends[0], "r"));
  }
  // Reads until `count` step events came; false at the end of the stream.
  bool read_steps(int count) {
    char* line = nullptr;
    std::size_t capacity = 0;
    while (count > 0 && getline(&line, &capacity, m_stream.get()) > 0) {
      if (std::string_view(line).starts_with("{\"event\":\"step\"")) {
        ++m_steps;
        --count;
      }
    }
    std::free(line);
    return count == 0;
  }
  void drain() {
    while (read_steps(1)) {
    }
  }
  void send(int signal) const { kill(m_child, signal); }
  void close_stream() { m_stream.reset(); }
  // The exit code, or -signal.
  int wait() {
    int status = 0;
    waitpid(m_child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  [[nodiscard]] std::int64_t steps() const { return m_steps; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  pid_t m_child = 0;
  std::unique_ptr<std::FILE, Close> m_stream;
  std::int64_t m_steps = 0;
};

std::int64_t complete_steps(const CaptureReader& reader) {
  std::int64_t least = 1000000;
  for (const Lane lane : {Lane::a, Lane::b_forced}) {
    least = std::min(least, reader.lane(lane)->steps_complete);
  }
  return least;
}

TEST(Interruption, CtrlCEndsCleanlyAndTheCaptureOpensAsInterrupted) {
  const ScratchFolder scratch;
  LiveRun run(scratch.file("c.h5"), RLIM_INFINITY);
  ASSERT_TRUE(run.read_steps(3));
  run.send(SIGINT);
  run.drain();
  EXPECT_EQ(run.wait(), 130);
  const auto reader = CaptureReader::open(scratch.file("c.h5"));
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ((*reader)->state(), TraceState::interrupted);
  EXPECT_GE(complete_steps(**reader), run.steps());
  EXPECT_TRUE((*reader)->verify());
}

TEST(Interruption, KillLeavesAPartialCaptureWithEveryReportedStep) {
  const ScratchFolder scratch;
  for (const int steps : {1, 2, 5, 20}) {
    const auto path = scratch.file("k" + std::to_string(steps) + ".h5");
    LiveRun run(path, RLIM_INFINITY);
    ASSERT_TRUE(run.read_steps(steps));
    run.send(SIGKILL);
    run.drain();
    const int code = run.wait();
    const bool finished = code == 0;  // it may have been quicker than the signal
    if (!finished) {
      EXPECT_EQ(code, -SIGKILL);
    }
    const auto reader = CaptureReader::open(fs::exists(path) ? path : path + ".part");
    ASSERT_TRUE(reader) << reader.error().message;
    EXPECT_EQ((*reader)->state(), finished ? TraceState::complete : TraceState::partial);
    EXPECT_GE(complete_steps(**reader), run.steps());
    EXPECT_TRUE((*reader)->verify());
  }
}

TEST(Interruption, FullDiskIsAClearErrorAndEarlierStepsStayReadable) {
  const ScratchFolder scratch;
  const auto path = scratch.file("f.h5");
  LiveRun run(path, rlim_t{1} << 20U);
  run.drain();
  EXPECT_EQ(run.wait(), 6);
  ASSERT_GT(run.steps(), 0);
  const auto reader = CaptureReader::open(fs::exists(path) ? path : path + ".part");
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_NE((*reader)->state(), TraceState::complete);
  EXPECT_GE(complete_steps(**reader), run.steps());
}

TEST(Interruption, ReaderThatGoesAwayEndsTheRunAndKeepsTheCapture) {
  const ScratchFolder scratch;
  const auto path = scratch.file("p.h5");
  LiveRun run(path, RLIM_INFINITY);
  ASSERT_TRUE(run.read_steps(2));
  run.close_stream();
  const int code = run.wait();
  EXPECT_TRUE(code == 6 || code == 0) << code;
  const auto reader = CaptureReader::open(fs::exists(path) ? path : path + ".part");
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_GE(complete_steps(**reader), 2);
}

TEST(Interruption, StdoutThatIsFullIsExitSix) {
  const ScratchFolder scratch;
  const int out = open("/dev/full", O_WRONLY);
  ASSERT_GE(out, 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(out, 1);
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, 2);
    execl(DRIFTSCOPE_CLI_PATH, DRIFTSCOPE_CLI_PATH, "knobs", "--json", nullptr);
    _exit(127);
  }
  close(out);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 6);
}

}  // namespace
}  // namespace driftscope::test
