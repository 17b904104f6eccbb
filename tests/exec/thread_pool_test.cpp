// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/host/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace driftscope {
namespace {

class ThreadPoolOf : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolOf, RunsEachTaskExactlyOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.workers(), GetParam());
  for (const std::size_t tasks : {0U, 1U, 2U, 3U, 7U, 100U, 1000U}) {
    std::vector<int> runs(tasks, 0);  // not atomic: a task that ran twice at once is a data race
    std::atomic<bool> worker_in_range{true};
    pool.run(tasks, [&](std::size_t task, int worker) {
      ++runs[task];
      if (worker < 0 || worker >= pool.workers()) worker_in_range = false;
    });
    EXPECT_EQ(runs, std::vector<int>(tasks, 1));
    EXPECT_TRUE(worker_in_range);
  }
}

TEST_P(ThreadPoolOf, ManyShortRunsAllFinish) {
  ThreadPool pool(GetParam());
  std::vector<std::int64_t> sums(16, 0);
  constexpr std::int64_t kRuns = 3000;
  for (std::int64_t run = 0; run < kRuns; ++run) {
    pool.run(sums.size(), [&](std::size_t task, int) { sums[task] += run; });
  }
  for (const std::int64_t sum : sums) EXPECT_EQ(sum, kRuns * (kRuns - 1) / 2);
}

TEST_P(ThreadPoolOf, NestedRunsStayOnTheirThread) {
  ThreadPool pool(GetParam());
  std::vector<int> inner(64, 0);
  std::atomic<int> strayed{0};
  pool.run(8, [&](std::size_t task, int worker) {
    const auto thread = std::this_thread::get_id();
    pool.run(8, [&](std::size_t nested, int nested_worker) {
      ++inner[task * 8 + nested];
      if (std::this_thread::get_id() != thread || nested_worker != worker) ++strayed;
    });
  });
  EXPECT_EQ(inner, std::vector<int>(64, 1));
  EXPECT_EQ(strayed, 0);
}

TEST_P(ThreadPoolOf, WorkerNumbersNameOneThreadAtATime) {
  ThreadPool pool(GetParam());
  std::vector<int> scratch(static_cast<std::size_t>(pool.workers()), 0);
  for (int run = 0; run < 200; ++run) {
    pool.run(50, [&](std::size_t, int worker) { ++scratch[static_cast<std::size_t>(worker)]; });
  }
  int total = 0;
  for (const int count : scratch) total += count;
  EXPECT_EQ(total, 200 * 50);
}

// More threads than cores as well: then nobody spins.
INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolOf, testing::Values(1, 2, 3, 8));

TEST(ThreadPool, CallersTakeTurns) {
  ThreadPool pool(2);
  std::vector<std::int64_t> sums(4, 0);
  const auto caller = [&] {
    for (int run = 0; run < 500; ++run) {
      pool.run(sums.size(), [&](std::size_t task, int) { ++sums[task]; });
    }
  };
  std::thread other(caller);
  caller();
  other.join();
  EXPECT_EQ(sums, std::vector<std::int64_t>(4, 1000));
}

TEST(ThreadPool, ZeroMeansAllCores) { EXPECT_EQ(ThreadPool(0).workers(), available_cores()); }

TEST(ThreadPool, GoesAwayWithoutEverHavingRun) { const ThreadPool pool(4); }

}  // namespace
}  // namespace driftscope
